// Whom a simulated world takes for alive: what counts as lost in its journal must have gone, or been kept from being
// heard.

import { describe, expect, it } from "vitest";
import { incarnation } from "../../../src/ids.ts";
import type { Fault } from "../../../src/sim/fault/fault.ts";
import { planOf, runSeed } from "../../../src/sim/fault/run-seed.ts";
import { World } from "../../../src/sim/fault/world.ts";

const request = { seed: 8, forMs: 25_000, without: [], operations: [] };
const agent = "a2";
/** By then everybody has joined, and H is over. */
const lapsedMs = 18_000;

/** What is found where the journal counts a life of the agent as lost, by default the one that it has. */
async function lapsed(schedule: readonly Fault[], named?: string): Promise<readonly string[]> {
  const { workload } = planOf(request);
  const world = new World({ ...request, workload, schedule, untilMs: request.forMs });
  const { habitat, truth } = world;
  habitat.engine.after(lapsedMs, "lapsed", () => {
    const row = truth.state.agentById.get(agent as never);
    if (row === undefined) throw new Error(`${agent} never joined`);
    const life = named === undefined ? row.incarnation : incarnation(named);
    truth.onLapsed({ type: "AgentLeft", agent: row.id, incarnation: life, reason: "lapsed" }, lapsedMs);
  });
  await world.run();
  return habitat.findings.map(({ check }) => check);
}

/** Some seeds, in not all of which the journal counts anybody as lost. */
async function requireRightlyLost(schedule: readonly Fault[]): Promise<void> {
  let lost = 0;
  for (const seed of [3, 4, 5]) {
    const { findings, occurrences } = await runSeed({ ...request, seed, forMs: 35_000, schedule });
    expect(findings).toEqual([]);
    lost += occurrences["agent-lost"] ?? 0;
  }
  expect(lost).toBeGreaterThan(0);
}

describe("an agent that counts as lost", () => {
  it("is found where nothing kept it from being heard", async () => {
    expect(await lapsed([])).toEqual(["the-living-are-not-lost"]);
  });

  it("is found, too, where its process is the second under its id and has joined", async () => {
    expect(await lapsed([{ kind: "crash", atMs: 5_000, forMs: 100, of: agent }])).toEqual([
      "the-living-are-not-lost",
    ]);
  });

  it("is not where something kept it from being heard within H", async () => {
    expect(await lapsed([{ kind: "disconnect", atMs: 14_000, forMs: 500, of: agent }])).toEqual([]);
  });

  it("is not where that was decided while it could not be heard, and stored when it could for long", async () => {
    const schedule: Fault[] = [
      { kind: "cut", atMs: 5_000, forMs: 10_500, of: agent, direction: "up" },
      { kind: "full", atMs: 13_900, forMs: 17_500 },
    ];
    await requireRightlyLost(schedule);
  });

  it("is not where no process is the one that counts as lost", async () => {
    expect(await lapsed([], "ended")).toEqual([]);
  });

  it("is not where its process ended, and the next one's join waits for room in the journal", async () => {
    const schedule: Fault[] = [
      { kind: "crash", atMs: 5_000, forMs: 7_000, of: agent }, // its silence is on record before there is no room
      { kind: "full", atMs: 8_500, forMs: 18_500 },
    ];
    await requireRightlyLost(schedule);
  });
});
