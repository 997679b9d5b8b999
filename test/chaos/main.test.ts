// Refusals of `npm run chaos` before it starts anything, and files that it leaves alone.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const PAGE = "docs/reliability.md";
const PUBLISHED = "docs/results/chaos.json";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-chaos-main-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("a wrong flag is refused at once", () => {
  it.each([
    [["--leader-timeout", "0s"], "--leader-timeout: must be a duration from 500 ms to 10 s, like 1s"],
    [["--part", "leader-kills", "--minutes", "5"], "--minutes: leader-kills goes by rounds; say --rounds"],
    [["--minutes", "5"], "goes by rounds"],
    [["--part", "soak", "--minutes", "0"], "--minutes: must be a whole number, at least 1"],
    [["--short", "--report"], "leave out --short"],
  ])("%j", (flags, sentence) => {
    const { status, stderr } = chaos(flags);
    expect(stderr).toContain(sentence);
    expect(status).toBe(2);
  });

  it("where there is no server", () => {
    const { status, stderr } = chaos(["--part", "leader-kills"]);
    expect(stderr).toContain("there is no nats-server on the PATH, and none is named in WAGGLE_NATS_SERVERS");
    expect(status).toBe(2);
  });
});

describe("--report", () => {
  beforeEach(() => {
    mkdirSync(join(folder, "docs/results"), { recursive: true });
    for (const file of [PAGE, PUBLISHED]) cpSync(file, join(folder, file));
  });

  it("without figures is refused, and leaves the published figures", () => {
    const { status, stderr } = chaos(["--report"]);
    expect(stderr).toContain(
      "has no figures of these parts, so docs/reliability.md is left as it is; run a part first",
    );
    expect(status).toBe(2);
    for (const file of [PAGE, PUBLISHED]) expect(text(file)).toBe(readFileSync(file, "utf8"));
  });

  it("adds the rows of the parts that are chosen, and leaves all others", () => {
    const { status, stdout } = withLegs(["network", "soak"], ["--report", "--part", "network"]);
    expect(status).toBe(0);
    expect(stdout).toContain("1 new, of which 0 replace older ones");
    const rows = (file: string) =>
      JSON.parse(readFileSync(file, "utf8")) as { part: string; server: string }[];
    const added = rows(join(folder, PUBLISHED)).filter(({ server }) => server === "9.9.9");
    expect(added).toMatchObject([{ part: "network", commit: "1111111", rounds: 1 }]);
    const others = rows(join(folder, PUBLISHED)).filter(({ server }) => server !== "9.9.9");
    expect(others).toEqual(rows(PUBLISHED));
    expect(text(PAGE)).toContain("| rounds on 9.9.9 |");
  });
});

function withLegs(parts: readonly string[], flags: readonly string[]) {
  const leg = {
    server: "9.9.9",
    leaderTimeoutMs: 1_000,
    commit: "1111111",
    endedOn: "2026-11-23",
    rounds: 1,
    accepted: 1,
    observations: 1,
    segmentChanges: 1,
    recordsEvery: 1,
    isStuck: false,
    violationsByPromise: {},
    recoveries: {},
    memory: [],
    load: 1,
  };
  mkdirSync(join(folder, ".chaos"));
  writeFileSync(join(folder, ".chaos/legs.json"), JSON.stringify(parts.map((part) => ({ part, ...leg }))));
  return chaos(flags);
}

/** In a separate folder without any nats-server. */
function chaos(flags: readonly string[]) {
  const main = fileURLToPath(new URL("main.ts", import.meta.url));
  const argv = ["--import", import.meta.resolve("tsx"), main, ...flags];
  const env = { ...process.env, PATH: folder, WAGGLE_NATS_SERVERS: "" };
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, {
    encoding: "utf8",
    cwd: folder,
    env,
  });
  expect(existsSync(join(folder, ".chaos/short.json"))).toBe(false);
  return { status, stdout, stderr };
}

function text(file: string): string {
  return readFileSync(join(folder, file), "utf8");
}
