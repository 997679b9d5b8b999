// A client for tests: over a hub, on a manual clock, with readable ids.

import { type ConnectOptions, connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { TaskRequest } from "../../src/client/task-request.ts";
import type { Clock, Random } from "../../src/clock.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { FakeLeader } from "./fake-leader.ts";
import { ManualClock } from "./manual-clock.ts";

/** Constant randomness, and ids in order. */
export function plainRandom(): Random {
  let made = 0;
  return {
    next: () => 0.5,
    id: (length) => {
      made += 1;
      return `r${made}`.padEnd(length, "x");
    },
  };
}

export interface Fixture {
  readonly hub: MemoryHub;
  readonly clock: ManualClock;
  readonly transport: Transport;
  readonly swarm: Swarm;
  readonly leader: FakeLeader;
}

/** With a fake leader that is not started yet. */
export async function aClient(
  options: ConnectOptions & { readonly maxPayloadBytes?: number } = {},
): Promise<Fixture> {
  const { maxPayloadBytes, ...connectOptions } = options;
  const clock = new ManualClock();
  const hub = new MemoryHub({
    clock: clock as Clock,
    ...(maxPayloadBytes === undefined ? {} : { maxPayloadBytes }),
  });
  const transport = hub.connect();
  const swarm = await connect({ swarm: "test", transport, clock, random: plainRandom(), ...connectOptions });
  return { hub, clock, transport, swarm, leader: new FakeLeader(hub) };
}

export function aTask(overrides: Partial<TaskRequest> = {}): TaskRequest {
  return { kind: "count", payload: "hello", ...overrides };
}

/** The present state of a promise, without waiting. */
export function watch<Value>(promise: Promise<Value>): {
  state: "pending" | "fulfilled" | "rejected";
  value?: Value;
  error?: unknown;
} {
  const watched: ReturnType<typeof watch<Value>> = { state: "pending" };
  promise.then(
    (value) => Object.assign(watched, { state: "fulfilled", value }),
    (error: unknown) => Object.assign(watched, { state: "rejected", error }),
  );
  return watched;
}
