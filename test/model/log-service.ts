// The journal's server in the model of segments. Streams accept appends at an expected position or at any
// position, and are read and deleted. A power loss takes unsynced data: the end of a stream, a new stream. Each
// uncertain outcome is a choice, so that a search can try all outcomes.

import type { StoredRecord } from "./records.ts";

export type Operation =
  | { readonly op: "list" }
  | { readonly op: "create"; readonly segment: number }
  | StreamOperation;

/** Operations on an existing stream. */
type StreamOperation =
  | {
      readonly op: "append";
      readonly segment: number;
      /** Undefined: at any position, as a seal is appended (docs/adr/0025). */
      readonly expected: number | undefined;
      readonly record: StoredRecord;
    }
  | { readonly op: "read"; readonly segment: number }
  | { readonly op: "delete"; readonly segment: number };

export type Answer =
  | { readonly kind: "listed"; readonly segments: readonly number[] }
  | { readonly kind: "done" }
  | { readonly kind: "stored"; readonly position: number }
  | { readonly kind: "read"; readonly records: readonly StoredRecord[] }
  | { readonly kind: "refused"; readonly why: "wrong-position" | "no-stream" }
  /** No answer came: the operation may be done, may be done later, or never. */
  | { readonly kind: "unknown" };

interface Stream {
  records: StoredRecord[];
  synced: { exists: boolean; length: number };
}

/** Picks one of `count` outcomes; 0 is the fault-free outcome. */
export type Choose = (count: number, label: string) => number;

/** `one`: a single server with a periodic sync. `remote`: the same, reached through other servers, so a power loss
 *  breaks no connection; only batches are lost. `three`: three replicas; every acknowledged record is kept. */
export type Store = "one" | "remote" | "three";

export class LogService {
  readonly #streams = new Map<number, Stream>();
  readonly #store: Store;
  readonly #choose: Choose;

  constructor(store: Store, choose: Choose) {
    this.#store = store;
    this.#choose = choose;
  }

  run(operation: Operation): Answer {
    switch (operation.op) {
      case "list":
        return { kind: "listed", segments: [...this.#streams.keys()].sort((a, b) => a - b) };
      case "create":
        return this.#create(operation.segment);
      case "append":
      case "read":
      case "delete": {
        const stream = this.#streams.get(operation.segment);
        return stream === undefined ? { kind: "refused", why: "no-stream" } : this.#runOn(stream, operation);
      }
    }
  }

  #runOn(stream: Stream, operation: StreamOperation): Answer {
    switch (operation.op) {
      case "append":
        return this.#append(stream, operation.expected, operation.record);
      case "read":
        return { kind: "read", records: [...stream.records] };
      case "delete":
        this.#streams.delete(operation.segment);
        return { kind: "done" };
    }
  }

  /** The stored records, for checkers. */
  get contents(): ReadonlyMap<number, readonly StoredRecord[]> {
    return new Map([...this.#streams].map(([segment, { records }]) => [segment, records]));
  }

  sync(): void {
    for (const stream of this.#streams.values())
      stream.synced = { exists: true, length: stream.records.length };
  }

  /** @param mayLose true if the records of a segment from `length` on may be lost; the fault model decides */
  losePower(mayLose: (segment: number, length: number) => boolean): string {
    const lost: string[] = [];
    for (const [segment, stream] of [...this.#streams]) {
      if (!stream.synced.exists && mayLose(segment, 0) && this.#choose(2, "stream lost") === 1) {
        this.#streams.delete(segment);
        lost.push(`segment ${segment}`);
        continue;
      }
      const lengths = range(stream.synced.length, stream.records.length).filter((length) =>
        mayLose(segment, length),
      );
      const cut = this.#choose(lengths.length + 1, "end lost");
      if (cut > 0) {
        const length = lengths[cut - 1] ?? stream.records.length;
        lost.push(`${stream.records.length - length} of segment ${segment}`);
        stream.records.length = length;
      }
    }
    this.sync();
    return lost.join(", ") || "nothing";
  }

  /** A record within a segment is lost; the position stays. */
  loseWithin(segment: number, position: number): void {
    const stream = this.#streams.get(segment);
    if (stream !== undefined && position < stream.records.length) stream.records[position] = { kind: "lost" };
  }

  #create(segment: number): Answer {
    if (!this.#streams.has(segment))
      this.#streams.set(segment, {
        records: [],
        synced: { exists: this.#store === "three", length: 0 },
      });
    return { kind: "done" };
  }

  #append(stream: Stream, expected: number | undefined, record: StoredRecord): Answer {
    if (expected !== undefined && stream.records.length !== expected)
      return { kind: "refused", why: "wrong-position" };
    stream.records.push(record);
    return { kind: "stored", position: stream.records.length };
  }
}

/** `from`, … `to - 1`. */
function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);
}
