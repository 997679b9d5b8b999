// What a numbered check of a state is, and what it finds. The checks stand in invariants.ts, queue-invariants.ts,
// ledger-invariants.ts, slot-invariants.ts and succession.ts.

import type { SwarmState } from "../state/state.ts";
import type { Roll } from "./roll.ts";

/** One broken invariant. */
export interface Violation {
  /** As in docs/invariants.md. */
  readonly number: number;
  readonly name: string;
  /** What was found, naming what it was found of. */
  readonly sentence: string;
}

export interface Invariant {
  readonly number: number;
  readonly name: string;
  /** @param roll of this very state */
  readonly find: (state: SwarmState, roll: Roll) => Iterable<string>;
}
