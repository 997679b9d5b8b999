// The injected clock in the form of XState (`createActor(machine, { clock })`), so that delays of charts follow
// virtual time.

import type { ActorOptions, AnyActorLogic } from "xstate";
import type { Clock } from "./clock.ts";

type ChartClock = NonNullable<ActorOptions<AnyActorLogic>["clock"]>;

export function chartClock(clock: Pick<Clock, "after">): ChartClock {
  return {
    setTimeout: (run, ms) => clock.after(ms, () => run()),
    clearTimeout: (cancel: () => void) => cancel(),
  };
}
