// Every kind of fault has an effect: a fault without effect would make seeds pass.

import { describe, expect, it } from "vitest";
import { Engine } from "../../../src/sim/fault/engine.ts";
import { type Fault, type FaultKind, faultKinds } from "../../../src/sim/fault/fault.ts";
import { type Condition, type Direction, Link } from "../../../src/sim/fault/link.ts";
import { Nemesis, type Victims } from "../../../src/sim/fault/nemesis.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

/** Nodes with links. */
const names = ["c1", "c1/journal", "a1"];
/** The targets of the kinds of faults; default: `c1`. */
const victimByKind: Partial<Record<FaultKind, string>> = {
  "out-of-touch": "a1",
  "twin-after-restart": "a1",
  twin: "a1",
};

class WatchedLink extends Link {
  readonly #seen: string[];

  constructor(name: string, engine: Engine, seen: string[]) {
    super(name, engine, new SeededRandom(name));
    this.#seen = seen;
  }

  override set(direction: Direction, condition: Condition | undefined): void {
    if (condition !== undefined && Object.values(condition).some((value) => value !== 0))
      this.#seen.push(`${this.name} ${direction} ${JSON.stringify(condition)}`);
  }
}

/** The events during a fault, in order, and the state of the links in its middle. */
async function whatHappens(fault: Fault) {
  const engine = new Engine();
  const seen: string[] = [];
  const links = names.map((name) => new WatchedLink(name, engine, seen));
  const recorded = [
    "crash",
    "blackout",
    "stop",
    "pause",
    "setSlow",
    "jumpClock",
    "skewClocks",
    "startTwin",
    "usurp",
    "disconnect",
    "writeForeign",
    "writeBranch",
    "cutTail",
    "loseSegment",
    "makeGap",
    "flipBit",
    "stopServing",
    "restartServer",
  ] as const;
  const recorderOf =
    (name: string) =>
    (...args: readonly unknown[]) =>
      void seen.push(`${name} ${args.join(" ")}`);
  const victims: Victims = {
    ...(Object.fromEntries(recorded.map((name) => [name, recorderOf(name)])) as Pick<
      Victims,
      (typeof recorded)[number]
    >),
    links: () => links,
    leader: () => "c1",
    timeoutMs: 1_000,
    standby: () => "c2",
    busiest: () => "a1",
    isDelicate: false,
    isBystander: () => true,
    setJournal: (condition) => {
      if (condition !== undefined) seen.push(`journal ${JSON.stringify(condition)}`);
    },
  };
  new Nemesis(engine, victims).follow([fault]);
  await engine.run(fault.atMs + fault.forMs / 2, () => false);
  const during = [
    ...seen,
    ...links.filter(({ isAlone }) => isAlone).map(({ name }) => `${name} alone`),
    ...links.filter(({ side }) => side !== "").map(({ name, side }) => `${name} on side ${side}`),
  ];
  const before = seen.length;
  await engine.run(fault.atMs + 2 * fault.forMs + 1, () => false);
  return { during, after: seen.slice(before), links };
}

describe("a fault", () => {
  const kinds = Object.keys(faultKinds) as FaultKind[];

  it.each(kinds)("%s strikes, and is over", async (kind) => {
    const of = victimByKind[kind] ?? "c1";
    const { during, after, links } = await whatHappens({
      kind,
      atMs: 10,
      forMs: 100,
      of,
      nodes: ["c1"],
      share: 0.5,
      ms: 50,
      count: 2,
    });
    expect(during).not.toEqual([]);
    expect(links.some(({ isDown, isAlone }) => isDown || isAlone)).toBe(false);
    expect(after.filter((line) => line !== `setSlow ${of} 0`)).toEqual([]);
  });

  it("of the leader hits the leader at its begin", async () => {
    const { during } = await whatHappens({ kind: "pause", atMs: 10, forMs: 100, of: "leader" });
    expect(during).toEqual(["pause c1 100"]);
  });

  it("that partitions leaves the journal with the second part", async () => {
    const { during, links } = await whatHappens({ kind: "partition", atMs: 10, forMs: 100, nodes: ["c1"] });
    expect(during).toEqual([
      expect.stringContaining('c1/journal up {"lossShare":1'),
      expect.stringContaining('c1/journal down {"lossShare":1'),
      "c1 on side 1",
      "c1/journal on side 0",
      "a1 on side 0",
    ]);
    expect(links.map(({ side }) => side)).toEqual(["", "", ""]);
  });

  it("that leaves a client untold stops messages to the client, not from it", async () => {
    const isolated = { kind: "answers-lost", atMs: 10, forMs: 100, of: "c1", direction: "down" } as const;
    expect((await whatHappens(isolated)).during).toEqual([expect.stringContaining('c1 down {"lossShare":1')]);
  });

  it("of a foreign writer strikes once, or at its interval", async () => {
    const once = await whatHappens({ kind: "foreign", atMs: 10, forMs: 100 });
    expect([...once.during, ...once.after]).toEqual(["writeForeign "]);
    const often = await whatHappens({ kind: "foreign", atMs: 10, forMs: 100, ms: 30 });
    expect(often.during).toEqual(Array(2).fill("writeForeign "));
    expect(often.after).toEqual(Array(2).fill("writeForeign "));
  });

  it("of the journal's server makes reads stale before and after the outage", async () => {
    const { during, after } = await whatHappens({ kind: "fail-over", atMs: 10, forMs: 100, ms: 20 });
    const recorded = [...during, ...after].filter((line) => line.startsWith("journal "));
    expect(recorded.map((line) => [/"staleShare":1/.test(line), /"isUnanswered":true/.test(line)])).toEqual([
      [true, false],
      [false, true],
      [true, false],
    ]);
  });

  it("stops messages from agents, not to them, and the journal is away for a part of the fault", async () => {
    const fault = { kind: "agents-silent", atMs: 10, forMs: 100, nodes: ["a1"], ms: 30 } as const;
    const { during } = await whatHappens(fault);
    expect(during).toEqual([
      expect.stringContaining('a1 up {"lossShare":1'),
      expect.stringContaining('"isUnanswered":true'),
      expect.stringContaining('a1 up {"lossShare":1'), // logged again when the journal is back
    ]);
  });

  it("of a standby hits a coordinator without the lead", async () => {
    const fault = { kind: "dead-reader", atMs: 10, forMs: 0, of: "standby" } as const;
    expect((await whatHappens(fault)).during).toEqual(["stopServing c2"]);
  });

  it("of messages strikes both directions", async () => {
    const { during } = await whatHappens({ kind: "loss", atMs: 10, forMs: 100, of: "a1", share: 0.25 });
    expect(during).toEqual([
      expect.stringContaining('a1 up {"lossShare":0.25'),
      expect.stringContaining('a1 down {"lossShare":0.25'),
    ]);
  });
});

/** The effects of a schedule, in a swarm with coordinators c1 and c2. */
async function whatBegins(schedule: readonly Fault[], isDelicate = false): Promise<string[]> {
  const engine = new Engine();
  const begun: string[] = [];
  const strike =
    (name: string) =>
    (...args: readonly unknown[]) =>
      void begun.push([name, ...args].join(" "));
  const victims = {
    links: () => [],
    isDelicate,
    isBystander: (node: string) => node === "a1",
    setJournal: () => undefined,
    disconnect: () => undefined,
    restartServer: () => undefined,
    pause: strike("pause"),
    cutTail: strike("cutTail"),
    loseSegment: strike("loseSegment"),
    makeGap: strike("makeGap"),
    flipBit: strike("flipBit"),
  } as unknown as Victims;
  new Nemesis(engine, victims).follow(schedule);
  await engine.run(10_000, () => false);
  return begun;
}

describe("a loss of the store", () => {
  const losses = ["tail-cut", "segment-lost", "gap", "bit-flip"] as const;
  const strikeOf = {
    "tail-cut": "cutTail 1",
    "segment-lost": "loseSegment",
    gap: "makeGap 1",
    "bit-flip": "flipBit",
  };
  const isCut = (of: string): Fault => ({ kind: "cut", atMs: 10, forMs: 1_000, of });

  it.each(losses)("%s happens while every coordinator reaches its peers and the journal", async (kind) => {
    expect(await whatBegins([{ kind, atMs: 500, forMs: 0 }])).toEqual([strikeOf[kind]]);
    expect(await whatBegins([isCut("a1"), { kind, atMs: 500, forMs: 0 }])).toEqual([strikeOf[kind]]);
    expect(await whatBegins([isCut("c1"), { kind, atMs: 2_000, forMs: 0 }])).toEqual([strikeOf[kind]]);
  });

  it.each(losses)(
    "%s does not happen while a fault hits a coordinator, its link to the journal or the server",
    async (kind) => {
      const loss = { kind, atMs: 500, forMs: 0 };
      expect(await whatBegins([isCut("c1"), loss])).toEqual([]);
      expect(await whatBegins([isCut("c1/journal"), loss])).toEqual([]);
      expect(await whatBegins([{ kind: "server-restart", atMs: 10, forMs: 1_000 }, loss])).toEqual([]);
      expect(await whatBegins([{ kind: "no-responders", atMs: 10, forMs: 1_000 }, loss])).toEqual([]);
      expect(await whatBegins([{ kind: "partition", atMs: 10, forMs: 1_000, nodes: ["a1"] }, loss])).toEqual(
        [],
      );
    },
  );

  it("spares coordinators until the journal goes on, but not agents and clients", async () => {
    const paused = (of: string): Fault => ({ kind: "pause", atMs: 10, forMs: 100, of });
    expect(await whatBegins([paused("c1"), paused("a1")], true)).toEqual(["pause a1 100"]);
    expect(await whatBegins([paused("c1"), paused("a1")])).toEqual(["pause c1 100", "pause a1 100"]);
  });
});
