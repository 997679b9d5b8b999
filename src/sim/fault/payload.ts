// The orders of a simulated task to its handler, as data in the payload: the workload alone determines the work.

import type { InfrastructureErrorOptions } from "../../agent/hold-options.ts";

export interface Orders {
  /**
   * The end of the attempt. `infrastructure` and `fail` apply up to attempt `times`. `hang` lasts until the abort,
   * `stay` even beyond; `kill` also ends the agent.
   */
  readonly does: "complete" | "fail" | "infrastructure" | "invalid" | "hang" | "stay" | "kill";
  /** Duration before the end, ms. */
  readonly ms: number;
  /** The lower of the task's limits on the attempt and on its silence, ms. */
  readonly limitMs: number;
  readonly times?: number;
  /** With `infrastructure`: what the error asks to hold; a time of at most a few seconds. */
  readonly hold?: InfrastructureErrorOptions;
  /** Tokens to report. */
  readonly tokens?: number;
  /** Slots to acquire before the work. */
  readonly acquires?: readonly string[];
  readonly reportsProgress?: true;
  /** Duration after all faults heal, ms; default: nearly none. */
  readonly healedMs?: number;
}

export function payloadOf(orders: Orders): string {
  return JSON.stringify(orders);
}

export function ordersOf(payload: string): Orders {
  return JSON.parse(payload) as Orders;
}
