// What a client or an agent process is started with, told and tells: its argument and its messages.

export interface ProcessStart {
  readonly node: string;
  readonly urls: readonly string[];
  readonly swarm: string;
  readonly historyFile: string;
  readonly seed: string;
  /** Of clients: tasks a second, how many may be open at once, and how large they are. */
  readonly ratePerSecond: number;
  readonly openMax: number;
  readonly payloadBytes: number;
  /** Of so many tasks one is recorded: those whose number in the id is a multiple. */
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
