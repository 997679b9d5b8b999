// A journal with one or more terms: a coordinator in this process leads, accepts tasks without an agent, and ends.

import { connect } from "../../src/client/connect.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { type ProbedCoordinator, startProbedCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import type { Journal } from "../../src/journal/journal.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { silentLogger } from "../support/swarm.ts";

export const swarm = swarmId("default");
/** Tasks in each term: `t<term>-<n>`. */
const TASKS = 3;

export async function leadTerm(journal: Journal, term: number): Promise<void> {
  await leading(journal, `c${term}`, async (_, hub) => {
    const client = await connect({ swarm, transport: hub.connect() });
    for (let n = 0; n < TASKS; n += 1) await client.submit({ id: `t${term}-${n}`, kind: "k", payload: "" });
    await client.close();
  });
}

/** Runs `use` while its own coordinator leads. */
export async function leading(
  journal: Journal,
  id: string,
  use: (coordinator: ProbedCoordinator, hub: MemoryHub) => Promise<void>,
): Promise<void> {
  const hub = new MemoryHub({ clock: systemClock });
  const coordinator = await startProbedCoordinator({
    ...{ id, swarm, journal, transport: hub.connect() },
    ...{ clock: systemClock, random: systemRandom, logger: silentLogger },
  });
  await coordinator.whenLeading();
  await use(coordinator, hub);
  await coordinator.stop();
}
