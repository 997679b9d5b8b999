// The content of a segment in the model.

/** A decision of the leader in the model: the ids of accepted tasks. */
export interface Batch {
  readonly term: number;
  readonly idx: number;
  readonly prev: string;
  readonly hash: string;
  readonly tasks: readonly string[];
  readonly session: string;
}

/** `session` names the coordinator's process that wrote the record. */
export type StoredRecord =
  | { readonly kind: "claim"; readonly segment: number; readonly session: string }
  | {
      readonly kind: "base";
      readonly session: string;
      readonly part: number;
      readonly log: Log;
      readonly manifest: string;
    }
  | { readonly kind: "copy"; readonly session: string; readonly batch: Batch }
  | {
      readonly kind: "opened";
      readonly segment: number;
      readonly session: string;
      readonly previous: SegmentEnd | undefined;
      readonly manifest: string | undefined;
      readonly hash: string;
    }
  | { readonly kind: "batch"; readonly session: string; readonly batch: Batch }
  | { readonly kind: "closing"; readonly session: string }
  /** The first seal ends the segment: records behind the seal do not count. */
  | { readonly kind: "seal"; readonly session: string }
  | { readonly kind: "foreign"; readonly session: string }
  | { readonly kind: "lost" };

export interface SegmentEnd {
  readonly segment: number;
  readonly idx: number;
  readonly hash: string;
}

/** A term with committed batches. The state keeps all terms (rule 11). */
export interface Term {
  readonly term: number;
  /** The hash of the term's `Opened`. */
  readonly opened: string;
  readonly firstIdx: number;
}

/** The log held by a coordinator: all committed batches, and their terms. */
export interface Log {
  readonly chain: readonly Batch[];
  readonly terms: readonly Term[];
}
