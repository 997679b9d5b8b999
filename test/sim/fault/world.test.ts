// Agents declared lost by the journal of a simulated world must have ended, or must have been unreachable.

import { describe, expect, it } from "vitest";
import { incarnation } from "../../../src/ids.ts";
import type { Fault } from "../../../src/sim/fault/fault.ts";
import { planOf, runSeed } from "../../../src/sim/fault/run-seed.ts";
import { World } from "../../../src/sim/fault/world.ts";

const request = { seed: 8, forMs: 25_000, without: [], operations: [] };
const agent = "a2";
/** By then every node has joined, and H is over. */
const lapsedMs = 18_000;

/** The findings when the journal declares a session of the agent lost; default: the current session. */
async function lapsed(schedule: readonly Fault[], named?: string): Promise<readonly string[]> {
  const { workload } = planOf(request);
  const world = new World({ ...request, workload, schedule, untilMs: request.forMs });
  const { habitat, truth } = world;
  habitat.engine.after(lapsedMs, "lapsed", () => {
    const row = truth.state.agentById.get(agent as never);
    if (row === undefined) throw new Error(`${agent} never joined`);
    const session = named === undefined ? row.incarnation : incarnation(named);
    truth.onLapsed({ type: "AgentLeft", agent: row.id, incarnation: session, reason: "lapsed" }, lapsedMs);
  });
  await world.run();
  return habitat.findings.map(({ check }) => check);
}

/** Some seeds; not in all of them an agent is declared lost. */
async function requireRightlyLost(schedule: readonly Fault[]): Promise<void> {
  let lost = 0;
  for (const seed of [3, 4, 5]) {
    const { findings, occurrences } = await runSeed({ ...request, seed, forMs: 35_000, schedule });
    expect(findings).toEqual([]);
    lost += occurrences["agent-lost"] ?? 0;
  }
  expect(lost).toBeGreaterThan(0);
}

describe("an agent declared lost", () => {
  it("is found if its messages could be heard", async () => {
    expect(await lapsed([])).toEqual(["the-living-are-not-lost"]);
  });

  it("is found if its process is the second under the id and has joined", async () => {
    expect(await lapsed([{ kind: "crash", atMs: 5_000, forMs: 100, of: agent }])).toEqual([
      "the-living-are-not-lost",
    ]);
  });

  it("is no finding if a fault stopped its messages within H", async () => {
    expect(await lapsed([{ kind: "disconnect", atMs: 14_000, forMs: 500, of: agent }])).toEqual([]);
  });

  it("is no finding if decided during the fault and stored long after", async () => {
    const schedule: Fault[] = [
      { kind: "cut", atMs: 5_000, forMs: 10_500, of: agent, direction: "up" },
      { kind: "full", atMs: 13_900, forMs: 17_500 },
    ];
    await requireRightlyLost(schedule);
  });

  it("is no finding if no process runs the lost session", async () => {
    expect(await lapsed([], "ended")).toEqual([]);
  });

  it("is no finding if its process ended and the successor's join waits for room in the journal", async () => {
    const schedule: Fault[] = [
      { kind: "crash", atMs: 5_000, forMs: 7_000, of: agent }, // the loss is stored before the journal is full
      { kind: "full", atMs: 8_500, forMs: 18_500 },
    ];
    await requireRightlyLost(schedule);
  });
});
