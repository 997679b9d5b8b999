// From legs to a page: sums, continuation after a stop, and the text between the marks.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { LegResult } from "./leg.ts";
import { publish, readPublished, rowsOf } from "./published.ts";
import { tablesOf, writeReport } from "./report.ts";
import { Tally } from "./tally.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-report-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const key = { part: "leader-kills", server: "2.9.10", leaderTimeoutMs: 1_000 };
const PAGE = "docs/reliability.md";
const PUBLISHED = "docs/results/chaos.json";

it("keeps legs over a stop, each with the code and the day, and adds them up", () => {
  add(aTally(), { rounds: 2, recoveries: { "leader killed → next accept": [900, 1_200] } });
  add(aTally(), { rounds: 3, recoveries: { "leader killed → next accept": [2_100] } }, { on: "2026-11-23" });
  expect(aTally().of(key)).toMatchObject([
    { rounds: 2, commit: "1111111", endedOn: "2026-11-22" },
    { rounds: 3, commit: "1111111", endedOn: "2026-11-23" },
  ]);
  expect(rowsOf(aTally().all)).toMatchObject([
    {
      rounds: 5,
      accepted: 200,
      from: "2026-11-22",
      to: "2026-11-23",
      recoveries: [{ times: 3, over: 1, p50Ms: 1_200, p95Ms: 2_100, maxMs: 2_100 }],
    },
  ]);
});

it("takes the rounds of the newest code alone", () => {
  add(aTally(), { rounds: 2 });
  add(aTally(), { rounds: 3 }, { commit: "2222222+" });
  expect(rowsOf(aTally().all)).toMatchObject([{ rounds: 3, commit: "2222222+" }]);
});

it("counts findings by kind, and prints `nothing` without findings and `never` for a missing recovery", () => {
  const violations = (["P1", "P2", "P5", "P12", "P7"] as const).map((promise) => ({
    promise,
    checker: "c",
    sentence: "s",
  }));
  const recoveries = { "agent killed → reassigned": [Number.POSITIVE_INFINITY] };
  add(aTally(), { violations, stuck: "why", recoveries });
  add(aTally(), {}, { part: "network" });
  const tables = tablesOf(rowsOf(aTally().all));
  expect(tables).toContain(
    "| 1 lost, 1 with two outcomes, 2 contradicted, 1 over capacity, 1 did not come back |",
  );
  expect(tables).toContain("| agent killed → reassigned | 12 s | never, never (1, 1 too slow) |");
  expect(tables).toContain("| network | 1 s | 1 | 100 | 400 | 7 | nothing | 2026-11-22 | 2 |");
});

it("has a column for each server, and says what is required", () => {
  const recoveries = { "leader killed → next accept": [1_000, 2_500], "healed → next accept": [20] };
  add(aTally(), { recoveries, load: 3 });
  add(aTally(), { rounds: 4, load: 8 }, { server: "2.15.1", on: "2026-11-23" });
  add(aTally(), {}, { server: "2.10.27", part: "network" });
  const tables = tablesOf(rowsOf(aTally().all));
  expect(tables).toContain("rounds on 2.9.10 | rounds on 2.10.27 | rounds on 2.15.1");
  expect(tables).toContain(
    "| leader-kills | 1 s | 1 |  | 4 | 200 | 800 | 14 | nothing | 2026-11-22 to 2026-11-23 | 3 to 8 |",
  );
  expect(tables).toContain("| leader killed → next accept | 2 s | 2.50 s, 2.50 s (2, 1 too slow) |  |  |");
  expect(tables).toContain("| healed → next accept |  | 0.02 s, 0.02 s (1) |  |  |");
});

it("begins a part anew when it is forgotten", () => {
  const tally = aTally();
  add(tally, {});
  add(tally, {}, { part: "network" });
  tally.forget(key);
  expect(aTally().all.map(({ part }) => part)).toEqual(["network"]);
});

it("leaves results saved meanwhile by a parallel run", () => {
  const one = aTally();
  const other = aTally();
  add(other, {}, { part: "network" });
  add(one, {});
  expect(aTally().all.map(({ part }) => part)).toEqual(["network", "leader-kills"]);
});

it("shows memory where it was sampled", () => {
  const row = { process: "coordinator1", before: 100 * 1024 * 1024, after: 104 * 1024 * 1024 };
  const memory = (["in use", "resident"] as const).map((measure) => ({ ...row, measure }));
  add(aTally(), { memory });
  expect(tablesOf(rowsOf(aTally().all))).toContain(
    "| coordinator1 | 100 → 104 MiB (4.0 %) | 100 → 104 MiB (4.0 %) |",
  );
});

it("publishes a row in the place of the one of the same part and server, and leaves all others", () => {
  const file = join(folder, "published.json");
  writeFileSync(file, "[]");
  add(aTally(), {}, { part: "network" });
  add(aTally(), {}, { server: "2.15.1" });
  add(aTally(), {});
  publish(file, rowsOf(aTally().all));
  const again = rowsOf(aTally().all.slice(2)).map((row) => ({ ...row, rounds: 9, commit: "2222222" }));
  expect(publish(file, again).replaced).toBe(1);
  expect(
    readPublished(file).map(({ part, server, commit, rounds }) => [part, server, commit, rounds]),
  ).toEqual([
    ["leader-kills", "2.9.10", "2222222", 9],
    ["leader-kills", "2.15.1", "1111111", 1],
    ["network", "2.9.10", "1111111", 1],
  ]);
});

it("writes between the marks and leaves the rest", () => {
  const page = join(folder, "page.md");
  const marks = readFileSync(PAGE, "utf8").match(/<!-- \/?chaos.*-->/g) ?? [];
  writeFileSync(page, `before\n${marks[0]}\nold\n${marks[1]}\nafter\n`);
  add(aTally(), {});
  writeReport(page, rowsOf(aTally().all));
  writeReport(page, rowsOf(aTally().all));
  const text = readFileSync(page, "utf8");
  expect(text).toMatch(/^before\n/);
  expect(text).toMatch(/\nafter\n$/);
  expect(text).not.toContain("old");
  expect(text.match(/^\| leader-kills/gm)).toHaveLength(1);
  writeFileSync(page, "no marks");
  expect(() => writeReport(page, [])).toThrow("lacks the marks");
});

it("the page holds what is published, to the letter", () => {
  const page = join(folder, "page.md");
  writeFileSync(page, readFileSync(PAGE));
  writeReport(page, readPublished(PUBLISHED));
  expect(readFileSync(page, "utf8")).toBe(readFileSync(PAGE, "utf8"));
});

function aTally(): Tally {
  return new Tally(join(folder, "legs.json"));
}

interface Leg {
  readonly part?: string;
  readonly server?: string;
  readonly commit?: string;
  readonly on?: string;
}

function add(
  tally: Tally,
  of: Partial<LegResult>,
  { commit = "1111111", on = "2026-11-22", ...other }: Leg = {},
): void {
  const counts = { rounds: 1, accepted: 100, observations: 400, segmentChanges: 7, recordsEvery: 1 };
  const found = { recoveries: {}, violations: [], stuck: undefined, troubles: [], memory: [], load: 2 };
  tally.add({ ...key, ...other }, { ...counts, ...found, ...of }, { commit, endedOn: on });
}
