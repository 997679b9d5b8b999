// The types of a numbered check of a state, and of a violation. The checks stand in invariants.ts, queue-invariants.ts,
// ledger-invariants.ts, slot-invariants.ts and succession.ts.

import type { SwarmState } from "../state/state.ts";
import type { Roll } from "./roll.ts";

/** One broken invariant. */
export interface Violation {
  /** As in docs/invariants.md. */
  readonly number: number;
  readonly name: string;
  /** The finding, with the name of its subject. */
  readonly sentence: string;
}

export interface Invariant {
  readonly number: number;
  readonly name: string;
  /** @param roll the roll of the same state */
  readonly find: (state: SwarmState, roll: Roll) => Iterable<string>;
}
