// The injected clock in the form that XState takes (`createActor(machine, { clock })`), so that the delays of a chart
// follow virtual time.

import type { ActorOptions, AnyActorLogic } from "xstate";
import type { Clock } from "./clock.ts";

type ChartClock = NonNullable<ActorOptions<AnyActorLogic>["clock"]>;

export function chartClock(clock: Pick<Clock, "after">): ChartClock {
  return {
    setTimeout: (run, ms) => clock.after(ms, () => run()),
    clearTimeout: (cancel: () => void) => cancel(),
  };
}
