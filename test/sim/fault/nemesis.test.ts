// Every kind of fault does something: one that nobody carries out would make seeds pass.

import { describe, expect, it } from "vitest";
import { Engine } from "../../../src/sim/fault/engine.ts";
import { type Fault, type FaultKind, faultKinds, STREAM_BYTES } from "../../../src/sim/fault/fault.ts";
import { type Condition, type Direction, Link } from "../../../src/sim/fault/link.ts";
import { Nemesis, type Victims } from "../../../src/sim/fault/nemesis.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

/** Whose links there are. */
const names = ["c1", "c1/journal", "a1"];
/** What each kind of fault strikes here; `c1` where nothing else is said. */
const victimByKind: Partial<Record<FaultKind, string>> = {
  "left-behind": "c1/journal",
  "out-of-touch": "a1",
  usurped: "a1",
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

/** All that happens, in order, while one fault lasts, and the links as they are in its middle. */
async function whatHappens(fault: Fault) {
  const engine = new Engine();
  const seen: string[] = [];
  const links = names.map((name) => new WatchedLink(name, engine, seen));
  const told = [
    "crash",
    "crashCoordinators",
    "blackout",
    "stop",
    "pause",
    "setSlow",
    "jumpClock",
    "startTwin",
    "usurp",
  ] as const;
  const tell =
    (name: string) =>
    (...args: readonly unknown[]) =>
      void seen.push(`${name} ${args.join(" ")}`);
  const victims: Victims = {
    ...(Object.fromEntries(told.map((name) => [name, tell(name)])) as Pick<Victims, (typeof told)[number]>),
    links: () => links,
    leader: () => "c1",
    timeoutMs: 1_000,
    standby: () => "c2",
    crampJournal: tell("crampJournal"),
    busiest: () => "a1",
    isDelicate: false,
    isHeldByFew: false,
    isBystander: () => true,
    disconnect: tell("disconnect"),
    setJournal: (condition) => {
      if (condition !== undefined) seen.push(`journal ${JSON.stringify(condition)}`);
    },
    writeAlien: tell("writeAlien"),
    writeOtherLine: tell("writeOtherLine"),
    cutTail: tell("cutTail"),
    loseMissed: tell("loseMissed"),
    stopServing: tell("stopServing"),
    displace: tell("displace"),
    loseEnd: (count, { withLeader }) => {
      seen.push(`loseEnd ${count} ${withLeader}`);
      return true;
    },
    makeHole: tell("makeHole"),
    boundJournal: tell("boundJournal"),
    rotSnapshot: tell("rotSnapshot"),
    skewClocks: tell("skewClocks"),
    restartServer: tell("restartServer"),
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
      parties: ["c1"],
      share: 0.5,
      ms: 50,
      count: 2,
    });
    expect(during).not.toEqual([]);
    expect(links.some(({ isDown, isAlone }) => isDown || isAlone)).toBe(false);
    const isEnded = (line: string) => line === `setSlow ${of} 0` || line.startsWith("loseMissed");
    expect(after.filter((line) => !isEnded(line))).toEqual([]);
  });

  it("of the leader is one of whoever leads when it begins", async () => {
    const { during } = await whatHappens({ kind: "pause", atMs: 10, forMs: 100, of: "leader" });
    expect(during).toEqual(["pause c1 100"]);
  });

  it("that partitions leaves the journal with the others", async () => {
    const { during, links } = await whatHappens({ kind: "partition", atMs: 10, forMs: 100, parties: ["c1"] });
    expect(during).toEqual([
      expect.stringContaining('c1/journal up {"lossShare":1'),
      expect.stringContaining('c1/journal down {"lossShare":1'),
      "c1 on side 1",
      "c1/journal on side 0",
      "a1 on side 0",
    ]);
    expect(links.map(({ side }) => side)).toEqual(["", "", ""]);
  });

  it("that loses an end takes the leader with it where nothing keeps the others from it", async () => {
    const fault = { kind: "end-lost", atMs: 10, forMs: 100, of: "leader", count: 3, ms: 20 } as const;
    expect((await whatHappens(fault)).during).toEqual(["crashCoordinators 20", "loseEnd 3 true"]);
    const { of: _, ...withoutLeader } = fault;
    expect((await whatHappens(withoutLeader)).during).toEqual(["crashCoordinators 20", "loseEnd 3 false"]);
  });

  it("that leaves clients untold cramps the journal, and gives it room again", async () => {
    const { during, after } = await whatHappens({ kind: "untold", atMs: 10, forMs: 100 });
    expect([during, after]).toEqual([["crampJournal "], [`boundJournal ${STREAM_BYTES}`]]);
    const deaf = { kind: "untold", atMs: 10, forMs: 100, of: "c1", direction: "down" } as const;
    expect((await whatHappens(deaf)).during).toEqual([expect.stringContaining('c1 down {"lossShare":1')]);
  });

  it("that bounds the journal says to how much", async () => {
    const { during } = await whatHappens({ kind: "bound", atMs: 10, forMs: 0, bytes: 4_096 });
    expect(during).toEqual(["boundJournal 4096"]);
  });

  it("of a stray writer strikes once, or as often as it says", async () => {
    const once = await whatHappens({ kind: "alien", atMs: 10, forMs: 100 });
    expect([...once.during, ...once.after]).toEqual(["writeAlien "]);
    const often = await whatHappens({ kind: "alien", atMs: 10, forMs: 100, ms: 30 });
    expect(often.during).toEqual(Array(2).fill("writeAlien "));
    expect(often.after).toEqual(Array(2).fill("writeAlien "));
  });

  it("of the journal's server has it know less before it is away, and after", async () => {
    const { during, after } = await whatHappens({ kind: "fail-over", atMs: 10, forMs: 100, ms: 20 });
    const told = [...during, ...after].filter((line) => line.startsWith("journal "));
    expect(told.map((line) => [/"staleShare":1/.test(line), /"isUnanswered":true/.test(line)])).toEqual([
      [true, false],
      [false, true],
      [true, false],
    ]);
  });

  it("leaves agents unheard that hear, and the journal out of reach for a part of it", async () => {
    const fault = { kind: "unheard", atMs: 10, forMs: 100, parties: ["a1"], ms: 30 } as const;
    const { during } = await whatHappens(fault);
    expect(during).toEqual([
      expect.stringContaining('a1 up {"lossShare":1'),
      expect.stringContaining('"isUnanswered":true'),
      expect.stringContaining('a1 up {"lossShare":1'), // looked at again where the journal is back
    ]);
  });

  it("of a standby lasts for its share of T where that is what counts", async () => {
    const fault = { kind: "left-behind", atMs: 10, forMs: 0, of: "standby", share: 0.05 } as const;
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
