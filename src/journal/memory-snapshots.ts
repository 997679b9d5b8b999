// Snapshots in memory, for simulation and tests; gone with the process. As with the journal in memory, several
// coordinators open what one `MemorySnapshots` holds, each through a way of its own that can be made to fail; what
// is held can be damaged and lost.

import { assert } from "../assert.ts";
import { UnreachableError, type WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { JournalUsage } from "./journal.ts";
import { snapshotsClosedError, snapshotsFullError } from "./journal-errors.ts";
import type { SnapshotStore, StoredManifest } from "./snapshot-store.ts";

export type SnapshotPartKind = "chunk" | "manifest";

export interface SnapshotPart {
  readonly kind: SnapshotPartKind;
  readonly bytes: Uint8Array;
}

/** `lose`: nothing is stored. `lose-answer`: it is stored, and the writer does not know. Both throw
 *  UnreachableError. */
export type PutFate = "deliver" | "lose" | "lose-answer" | "full";

export interface MemorySnapshotFaults {
  /** Asked before each put, in the order of the calls; a promise holds this one and those behind it. */
  onPut?(part: SnapshotPart): PutFate | Promise<PutFate>;
}

export interface MemorySnapshotsOptions {
  /** Default: unbounded. */
  readonly bytesMax?: number;
}

/** What the handles share. Everything here happens at once and never fails. */
export class MemorySnapshots {
  readonly bytesMax: number | undefined;
  readonly #partByPlace = new Map<number, SnapshotPart>();
  #lastPlace = 0;

  constructor({ bytesMax }: MemorySnapshotsOptions = {}) {
    this.bytesMax = bytesMax;
  }

  open(faults: MemorySnapshotFaults = {}): MemorySnapshotStore {
    return new MemorySnapshotStore(this, faults);
  }

  put({ kind, bytes }: SnapshotPart): number {
    this.#lastPlace += 1;
    this.#partByPlace.set(this.#lastPlace, { kind, bytes: bytes.slice() });
    return this.#lastPlace;
  }

  at(place: number): SnapshotPart | undefined {
    return this.#partByPlace.get(place);
  }

  /** Ascending. */
  places(kind: SnapshotPartKind): number[] {
    return [...this.#partByPlace].filter(([, part]) => part.kind === kind).map(([place]) => place);
  }

  /** One bit of what is stored there flips. */
  damage(place: number): void {
    const bytes = this.#demand(place).bytes;
    const middle = bytes.length >> 1;
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  }

  lose(place: number): void {
    this.#demand(place);
    this.#partByPlace.delete(place);
  }

  removeBelow(place: number): void {
    for (const present of [...this.#partByPlace.keys()])
      if (present < place) this.#partByPlace.delete(present);
  }

  get bytes(): number {
    return [...this.#partByPlace.values()].reduce((sum, part) => sum + part.bytes.length, 0);
  }

  #demand(place: number): SnapshotPart {
    const part = this.at(place);
    assert(part !== undefined, `a part is stored at place ${place}`);
    return part;
  }
}

/** One coordinator's way to snapshots in memory. */
export class MemorySnapshotStore implements SnapshotStore {
  readonly #snapshots: MemorySnapshots;
  readonly #faults: MemorySnapshotFaults;
  readonly #underWay = new Set<(reason: WaggleError) => void>();
  #puts: Promise<unknown> = Promise.resolve();
  #isCutOff = false;
  #isClosed = false;

  constructor(snapshots: MemorySnapshots, faults: MemorySnapshotFaults) {
    this.#snapshots = snapshots;
    this.#faults = faults;
  }

  /** While cut off, everything throws UnreachableError. */
  setCutOff(isCutOff: boolean): void {
    this.#isCutOff = isCutOff;
  }

  putChunk(bytes: Uint8Array): Promise<number> {
    return this.#put({ kind: "chunk", bytes });
  }

  putManifest(bytes: Uint8Array): Promise<number> {
    return this.#put({ kind: "manifest", bytes });
  }

  async manifests(): Promise<readonly StoredManifest[]> {
    this.#reach();
    return this.#snapshots.places("manifest").map((place) => {
      const { bytes = new Uint8Array() } = this.#snapshots.at(place) ?? {};
      return { place, bytes: bytes.slice() };
    });
  }

  async chunk(place: number): Promise<Uint8Array | undefined> {
    this.#reach();
    const part = this.#snapshots.at(place);
    return part?.kind === "chunk" ? part.bytes.slice() : undefined;
  }

  async removeBelow(place: number): Promise<void> {
    this.#reach();
    this.#snapshots.removeBelow(place);
  }

  async usage(): Promise<JournalUsage> {
    this.#reach();
    const { bytes, bytesMax } = this.#snapshots;
    return { bytes, bytesMax };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const fail of this.#underWay) fail(snapshotsClosedError());
    this.#underWay.clear();
  }

  #put(part: SnapshotPart): Promise<number> {
    assert(part.bytes.length <= limits.snapshotPartBytesMax, "a part of a snapshot fits a message");
    return new Promise((resolve, reject) => {
      this.#underWay.add(reject);
      const turn = this.#puts.then(() => this.#carry(part));
      this.#puts = turn.catch(() => undefined); // told to who put it
      void turn.then(resolve, reject).finally(() => this.#underWay.delete(reject));
    });
  }

  async #carry(part: SnapshotPart): Promise<number> {
    this.#reach();
    const fate = (await this.#faults.onPut?.(part)) ?? "deliver";
    this.#reach();
    const { bytes, bytesMax = Number.POSITIVE_INFINITY } = this.#snapshots;
    if (fate === "full" || bytes + part.bytes.length > bytesMax)
      throw snapshotsFullError("there is no room in memory");
    if (fate === "lose") throw new UnreachableError("the part of a snapshot was lost");
    const place = this.#snapshots.put(part);
    if (fate === "lose-answer") throw new UnreachableError("the answer about a part of a snapshot was lost");
    return place;
  }

  #reach(): void {
    if (this.#isClosed) throw snapshotsClosedError();
    if (this.#isCutOff) throw new UnreachableError("the way to the snapshots in memory is cut off");
  }
}
