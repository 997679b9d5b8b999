// Seeded randomness for simulations: the same seed and purpose give the same draws on any machine. Not for
// keys, ids or secrets, and not for decisions, which receive a `jitter`. Each purpose has a separate stream, so
// draws of one part do not shift the draws of another. Two rules under the same seed meet the same arrivals,
// whatever they decide.

export class SeededRandom {
  readonly #name: string;
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param seed any text; different texts give different streams */
  constructor(seed: string) {
    this.#name = seed;
    const mix = mixerOf(seed);
    [this.#a, this.#b, this.#c, this.#d] = [mix(), mix(), mix(), mix()];
    for (let warm = 0; warm < 12; warm += 1) this.#next();
  }

  /** A separate stream for a purpose, independent of the draws made so far. */
  split(purpose: string): SeededRandom {
    return new SeededRandom(`${this.#name}/${purpose}`);
  }

  /** [0, 1), 53 bits. */
  fraction(): number {
    const high = this.#next() >>> 5;
    const low = this.#next() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  /** A whole number from 0 to n − 1. @param n ≥ 1 */
  below(n: number): number {
    return Math.floor(this.fraction() * n);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** One of the items. @param items not empty */
  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.fraction());
  }

  /** By Knuth's product of fractions: exact, and slow for means far above 10. */
  poisson(mean: number): number {
    const bound = Math.exp(-mean);
    let product = this.fraction();
    let count = 0;
    while (product > bound) {
      product *= this.fraction();
      count += 1;
    }
    return count;
  }

  /** A source of ranks from 0 to n − 1, rank r with a probability proportional to 1 / (r + 1)^exponent. */
  zipf(n: number, exponent: number): () => number {
    const cumulated = new Float64Array(n);
    let sum = 0;
    for (let rank = 0; rank < n; rank += 1) {
      sum += 1 / (rank + 1) ** exponent;
      cumulated[rank] = sum;
    }
    return () => firstAbove(cumulated, this.fraction() * sum);
  }

  /** sfc32 (Doty-Humphrey's Small Fast Counting generator; passes PractRand). */
  #next(): number {
    const sum = (this.#a + this.#b + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum >>> 0;
  }
}

/** Four words from a text (xmur3), so that seeds 1 and 2 have nothing in common. */
function mixerOf(text: string): () => number {
  let hash = 1_779_033_703 ^ text.length;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 3_432_918_353);
    hash = (hash << 13) | (hash >>> 19);
  }
  return () => {
    hash = Math.imul(hash ^ (hash >>> 16), 2_246_822_507);
    hash = Math.imul(hash ^ (hash >>> 13), 3_266_489_909);
    hash ^= hash >>> 16;
    return hash | 0;
  };
}

function firstAbove(cumulated: Float64Array, point: number): number {
  let low = 0;
  let high = cumulated.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((cumulated[middle] ?? 0) > point) high = middle;
    else low = middle + 1;
  }
  return low;
}
