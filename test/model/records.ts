// What a segment of the modelled journal holds.

/** One decision of the leader in the model: it holds the ids of the tasks that it accepts. */
export interface Batch {
  readonly term: number;
  readonly idx: number;
  readonly prev: string;
  readonly hash: string;
  readonly tasks: readonly string[];
  readonly life: string;
}

/** `life` is the coordinator's process that wrote the record. */
export type StoredRecord =
  | { readonly kind: "claim"; readonly segment: number; readonly life: string }
  | {
      readonly kind: "base";
      readonly life: string;
      readonly part: number;
      readonly log: Log;
      readonly manifest: string;
    }
  | { readonly kind: "copy"; readonly life: string; readonly batch: Batch }
  | {
      readonly kind: "opened";
      readonly segment: number;
      readonly life: string;
      readonly previous: SegmentEnd | undefined;
      readonly manifest: string | undefined;
      readonly hash: string;
    }
  | { readonly kind: "batch"; readonly life: string; readonly batch: Batch }
  | { readonly kind: "closing"; readonly life: string }
  /** The first one ends the segment: no record behind it counts. */
  | { readonly kind: "seal"; readonly life: string }
  | { readonly kind: "foreign"; readonly life: string }
  | { readonly kind: "lost" };

export interface SegmentEnd {
  readonly segment: number;
  readonly idx: number;
  readonly hash: string;
}

/** A term that batches were committed in: the state keeps all of them (design section 6, rule 11). */
export interface Term {
  readonly term: number;
  /** The hash of the term's `Opened`. */
  readonly opened: string;
  readonly firstIdx: number;
}

/** The log as a coordinator holds it: all committed batches, and the terms that they belong to. */
export interface Log {
  readonly line: readonly Batch[];
  readonly terms: readonly Term[];
}
