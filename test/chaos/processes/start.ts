// Start argument and messages of a client or agent process.

export interface ProcessStart {
  readonly node: string;
  readonly urls: readonly string[];
  readonly swarm: string;
  readonly historyFile: string;
  readonly seed: string;
  /** For clients: tasks per second, maximum number of open tasks, and payload size. */
  readonly ratePerSecond: number;
  readonly openMax: number;
  readonly payloadBytes: number;
  /** Records one task in this many: tasks with a multiple as the number in the id. */
  readonly recordsEvery: number;
}

export type ClientOrders = { readonly type: "stop-submitting" } | { readonly type: "end" };

export type ClientReport =
  | { readonly type: "ready" }
  | { readonly type: "trouble"; readonly sentence: string }
  | {
      readonly type: "counts";
      readonly accepted: number;
      readonly ended: number;
      readonly unknown: number;
      readonly refused: number;
      readonly open: number;
    };
