// What a simulated machine says of its coordinator, for faults that would lose what nobody has ask it; and what it
// finds of it.

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

/** @param isBlind the nodes take the journal for one of the first term alone, in a segment that nobody sealed */
function setUp({ isBlind = false } = {}): void {
  habitat = new Habitat(new SeededRandom("test"));
  truth = new JournalTruth(habitat);
  const retention = { ageMs: 60_000, bytes: Number.POSITIVE_INFINITY };
  const first = { readOn: () => ({ term: 1 }), isWhole: true, isSealed: false } as unknown as JournalTruth;
  nodes = ["c1", "c2"].map(
    (id) =>
      new CoordinatorNode(
        { id, leaderTimeoutMs: 1_000, everyEvents: 1_000, retention, snapshotSyncMs: 1_000 },
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

/** Who leads the first term. */
async function elect(): Promise<CoordinatorNode> {
  for (const node of nodes) node.start();
  await run(10_000, () => nodes.some(({ isLeading }) => isLeading));
  await run(500);
  return nodes.find(({ isLeading }) => isLeading) as CoordinatorNode;
}

/** Another leads the second term, and the leader of the first does not hear of it. */
async function depose({ id }: CoordinatorNode): Promise<void> {
  const link = habitat.linkOf(`${id}/journal`);
  for (const direction of ["up", "down"] as const) link.set(direction, lost);
  await run(20_000, () => truth.state.term === 2);
}

it("a leader counts as having the journal, also one that was deposed and has not heard of it", async () => {
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
  ["is not found where another has begun", false, []],
  ["is found where no other has begun", true, ["leaders-lead-on"]],
])("a leader that gives up its term %s", async (_, isBlind, findings) => {
  setUp({ isBlind });
  const deposed = await elect();
  await depose(deposed);
  for (const direction of ["up", "down"] as const)
    habitat.linkOf(`${deposed.id}/journal`).set(direction, undefined);
  await run(20_000, () => !deposed.isLeading);
  expect(deposed.isLeading).toBe(false);
  expect(habitat.findings.map(({ check }) => check)).toEqual(findings);
});

/** Its connection breaks, and its journal's does not. */
async function disconnect({ id }: CoordinatorNode, forMs: number): Promise<void> {
  const link = habitat.linkOf(id);
  link.isDown = true;
  habitat.disconnect(id);
  await run(forMs);
  link.isDown = false;
}

it("a leader that nobody could reach for long may end its term", async () => {
  setUp();
  const deaf = await elect();
  await disconnect(deaf, 5_000);
  expect([deaf.isLeading, truth.state.term]).toEqual([false, 2]);
  expect(habitat.findings).toEqual([]);
  expect(habitat.occurrences.counts()).toMatchObject({ "deaf-leader-stepped-down": 1 });
});

it("a leader that gives up its term is found where it was away for less, and no segment was sealed", async () => {
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

it("one that halts is found", async () => {
  setUp();
  await elect();
  const { journal, term, idx, hash } = truth.tail;
  const life = truth.live?.opened.life ?? "";
  const header = { journal, life, term, idx: batchIndex(idx + 1), prev: hash, at: truth.state.at };
  habitat.newestStream?.intrude(
    encodeBatch(header, [JSON.stringify({ type: "TaskReleased", task: "never-submitted" })]),
  );
  const isFound = () => habitat.findings.some(({ check }) => check === "coordinators-go-on");
  await run(10_000, isFound);
  expect(isFound()).toBe(true);
});
