// Whole seeds: the same seed always runs the same, swarms of the production code pass, and planted violations are
// found.

import { describe, expect, it } from "vitest";
import { type Fault, type FaultKind, faultKinds, losses } from "../../../src/sim/fault/fault.ts";
import type { Occurrence } from "../../../src/sim/fault/occurrences.ts";
import { payloadOf } from "../../../src/sim/fault/payload.ts";
import { planOf, runSeed, type SeedRequest } from "../../../src/sim/fault/run-seed.ts";
import { WALL_START_MS } from "../../../src/sim/fault/session.ts";
import type { Operation } from "../../../src/sim/fault/workload.ts";
import { World } from "../../../src/sim/fault/world.ts";

const everything = Object.keys(faultKinds) as FaultKind[];
const endOf = ({ atMs = 0, forMs = 0 }: Partial<Fault> = {}) => atMs + forMs;

function aRequest(overrides: Partial<SeedRequest> = {}): SeedRequest {
  return { seed: 1, forMs: 15_000, without: [], ...overrides };
}

describe("a seed", () => {
  it("runs the same each time", async () => {
    const first = await runSeed(aRequest());
    const second = await runSeed(aRequest());
    expect(second.trace).toBe(first.trace);
    expect({ ...second, realMs: 0 }).toEqual({ ...first, realMs: 0 });
  });

  it("runs differently than the next seed", async () => {
    const [one, two] = await Promise.all([runSeed(aRequest()), runSeed(aRequest({ seed: 2 }))]);
    expect(two.trace).not.toBe(one.trace);
  });

  it.each([3, 4, 5, 6])("%i passes with its faults", async (seed) => {
    const { findings, tasks } = await runSeed(aRequest({ seed }));
    expect(findings).toEqual([]);
    expect(tasks).toBeGreaterThan(1); // including the probe's task
  });

  it("passes without faults, and accepts and ends every task", async () => {
    const { findings, faults, tasks } = await runSeed(aRequest({ without: everything }));
    expect(findings).toEqual([]);
    expect(faults).toBe(0);
    expect(tasks).toBeGreaterThan(0);
  });

  it("passes with an isolated leader: a successor leads, and the old leader learns it on return", async () => {
    const schedule = [{ kind: "isolated", atMs: 8_000, forMs: 9_000, of: "leader" }] as const;
    const { findings, occurrences } = await runSeed(aRequest({ schedule }));
    expect(findings).toEqual([]);
    expect(occurrences).toMatchObject({ "term-begun-by-another": 1, deposed: 1 });
  });

  it("passes the end of its leader while a foreign client keeps writing into the journal", async () => {
    const schedule = [
      { kind: "foreign", atMs: 5_000, forMs: 25_000, ms: 200 },
      { kind: "crash", atMs: 8_000, forMs: 20_000, of: "leader" },
    ] as const;
    const { findings, occurrences } = await runSeed(aRequest({ forMs: 30_000, schedule }));
    expect(findings).toEqual([]);
    expect(occurrences).toMatchObject({ "term-begun-by-another": 1, "term-begun-among-foreign": 1 });
  });

  it("passes a fail-over of the journal's server with stale reads before and after", async () => {
    const schedule = [
      { kind: "crash", atMs: 5_000, forMs: 1_500, of: "leader" },
      { kind: "fail-over", atMs: 6_000, forMs: 9_000, ms: 1_250 },
    ] as const;
    const { findings, occurrences } = await runSeed(aRequest({ seed: 8, schedule }));
    expect(findings).toEqual([]);
    expect(occurrences["stale-read"]).toBeGreaterThan(0);
  });

  it("never loses the end of the journal while a coordinator with the only copy is stopping", async () => {
    const faults: readonly Fault[] = [
      { kind: "transfer", atMs: 6_400, forMs: 1_000, of: "leader" },
      { kind: "tail-cut", atMs: 6_500, forMs: 0, count: 4 },
    ];
    const run = (schedule: readonly Fault[]) => runSeed(aRequest({ seed: 10, forMs: 50_000, schedule }));
    const asked = await run(faults);
    expect(asked.findings).toEqual([]);
    expect(asked.occurrences).not.toHaveProperty("tail-cut");
    const unasked = await run(faults.filter(({ kind }) => kind !== "transfer"));
    expect(unasked.findings).toEqual([]);
    expect(unasked.occurrences).toMatchObject({ "tail-cut": 1 });
  });

  describe("with an isolated client", () => {
    const forMs = 15_000;
    const notBefore = WALL_START_MS + forMs + 60_000;
    const payload = payloadOf({ does: "complete", ms: 1, limitMs: 3_000 });
    const task = { id: "late", kind: "count", project: "acme", payload, timeoutMs: 3_000, notBefore };
    const operations: Operation[] = [{ atMs: 9_000, client: "k1", does: "submit", tasks: [task] }];
    const cutFor = (ms: number): Fault[] => [
      { kind: "cut", atMs: 8_000, forMs: ms, of: "k1", direction: "up" },
    ];

    it("goes on until tasks submitted after the faults end, however long they wait", async () => {
      const { findings, tasks, virtualMs } = await runSeed(
        aRequest({ forMs, operations, schedule: cutFor(7_000) }),
      );
      expect(findings).toEqual([]);
      expect(tasks).toBe(2); // including the probe's task
      expect(virtualMs).toBeGreaterThan(forMs + 60_000);
    });

    it("finds a submit without any answer", async () => {
      const { findings } = await runSeed(aRequest({ forMs, operations, schedule: cutFor(3_600_000) }));
      expect(findings).toMatchObject([
        {
          check: "everything-accepted-ends",
          sentence: expect.stringContaining("k1 still submits late"),
        },
      ]);
    });
  });

  it.each<[Fault, Occurrence]>([
    [{ kind: "gap", atMs: 10_000, forMs: 0, count: 4 }, "gap-made"],
    [{ kind: "tail-cut", atMs: 10_000, forMs: 0, count: 4 }, "tail-cut"],
    [{ kind: "segment-lost", atMs: 10_000, forMs: 0 }, "segment-lost"],
    [{ kind: "bit-flip", atMs: 10_000, forMs: 0 }, "bit-flipped"],
    [{ kind: "other-branch", atMs: 6_000, forMs: 0 }, "skipped-record"],
    [{ kind: "out-of-touch", atMs: 3_000, forMs: 12_000, of: "busy" }, "agent-lost"],
    [{ kind: "twin-after-restart", atMs: 4_000, forMs: 4_000, of: "a2" }, "agent-fenced"],
    [{ kind: "partition", atMs: 4_000, forMs: 6_000, nodes: ["c3", "a1", "k1"] }, "term-begun-by-another"],
    [{ kind: "full", atMs: 4_000, forMs: 4_000 }, "storage-full"],
    [{ kind: "blackout", atMs: 6_000, forMs: 500, of: "c1", ms: 49 * 3_600_000 }, "blackout"],
  ])("passes with %o", async (fault, occurrence) => {
    const { findings, occurrences } = await runSeed(aRequest({ seed: 8, schedule: [fault] }));
    expect(findings).toEqual([]);
    expect(occurrences[occurrence]).toBeGreaterThan(0);
  });

  it("finds an error thrown by an event", async () => {
    const fault = { kind: "unheard-of", atMs: 3_000, forMs: 0 } as unknown as Fault;
    const { findings } = await runSeed(aRequest({ schedule: [fault] }));
    expect(findings).toMatchObject([
      { check: "nothing-escapes", sentence: expect.stringContaining("an event: ") },
    ]);
  });

  it("ends with the reason of the signal", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(runSeed(aRequest({ forMs: 60_000 }), { signal })).rejects.toThrow("enough");
  });
});

describe("a plan", () => {
  it("leaves out the given faults", () => {
    const kinds = Array.from({ length: 20 }, (_, seed) =>
      planOf(aRequest({ seed, without: ["crash", "loss"] })),
    )
      .flatMap(({ schedule }) => schedule)
      .map(({ kind }) => kind);
    expect(kinds).not.toContain("crash");
    expect(kinds).not.toContain("loss");
    expect(new Set(kinds).size).toBeGreaterThan(10);
  });

  it("isolates a leader in some seeds, and in none without that fault", () => {
    const isMet = (without: readonly FaultKind[]) => (seed: number) =>
      planOf(aRequest({ seed, without, forMs: 120_000 })).schedule.some(
        ({ kind, of }) => kind === "isolated" && of === "leader",
      );
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    expect(seeds.filter(isMet([])).length).toBeGreaterThan(4);
    expect(seeds.filter(isMet([])).length).toBeLessThan(16);
    expect(seeds.filter(isMet(["isolated"]))).toEqual([]);
  });

  it("clogs many links in sequence in some seeds, and frees them in a different order", () => {
    const isSwizzled = (seed: number) => {
      const clogs = planOf(aRequest({ seed, forMs: 120_000 })).schedule.filter(
        ({ kind }) => kind === "staggered-clog",
      );
      const [first] = clogs;
      const together = clogs.filter((clog) => first !== undefined && clog.atMs < first.atMs + first.forMs);
      const ends = together.map(({ atMs, forMs }) => atMs + forMs);
      return together.length > 4 && ends.some((end, at) => end < (ends[at - 1] ?? 0));
    };
    const seeds = Array.from({ length: 40 }, (_, seed) => seed).filter(isSwizzled);
    expect(seeds.length).toBeGreaterThan(2);
  });

  it("leaves a period of true answers after each period of stale answers", () => {
    const understating = ["stale-read", "not-found", "fail-over"];
    const gaps = Array.from({ length: 40 }, (_, seed) => seed).flatMap((seed) => {
      const { schedule } = planOf(aRequest({ seed, forMs: 120_000 }));
      const faults = schedule.filter(({ kind }) => understating.includes(kind));
      return faults.slice(1).map(({ atMs }, at) => atMs - endOf(faults[at]));
    });
    expect(gaps.length).toBeGreaterThan(50);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(5_000);
  });

  it("draws a schedule ordered by begin", () => {
    for (let seed = 0; seed < 10; seed += 1) {
      const begins = planOf(aRequest({ seed, forMs: 60_000 })).schedule.map(({ atMs }) => atMs);
      expect(begins).toEqual(begins.toSorted((a, b) => a - b));
    }
  });

  it("ends every fault before the time to heal", () => {
    const { schedule } = planOf(aRequest({ seed: 9, forMs: 60_000 }));
    for (const { atMs, forMs } of schedule) expect(atMs + forMs).toBeLessThanOrEqual(60_000);
  });
});

describe("outside the fault model", () => {
  const forMs = 20_000;
  const schedule: Fault[] = [
    { kind: "blackout", atMs: 10_000, forMs: 500, of: "c1", ms: 0 },
    { kind: "tail-cut", atMs: 10_050, forMs: 0, count: 12 },
  ];
  const request = { seed: 3, forMs, without: [], schedule };

  it("records are lost while no coordinator holds them, and a loss is reported", async () => {
    const { findings, occurrences } = await runSeed({ ...request, profile: "outside" });
    expect([findings, occurrences["tail-cut"]]).toEqual([[], 1]);
    const inside = await runSeed(request);
    expect([inside.findings, inside.occurrences["tail-cut"]]).toEqual([[], undefined]);
  });

  it("drawn losses overlap a crash, a pause or an isolation", () => {
    const drawn = planOf({ seed: 3, forMs: 120_000, without: [], profile: "outside" }).schedule;
    const lost = drawn.filter(({ kind }) => losses.some((loss) => loss === kind));
    expect(lost.length).toBeGreaterThan(2);
    for (const { atMs } of planOf({ seed: 3, forMs: 120_000, without: losses, profile: "outside" }).schedule)
      expect(atMs).toBeLessThan(120_000);
  });

  it("an unreported loss is found", async () => {
    const { workload } = planOf(request);
    const world = new World({ ...request, workload, untilMs: forMs, profile: "outside" });
    world.habitat.lossReports.push = () => 0; // drops the reports
    await world.run();
    expect(world.habitat.findings.map(({ check }) => check)).toContain("outside P1 never-silent");
  });
});
