// How a state's journal time moves. With it moves the horizon of idempotency, which is so much *led* time ago: what
// passed between two terms does not count. A coordinator that starts where nobody led takes its wall clock's word for
// how long that was (docs/adr/0010), and a wall clock that is a day ahead must not make a swarm forget which tasks have
// ended.

import type { Instant } from "../ids.ts";
import type { Event } from "./event.ts";
import type { SwarmState } from "./state.ts";

/** Moves on to the time of a batch. @param at not before the state's · @param first of its events */
export function passTo(state: SwarmState, at: Instant, first: Pick<Event, "type">): void {
  const wasLed = first.type !== "TermStarted" || state.term === 0;
  if (wasLed) state.horizonAt = (state.horizonAt + at - state.at) as Instant;
  state.at = at;
}
