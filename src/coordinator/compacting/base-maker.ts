// The port of the maker of a leader's next segment. In production a thread of the process (thread-base-maker.ts); in
// tests, in simulations and for a journal in memory the same function beside the leader, in slices.

import { type MadeSegment, type MakeDeps, type MakeOrder, makeNextSegment } from "./make-next-segment.ts";

/** One segment at a time. */
export interface BaseMaker {
  /** An abort ends it as soon as possible; the unfinished segment is never opened. @throws as `makeNextSegment` */
  make(order: MakeOrder, signal: AbortSignal): Promise<MadeSegment>;
}

export function baseMakerHere(deps: MakeDeps): BaseMaker {
  return { make: (order, signal) => makeNextSegment(deps, order, signal) };
}
