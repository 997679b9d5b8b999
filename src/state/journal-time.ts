// How a state's journal time moves. The horizon of idempotency moves with it and lies a fixed span of *led* time ago:
// time between two terms does not count. A coordinator that starts without a leader takes its wall clock's time for the
// length of the pause (docs/adr/0010). A wall clock that is a day ahead must not make a swarm forget which tasks have
// ended.

import type { Instant } from "../ids.ts";
import type { Event } from "./event.ts";
import type { SwarmState } from "./state.ts";

/** Moves on to the time of a batch. @param at not before the state's · @param first the first of the batch's events */
export function passTo(state: SwarmState, at: Instant, first: Pick<Event, "type">): void {
  const wasLed = first.type !== "TermStarted" || state.term === 0;
  if (wasLed) state.horizonAt = (state.horizonAt + at - state.at) as Instant;
  state.at = at;
}
