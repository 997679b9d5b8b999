// What a simulated task asks its handler to do: data in its payload, so that a workload says everything.

export interface Orders {
  /** What becomes of the attempt. `infrastructure` and `fail` only up to attempt `times`; `hang` until it is aborted,
   *  `deaf` not even then; `kill` takes the agent with it. */
  readonly does: "complete" | "fail" | "infrastructure" | "invalid" | "hang" | "deaf" | "kill";
  /** After so long, ms. */
  readonly ms: number;
  /** The task's own limit on an attempt, or on its silence, ms: the lower of the two. */
  readonly limitMs: number;
  readonly times?: number;
  /** Tokens that it reports. */
  readonly tokens?: number;
  /** Slots it works under. */
  readonly acquires?: readonly string[];
  readonly reportsProgress?: true;
  /** What it takes once all is well, ms; default: hardly anything. */
  readonly healedMs?: number;
}

export function payloadOf(orders: Orders): string {
  return JSON.stringify(orders);
}

export function ordersOf(payload: string): Orders {
  return JSON.parse(payload) as Orders;
}
