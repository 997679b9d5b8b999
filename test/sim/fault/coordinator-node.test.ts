// A simulated machine reports the batches of its coordinator, which limits faults of the store. It also has findings
// about its coordinator.

import { expect, it } from "vitest";
import { batchIndex } from "../../../src/ids.ts";
import { encodeBatch } from "../../../src/journal/records.ts";
import { CoordinatorNode } from "../../../src/sim/fault/coordinator-node.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import type { Condition } from "../../../src/sim/fault/link.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const lost: Condition = {
  lossShare: 1,
  duplicateShare: 0,
  reorderShare: 0,
  lateShare: 0,
  lateMs: 0,
  heldUntilMs: 0,
};

let habitat: Habitat;
let truth: JournalTruth;
let nodes: readonly CoordinatorNode[];

/** @param isBlind the nodes see only the first term of the journal, in an unsealed segment */
function setUp({ isBlind = false } = {}): void {
  habitat = new Habitat(new SeededRandom("test"));
  truth = new JournalTruth(habitat);
  const retention = { ageMs: 60_000, bytes: Number.POSITIVE_INFINITY };
  const first = { readOn: () => ({ term: 1 }), isWhole: true, isSealed: false } as unknown as JournalTruth;
  nodes = ["c1", "c2"].map(
    (id) =>
      new CoordinatorNode(
        { id, leaderTimeoutMs: 1_000, everyEvents: 1_000, retention, baseSyncMs: 1_000 },
        habitat,
        isBlind ? first : truth,
      ),
  );
}

const run = (ms: number, isEnough = () => false) =>
  habitat.engine.run(habitat.engine.nowMs + ms, () => {
    truth.readOn();
    return isEnough();
  });

/** The leader of the first term. */
async function elect(): Promise<CoordinatorNode> {
  for (const node of nodes) node.start();
  await run(10_000, () => nodes.some(({ isLeading }) => isLeading));
  await run(500);
  return nodes.find(({ isLeading }) => isLeading) as CoordinatorNode;
}

/** A successor leads the second term, unknown to the leader of the first. */
async function depose({ id }: CoordinatorNode): Promise<void> {
  const link = habitat.linkOf(`${id}/journal`);
  for (const direction of ["up", "down"] as const) link.set(direction, lost);
  await run(20_000, () => truth.state.term === 2);
}

it("a leader counts as holding the whole journal, even a deposed leader that does not know", async () => {
  setUp();
  const deposed = await elect();
  expect(deposed.knownIdx).toBe(Number.POSITIVE_INFINITY);
  expect(nodes.find((node) => node !== deposed)?.knownIdx).toBe(truth.state.idx);
  await depose(deposed);
  expect(deposed.isLeading).toBe(true);
  expect(deposed.knownIdx).toBe(Number.POSITIVE_INFINITY);
  expect(habitat.findings).toEqual([]);
});

it.each([
  ["is not found after a new term began", false, []],
  ["is found without a new term", true, ["leaders-lead-on"]],
])("a leader that ends the term %s", async (_, isBlind, findings) => {
  setUp({ isBlind });
  const deposed = await elect();
  await depose(deposed);
  for (const direction of ["up", "down"] as const)
    habitat.linkOf(`${deposed.id}/journal`).set(direction, undefined);
  await run(20_000, () => !deposed.isLeading);
  expect(deposed.isLeading).toBe(false);
  expect(habitat.findings.map(({ check }) => check)).toEqual(findings);
});

/** The leader's connection breaks, but not its link to the journal. */
async function disconnect({ id }: CoordinatorNode, forMs: number): Promise<void> {
  const link = habitat.linkOf(id);
  link.isDown = true;
  habitat.disconnect(id);
  await run(forMs);
  link.isDown = false;
}

it("a leader unreachable for long may end its term", async () => {
  setUp();
  const isolated = await elect();
  await disconnect(isolated, 5_000);
  expect([isolated.isLeading, truth.state.term]).toEqual([false, 2]);
  expect(habitat.findings).toEqual([]);
  expect(habitat.occurrences.counts()).toMatchObject({ "isolated-leader-stepped-down": 1 });
});

it("a leader that ends the term after a short break, with an unsealed segment, is found", async () => {
  setUp({ isBlind: true });
  const leader = await elect();
  await disconnect(leader, 2_000);
  if (leader.isLeading) await run(3_000);
  if (leader.isLeading) await depose(leader);
  habitat.linkOf(`${leader.id}/journal`).set("up", undefined);
  habitat.linkOf(`${leader.id}/journal`).set("down", undefined);
  await run(20_000, () => !leader.isLeading);
  expect(habitat.findings.map(({ check }) => check)).toEqual(["leaders-lead-on"]);
});

it("a halted coordinator is found", async () => {
  setUp();
  await elect();
  const { journal, term, idx, hash } = truth.tail;
  const session = truth.live?.opened.session ?? "";
  const header = { journal, session, term, idx: batchIndex(idx + 1), prev: hash, at: truth.state.at };
  habitat.newestStream?.intrude(
    encodeBatch(header, [JSON.stringify({ type: "TaskReleased", task: "never-submitted" })]),
  );
  const isFound = () => habitat.findings.some(({ check }) => check === "coordinators-go-on");
  await run(10_000, isFound);
  expect(isFound()).toBe(true);
});
