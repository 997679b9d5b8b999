// A transcript of contention.jsonl: a shared resource and its operations.

export type ContentionOp =
  | { readonly op: "submit"; readonly agent: string; readonly weight: number }
  | { readonly op: "acquire"; readonly agent: string; readonly granted: boolean }
  | {
      readonly op: "release";
      readonly agent: string;
      readonly tick: number;
      readonly granted: string | null;
    };

export interface ContentionVector {
  readonly capacity: number;
  readonly alpha: number;
  readonly agents: readonly string[];
  readonly ops: readonly ContentionOp[];
}
