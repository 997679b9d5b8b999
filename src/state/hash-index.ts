// Finds numbers by hash, in two typed arrays with open addressing: 8 bytes per slot, and nothing for the garbage
// collector to visit. Knows no keys: several numbers may have one hash, and the caller compares the keys.
//
// The one thing to know: a search looks at `probesPerSearch` slots at most, and the index refuses a number that would
// stand farther away. Ids are chosen by submitters, and the hash is no secret: ids built to have equal hashes must not
// slow down other submitters. The caller keeps refused numbers elsewhere.

/** Slots of one search. At the usual load a search looks at two, and 128 are never needed by chance. */
export const probesPerSearch = 128;

/** Each part grows by itself, so that no growth takes longer than a millisecond with a million numbers. */
const partBits = 6;
const firstSlots = 16;
/** Share of used slots, removed numbers included, at which a part is built again with half of it used at most. */
const fullShare = 0.7;
const slotsPerNumber = 2;

/** In place of a hash: a slot that was never used, and a slot whose number was removed. */
const free = 0;
const removed = 1;

/** The hash of two texts, without the two values that mark slots. FNV-1a, then the mixing of MurmurHash3. */
export function hashOfPair(first: string, second: string): number {
  let hash = hashedOn(0x811c9dc5, first);
  hash = Math.imul(hash ^ 0xffff, 0x01000193); // no text has the unit: "a", "bc" and "ab", "c" differ
  hash = hashedOn(hash, second);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash = (hash ^ (hash >>> 16)) >>> 0;
  return hash > removed ? hash : hash + 2;
}

function hashedOn(seed: number, text: string): number {
  let hash = seed;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

export class HashIndex {
  readonly #parts = Array.from({ length: 2 ** partBits }, () => new Part());

  /** @returns false, without adding, when the next free slot is too far away; may add to `evicted` */
  add(hash: number, number: number, evicted: number[]): boolean {
    return this.#part(hash).add(hash, number, evicted);
  }

  /** @returns whether the number was in the index */
  delete(hash: number, number: number): boolean {
    return this.#part(hash).delete(hash, number);
  }

  /** The next find of a search, from `probes` on, which begin at 0; −1 at the end. `numberAt` gives the number. */
  next(hash: number, probes: number): number {
    return this.#part(hash).next(hash, probes);
  }

  numberAt(hash: number, probes: number): number {
    return this.#part(hash).numberAt(hash, probes);
  }

  #part(hash: number): Part {
    return this.#parts[hash >>> (32 - partBits)] as Part;
  }
}

class Part {
  #hashes = new Uint32Array(firstSlots);
  #numbers = new Uint32Array(firstSlots);
  #live = 0;
  /** Slots that are not free. */
  #used = 0;

  add(hash: number, number: number, evicted: number[]): boolean {
    if (this.#used >= fullShare * this.#hashes.length) this.#rebuild(evicted);
    return this.#put(hash, number);
  }

  delete(hash: number, number: number): boolean {
    const mask = this.#hashes.length - 1;
    for (let probes = this.next(hash, 0); probes !== -1; probes = this.next(hash, probes + 1)) {
      const at = (hash + probes) & mask;
      if (this.#numbers[at] !== number) continue;
      const isLastOfRun = this.#hashes[(at + 1) & mask] === free;
      this.#hashes[at] = isLastOfRun ? free : removed;
      if (isLastOfRun) this.#used -= 1;
      this.#live -= 1;
      return true;
    }
    return false;
  }

  next(hash: number, probes: number): number {
    const hashes = this.#hashes;
    const mask = hashes.length - 1;
    const end = Math.min(probesPerSearch, hashes.length);
    for (let probe = probes; probe < end; probe += 1) {
      const found = hashes[(hash + probe) & mask];
      if (found === hash) return probe;
      if (found === free) return -1;
    }
    return -1;
  }

  numberAt(hash: number, probes: number): number {
    return this.#numbers[(hash + probes) & (this.#hashes.length - 1)] as number;
  }

  #put(hash: number, number: number): boolean {
    const mask = this.#hashes.length - 1;
    const end = Math.min(probesPerSearch, this.#hashes.length);
    for (let probe = 0; probe < end; probe += 1) {
      const at = (hash + probe) & mask;
      const found = this.#hashes[at] as number;
      if (found > removed) continue;
      if (found === free) this.#used += 1;
      this.#hashes[at] = hash;
      this.#numbers[at] = number;
      this.#live += 1;
      return true;
    }
    return false;
  }

  #rebuild(evicted: number[]): void {
    const hashes = this.#hashes;
    const numbers = this.#numbers;
    let slots = firstSlots;
    while (slots < slotsPerNumber * (this.#live + 1)) slots *= 2;
    this.#hashes = new Uint32Array(slots);
    this.#numbers = new Uint32Array(slots);
    this.#live = 0;
    this.#used = 0;
    for (let at = 0; at < hashes.length; at += 1) {
      const hash = hashes[at] as number;
      const number = numbers[at] as number;
      if (hash > removed && !this.#put(hash, number)) evicted.push(number);
    }
  }
}
