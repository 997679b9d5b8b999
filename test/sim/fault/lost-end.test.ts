// A loss takes the last record of a paused leader's segment, and the successor's seal takes the position of the lost
// record. The leader's next append then finds the expected position, behind the seal.

import { expect, it } from "vitest";
import { CoordinatorNode } from "../../../src/sim/fault/coordinator-node.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import { SwarmVictims } from "../../../src/sim/fault/victims.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

/** Longer than a loss must last until it counts. */
const pauseMs = 8_000;
const STEP_MS = 5;

let habitat: Habitat;
let truth: JournalTruth;
let nodes: readonly CoordinatorNode[];
let victims: SwarmVictims;

function setUp(): void {
  habitat = new Habitat(new SeededRandom("lost-end"));
  truth = new JournalTruth(habitat);
  const retention = { ageMs: 60_000, bytes: Number.POSITIVE_INFINITY };
  const pace = { everyEvents: 1_000, retention, baseSyncMs: 1_000 };
  nodes = ["c1", "c2"].map(
    (id) => new CoordinatorNode({ id, leaderTimeoutMs: 1_000, ...pace }, habitat, truth),
  );
  truth.pending = () => nodes.flatMap(({ pending }) => pending);
  victims = new SwarmVictims({ habitat, truth, coordinators: nodes, agents: [], clients: [] });
  for (const node of nodes) node.start();
}

const run = (ms: number, afterEach = () => undefined) =>
  habitat.engine.run(habitat.engine.nowMs + ms, () => {
    truth.readOn();
    afterEach();
    return false;
  });

/** The leader, once no batch is in flight and the standby has read the journal. */
async function restingLeader(): Promise<CoordinatorNode | undefined> {
  const isAtRest = () =>
    nodes.every(({ pending, knownIdx = 0 }) => pending.length === 0 && knownIdx >= truth.state.idx);
  while (!isAtRest()) await run(STEP_MS);
  return nodes.find(({ isLeading }) => isLeading);
}

it("a leader that resumes behind the seal commits nothing, and stands by", async () => {
  setUp();
  await run(10_000);
  const leader = await restingLeader();
  const { segment } = truth;
  const stream = habitat.segmentStream(segment);
  const sealedAt = () => stream?.firstOf(habitat.subjects.segmentSealed(segment));
  victims.pause(leader?.id ?? "", pauseMs);
  const end = stream?.lastSeq;
  victims.cutTail(1);
  const committed: unknown[] = [];
  await run(pauseMs + 5_000, () => {
    const isBehindSeal = (stream?.lastSeq ?? 0) > (sealedAt() ?? Number.POSITIVE_INFINITY);
    if (isBehindSeal && leader?.ledHash !== undefined) committed.push(leader.ledHash);
    return undefined;
  });
  expect([sealedAt(), stream?.lastSeq]).toEqual([end, (end ?? 0) + 1]);
  expect(committed).toEqual([]);
  expect([leader?.isLeading, truth.state.term, habitat.findings]).toEqual([false, segment + 1, []]);
});
