// From legs to a page: what is added up, kept over a stop, and written between the marks.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { LegResult } from "./leg.ts";
import { tablesOf, writeReport } from "./report.ts";
import { Tally } from "./tally.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-report-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const key = { part: "leader-kills", server: "2.9.10", leaderTimeoutMs: 1_000 };

it("adds legs up and goes on after a stop", () => {
  const before = aTally();
  before.add(
    before.of(key),
    aLeg({ rounds: 2, recoveries: { "leader killed → next accept": [900, 1_200] } }),
  );
  const after = aTally();
  after.add(after.of(key), aLeg({ rounds: 3, recoveries: { "leader killed → next accept": [2_000] } }));
  expect(aTally().of(key)).toMatchObject({
    rounds: 5,
    legs: 2,
    accepted: 200,
    recoveries: { "leader killed → next accept": [900, 1_200, 2_000] },
  });
});

it("counts what was found by what it breaks, and says never of what did not come", () => {
  const tally = aTally();
  const violations = (["P1", "P2", "P5", "P12", "P7"] as const).map((promise) => ({
    promise,
    checker: "c",
    sentence: "s",
  }));
  const recoveries = { "agent killed → reassigned": [Number.POSITIVE_INFINITY] };
  tally.add(tally.of(key), aLeg({ violations, stuck: "why", recoveries }));
  const [, , row] = tablesOf(tally.all).split("\n");
  expect(row).toBe("| leader-kills | 2.9.10 | 1 s | 1 | 100 | 400 | 1 | 1 | 2 | 1 | 1 | 2 |");
  expect(tablesOf(tally.all)).toContain("| never | never |");
});

it("begins a part anew when it is forgotten", () => {
  const tally = aTally();
  tally.add(tally.of(key), aLeg({}));
  tally.forget(tally.of(key));
  expect(aTally().of(key).rounds).toBe(0);
});

it("leaves what another run has saved meanwhile", () => {
  const one = aTally();
  const other = aTally();
  other.add(other.of({ ...key, part: "network" }), aLeg({}));
  one.add(one.of(key), aLeg({}));
  expect(aTally().all.map(({ part }) => part)).toEqual(["network", "leader-kills"]);
});

it("shows parts by name and servers by age, whatever was run first, and how busy the machine was", () => {
  const tally = aTally();
  for (const server of ["2.15.1", "2.9.10"]) tally.add(tally.of({ ...key, server }), aLeg({ load: 3 }));
  tally.add(tally.of(key), aLeg({ load: 8 }));
  tally.add(tally.of({ ...key, part: "agent-kills" }), aLeg({}));
  const rows = tablesOf(tally.all).split("\n").slice(2, 5);
  expect(rows.map((row) => row.split(" | ").slice(0, 2).join(" "))).toEqual([
    "| agent-kills 2.9.10",
    "| leader-kills 2.9.10",
    "| leader-kills 2.15.1",
  ]);
  expect(rows[1]).toContain("| 3 to 8 |");
});

it("shows memory where it was sampled", () => {
  const tally = aTally();
  const row = { process: "coordinator1", before: 100 * 1024 * 1024, after: 104 * 1024 * 1024 };
  tally.add(
    tally.of(key),
    aLeg({
      memory: [
        { ...row, measure: "in use" },
        { ...row, measure: "resident" },
      ],
    }),
  );
  expect(tablesOf(tally.all)).toContain("| coordinator1 | in use | 100 | 104 | 4.0 % |");
  expect(tablesOf(tally.all)).toContain("| coordinator1 | resident | 100 | 104 | 4.0 % |");
});

it("writes between the marks and leaves the rest", () => {
  const page = join(folder, "page.md");
  const marks = readFileSync("docs/reliability.md", "utf8").match(/<!-- \/?chaos.*-->/g) ?? [];
  writeFileSync(page, `before\n${marks[0]}\nold\n${marks[1]}\nafter\n`);
  const tally = aTally();
  tally.add(tally.of(key), aLeg({}));
  writeReport(page, tally.all);
  writeReport(page, tally.all);
  const text = readFileSync(page, "utf8");
  expect(text).toMatch(/^before\n/);
  expect(text).toMatch(/\nafter\n$/);
  expect(text).not.toContain("old");
  expect(text.match(/leader-kills/g)).toHaveLength(1);
  writeFileSync(page, "no marks");
  expect(() => writeReport(page, tally.all)).toThrow("lacks the marks");
});

function aTally(): Tally {
  return new Tally(join(folder, "tally.json"));
}

function aLeg(of: Partial<LegResult>): LegResult {
  const counts = { rounds: 1, accepted: 100, batches: 50, observations: 400 };
  const found = { recoveries: {}, violations: [], stuck: undefined, troubles: [], memory: [], load: 2 };
  return { ...counts, ...found, ...of };
}
