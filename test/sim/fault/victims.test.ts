// Targets of faults: each loss of the store stays inside the fault model (docs/fault-model.md), and nodes are spared
// no longer than needed.

import { beforeEach, describe, expect, it } from "vitest";
import { streamNameOf } from "../../../src/journal/stream/settings.ts";
import { CoordinatorNode } from "../../../src/sim/fault/coordinator-node.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import type { Occurrence } from "../../../src/sim/fault/occurrences.ts";
import { SwarmVictims } from "../../../src/sim/fault/victims.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const lost = { lossShare: 1, duplicateShare: 0, reorderShare: 0, lateShare: 0, lateMs: 0, heldUntilMs: 0 };

let habitat: Habitat;
let truth: JournalTruth;
let nodes: readonly CoordinatorNode[];
let victims: SwarmVictims;

const run = (ms: number, isEnough = () => false) =>
  habitat.engine.run(habitat.engine.nowMs + ms, () => {
    truth.readOn();
    return isEnough();
  });
const sessions = () => nodes.map(({ session }) => session?.name);
const lastSeq = () => habitat.newestStream?.lastSeq ?? 0;
const standby = () => nodes.find(({ isLeading }) => !isLeading)?.id ?? "";
const isLed = () => nodes.some(({ isLeading }) => isLeading);

function setReach(node: string, condition: typeof lost | undefined): void {
  for (const direction of ["up", "down"] as const)
    habitat.linkOf(`${node}/journal`).set(direction, condition);
}

beforeEach(async () => {
  habitat = new Habitat(new SeededRandom("victims"));
  truth = new JournalTruth(habitat);
  const retention = { ageMs: 60_000, bytes: Number.POSITIVE_INFINITY };
  const pace = { everyEvents: 1_000, retention, baseSyncMs: 1_000 };
  nodes = ["c1", "c2"].map(
    (id) => new CoordinatorNode({ id, leaderTimeoutMs: 1_000, ...pace }, habitat, truth),
  );
  truth.pending = () => nodes.flatMap(({ pending }) => pending);
  victims = new SwarmVictims({ habitat, truth, coordinators: nodes, agents: [], clients: [] });
  for (const node of nodes) node.start();
  await run(10_000);
});

const losses: readonly (readonly [Occurrence, () => void])[] = [
  ["tail-cut", () => victims.cutTail(2)],
  ["segment-lost", () => victims.loseSegment()],
  ["gap-made", () => victims.makeGap(2)],
  ["bit-flipped", () => victims.flipBit()],
];

describe("a loss of the store", () => {
  it.each(losses)(
    "%s strikes if all coordinators hold the lost records, and the log goes on from the copies",
    async (name, lose) => {
      const { idx, term } = truth.state;
      const before = truth.segment;
      lose();
      expect([truth.isWhole, habitat.occurrences.counts()[name]]).toEqual([false, 1]);
      await run(20_000, () => truth.isWhole);
      expect([truth.isWhole, truth.state.idx >= idx, truth.segment > before]).toEqual([true, true, true]);
      expect(truth.batches.length).toBe(truth.state.idx);
      await run(10_000);
      expect([isLed(), truth.state.term > term, habitat.findings]).toEqual([true, true, []]);
    },
  );

  it.each<readonly [string, () => unknown]>([
    ["a coordinator does not run", () => victims.crash(standby(), 500)],
    ["a coordinator is stopping", () => victims.stop(standby(), 500)],
    [
      "a standby has not read the whole journal",
      async () => {
        setReach(standby(), lost);
        await run(1_000);
      },
    ],
    ["no coordinator leads", () => victims.crash(victims.leader(), 500)],
    [
      "the newest segment is not the led segment",
      () => {
        const number = 1 + (habitat.segmentNumbers().at(-1) ?? 0);
        const config = { name: streamNameOf({ swarm: habitat.swarm, number }), subjects: [] };
        const body = Buffer.from(JSON.stringify(config));
        habitat.jetStream.handle(`$JS.API.STREAM.CREATE.${config.name}`, body, {}, () => undefined);
        expect(habitat.newestStream?.name).toBe(config.name);
      },
    ],
  ])("does not strike while %s", async (_, happens) => {
    await happens();
    const before = habitat.jetStream.streams.map(({ name, lastSeq: seq }) => [name, seq]);
    for (const [, lose] of losses) lose();
    expect(habitat.jetStream.streams.map(({ name, lastSeq: seq }) => [name, seq])).toEqual(before);
    expect(truth.isWhole).toBe(true);
    for (const [name] of losses) expect(habitat.occurrences.counts()).not.toHaveProperty(name);
  });

  it("bit-flipped does not strike a sealed segment: the restarted standby may be the next leader", () => {
    const subject = habitat.subjects.segmentSealed(truth.segment);
    habitat.jetStream.handle(subject, new Uint8Array(), {}, () => undefined);
    const before = sessions();
    victims.flipBit();
    expect([truth.isSealed, truth.isWhole, sessions()]).toEqual([true, true, before]);
    expect(habitat.occurrences.counts()).not.toHaveProperty("bit-flipped");
  });

  it("bit-flipped does not strike while the leader waits for the journal: a standby may depose the leader", async () => {
    setReach(victims.leader(), lost);
    await run(1_000, () => nodes.some(({ pending }) => pending.length > 0));
    const before = sessions();
    victims.flipBit();
    expect([isLed(), truth.isWhole, sessions()]).toEqual([true, true, before]);
    expect(habitat.occurrences.counts()).not.toHaveProperty("bit-flipped");
  });

  it.each(losses)("%s strikes again once a standby has read on", async (name, lose) => {
    const cut = standby();
    setReach(cut, lost);
    await run(1_000);
    lose();
    expect(habitat.occurrences.counts()).not.toHaveProperty(name);
    setReach(cut, undefined);
    await run(10_000);
    lose();
    expect(habitat.occurrences.counts()).toMatchObject({ [name]: 1 });
  });

  it("keeps the segment's `Opened`, and spares a segment without batches", async () => {
    const { position = 0 } = truth.live ?? {};
    victims.cutTail(1_000);
    expect(lastSeq()).toBe(position);
  });

  it("makes no gap at the end of the segment or before its `Opened`", () => {
    const { position = 0 } = truth.live ?? {};
    const before = lastSeq();
    victims.makeGap(1_000);
    const stream = habitat.newestStream;
    const missing = Array.from({ length: before }, (_, at) => at + 1).filter(
      (seq) => stream?.at(seq) === undefined,
    );
    expect([missing[0], missing.at(-1), lastSeq()]).toEqual([position + 1, before - 1, before]);
  });

  it("of a bit makes a standby reread the journal, for a leader reads only its last batch", () => {
    const [one, other] = sessions();
    victims.flipBit();
    const leads = victims.leader();
    expect(sessions()).toEqual(nodes.map(({ id }, at) => (id === leads ? [one, other][at] : undefined)));
  });
});

describe("while only coordinators hold lost records", () => {
  let before: readonly (string | undefined)[];

  beforeEach(() => {
    victims.cutTail(2);
    before = sessions();
  });

  const strikes: readonly (readonly [string, () => void])[] = [
    ["crash", () => victims.crash("c1", 500)],
    ["blackout", () => victims.blackout("c1", { forMs: 500, ms: 1 })],
    ["stop", () => victims.stop(victims.leader(), 500)],
    ["pause", () => victims.pause("c1", 500)],
    ["cut", () => victims.cutTail(1)],
    ["lost segment", () => victims.loseSegment()],
    ["gap", () => victims.makeGap(1)],
    ["flipped bit", () => victims.flipBit()],
  ];

  it.each(strikes)("%s spares the coordinators", async (_, strike) => {
    const noted = habitat.occurrences.counts();
    const end = lastSeq();
    strike();
    expect([lastSeq(), habitat.occurrences.counts()]).toEqual([end, noted]);
    expect(nodes.every(({ session }) => (session?.freeAtMs ?? 0) <= habitat.engine.nowMs)).toBe(true);
    expect(victims.isDelicate).toBe(true);
    await run(20_000, () => truth.isWhole);
    expect([truth.isWhole, sessions(), habitat.findings]).toEqual([true, before, []]);
  });

  it("a foreign client may still write", async () => {
    victims.writeForeign();
    victims.writeBranch();
    await run(20_000, () => truth.isWhole);
    expect([truth.isWhole, sessions(), habitat.findings]).toEqual([true, before, []]);
  });

  it("coordinators are spared only until the log goes on", async () => {
    await run(20_000, () => truth.isWhole);
    expect(victims.isDelicate).toBe(false);
    victims.crash("c1", 500);
    expect(sessions()[0]).toBeUndefined();
  });
});

describe("a foreign client", () => {
  it.each<readonly [string, () => void]>([
    ["writes bytes that are no record", () => victims.writeForeign()],
    ["continues a copy of the journal", () => victims.writeBranch()],
  ])("%s, and its record is skipped", async (_, write) => {
    const { idx, term } = truth.state;
    write();
    await run(5_000);
    expect(habitat.occurrences.counts()["skipped-record"]).toBeGreaterThan(0);
    expect([truth.state.idx > idx, truth.state.term, truth.isWhole, habitat.findings]).toEqual([
      true,
      term,
      true,
      [],
    ]);
  });
});

it("a reader no longer served receives nothing new, and later follows again", async () => {
  const id = standby();
  victims.stopServing(id);
  expect(habitat.occurrences.counts()).toMatchObject({ "reader-dead": 1 });
  await run(1_000);
  const node = nodes.find((each) => each.id === id);
  expect(node?.knownIdx).toBeLessThan(truth.state.idx);
  await run(30_000);
  const { idx } = truth.state;
  await run(2_000);
  expect([(node?.knownIdx ?? 0) >= idx, habitat.findings]).toEqual([true, []]);
});

describe("clocks", () => {
  it("are correct until skewed, differently per machine", () => {
    expect(nodes.map(({ machine }) => machine)).toEqual(nodes.map(() => ({ wallSkewMs: 0, rate: 1 })));
    victims.skewClocks();
    const [one, other] = nodes.map(({ machine }) => machine);
    expect(one).not.toEqual(other);
    for (const { wallSkewMs, rate } of nodes.map(({ machine }) => machine)) {
      expect(Math.abs(wallSkewMs)).toBeLessThanOrEqual(3_000);
      expect(Math.abs(rate - 1)).toBeLessThanOrEqual(0.01);
      expect(rate).not.toBe(1);
    }
  });
});
