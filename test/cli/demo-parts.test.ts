// The parts of the demo: files, amount of work, and the report on a journal.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pc from "picocolors";
import { describe, expect, it, vi } from "vitest";
import type { JournaledEvent } from "../../src/audit/journaled-event.ts";
import { findTextFiles } from "../../src/cli/demo/files.ts";
import { agentsIn, type DemoMoments, renderSummary, troubledIn } from "../../src/cli/demo/report.ts";
import { chanceOf, demoTasks, planOf, troubledAgent, type Untroubled } from "../../src/cli/demo/scenario.ts";
import { submitEvenly, submittedBy } from "../../src/cli/demo/submitting.ts";
import { DemoTally } from "../../src/cli/demo/tally.ts";
import { demoKinds } from "../../src/cli/demo/work.ts";
import { limits } from "../../src/limits.ts";
import { aClient } from "../client/client-fixture.ts";
import { hasProgram } from "../support/programs.ts";

function aFolder(files: Record<string, string | Buffer>): string {
  const folder = mkdtempSync(join(tmpdir(), "waggle-files-"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

const hasGit = hasProgram("git", "the demo on a git repository");

describe("files", () => {
  it("are all text files outside of hidden folders and node_modules", async () => {
    const folder = aFolder({
      "b.txt": "b",
      "a/deep/a.ts": "a",
      ".hidden-file": "x",
      ".git-like/x": "x",
      "node_modules/x.js": "x",
      "a/node_modules/x.js": "x",
      "binary.png": Buffer.from([0x89, 0x50, 0x00, 0x47]),
      "empty.md": "",
    });
    symlinkSync("/etc/passwd", join(folder, "link"));
    expect(await findTextFiles(folder)).toEqual({
      files: [".hidden-file", "a/deep/a.ts", "b.txt", "empty.md"],
      skipped: { "no plain file": 1, "not text": 1 },
      listedBy: "walking",
    });
  });

  it.runIf(hasGit)("are the files listed by git, if git lists any", async () => {
    const folder = aFolder({
      "kept.md": "x",
      "größe und\nzeile.md": "x",
      "ignored.log": "x",
      ".gitignore": "*.log\n",
    });
    const git = (...args: string[]) => execFileSync("git", args, { cwd: folder, stdio: "ignore" });
    git("init");
    git("add", "kept.md", ".gitignore", "größe und\nzeile.md");
    const found = await findTextFiles(folder);
    expect(found).toEqual({
      files: [".gitignore", "größe und\nzeile.md", "kept.md"],
      skipped: {},
      listedBy: "git",
    });
  });

  it.runIf(hasGit)("that are gone or too large are left out and counted", async () => {
    const folder = aFolder({
      "gone.md": "x",
      "large.txt": Buffer.alloc(limits.demoFileBytesMax + 1, "x"),
      "ok.md": "x",
    });
    execFileSync("git", ["init"], { cwd: folder, stdio: "ignore" });
    execFileSync("git", ["add", "."], { cwd: folder });
    execFileSync("rm", ["gone.md"], { cwd: folder });
    expect(await findTextFiles(folder)).toMatchObject({
      files: ["ok.md"],
      skipped: { unreadable: 1, "too large": 1 },
    });
  });
});

describe("the scenario", () => {
  const files = Array.from({ length: 200 }, (_, at) => `f${at}`);

  it("has every kind of every file done once, each under an id of its own", () => {
    const tasks = demoTasks(files, "run");
    const pairs = tasks.map(({ file, kind }) => `${file} ${kind}`);
    expect(new Set(pairs)).toEqual(
      new Set(files.flatMap((file) => demoKinds.map((kind) => `${file} ${kind}`))),
    );
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(files.length * demoKinds.length);
    expect(pairs.length).toBe(files.length * demoKinds.length);
  });

  it("has a chance that is the same each time and even over many", () => {
    const ids = Array.from({ length: 10_000 }, (_, at) => `outline-${at}-k3f9#1`);
    const low = ids.filter((id) => chanceOf(id) < 0.3).length;
    expect(low / ids.length).toBeGreaterThan(0.28);
    expect(low / ids.length).toBeLessThan(0.32);
    expect(chanceOf("outline-1-k3f9#1")).toBe(chanceOf("outline-1-k3f9#1"));
  });

  it("ends in its time where starting took long, and breaks no agent for too little work", () => {
    const quick = planOf(900, limits.demoMs);
    expect(quick.submitMs).toBe(limits.demoSubmitMs);
    expect(quick.everyMs * 900).toBeLessThan(quick.submitMs);
    const late = planOf(900, 25_000);
    expect(late.submitMs).toBe(25_000 - limits.demoEndMs);
    expect(late.trouble).toMatchObject({ toMs: expect.any(Number) });
    expect(planOf(900, 0)).toMatchObject({ submitMs: limits.demoSubmitMsMin, trouble: "little-time" });
    expect(planOf(limits.demoTroubleTasksMin - 1, limits.demoMs).trouble).toBe("few-tasks");
    expect(planOf(limits.demoTroubleTasksMin, limits.demoMs).trouble).toMatchObject({
      fromMs: expect.any(Number),
    });
  });
});

describe("what is reported", () => {
  const moments: DemoMoments = { brokenAt: 10_000, repairedAt: 20_000, submittedAt: 30_000 };
  const output = { columns: undefined, colors: pc.createColors(false) };

  interface Journal {
    /** Assignments of the troubled agent at the end of each part, of 100. */
    readonly shares: readonly [number, number, number];
    /** Failed attempts of the troubled agent while broken. */
    readonly failed: number;
    readonly moments?: DemoMoments;
    readonly leftOut?: number;
    readonly untroubled?: Untroubled;
  }

  /** The report on a journal without any other input. */
  function reportOn({ shares, failed, moments: when = moments, leftOut = 0, untroubled }: Journal): string {
    const tally = new DemoTally(["t0", "t1"]);
    const noteEvent = (at: number, event: object) =>
      tally.add({ idx: 1, term: 1, at, event } as unknown as JournaledEvent);
    for (const [part, end] of [10_000, 20_000, 30_000].entries())
      for (let one = 0; one < 100; one += 1) {
        const agent = one < (shares[part] ?? 0) ? troubledAgent : "amber";
        noteEvent(end - 1_000, { type: "TaskAssigned", task: "t0", agent });
      }
    for (let one = 0; one < failed; one += 1)
      noteEvent(15_000, { type: "AttemptFailed", task: "t0", agent: troubledAgent });
    for (const task of ["t0", "t1"]) noteEvent(31_000, { type: "TaskCompleted", task, agent: "amber" });
    noteEvent(31_000, { type: "TaskAssigned", task: "of somebody else", agent: "amber" });
    expect(tally.ended).toBe(2);
    return renderSummary(
      {
        files: 1,
        tasks: 2,
        completed: 2,
        open: 0,
        leftOut,
        tookMs: 30_000,
        results: "r",
        agents: agentsIn(tally, when),
        troubled: troubledIn(tally, when),
        untroubled: untroubled ?? (when.brokenAt === undefined ? "few-tasks" : null),
      },
      output,
    );
  }

  it("is loss and return where the journal shows both", () => {
    const report = reportOn({ shares: [20, 2, 18], failed: 7 });
    expect(report).toContain(
      "7 attempts of gale failed. Every task that failed once ran again and completed.",
    );
    expect(report).toContain(
      "Broken, it lost share: 20 % before, 2 % after. Repaired, it got work again: 18 %.",
    );
    expect(report).toMatch(/^gale +20 % +2 % +18 % +40 +7$/m);
    expect(report).toContain("2 of 2 tasks on 1 file completed");
  });

  it("is neither where the journal shows neither", () => {
    const report = reportOn({ shares: [20, 19, 19], failed: 7 });
    expect(report).toContain("gale did not lose share in this run: 20 % before, 19 % after.");
    expect(report).not.toContain("it lost share");
    expect(report).not.toContain("got work again");
  });

  it("names tasks left out for lack of time, and blames the lack of time if no agent broke", () => {
    const report = reportOn({ shares: [20, 2, 18], failed: 7, leftOut: 233 });
    expect(report).toContain("233 more tasks had to be left out: this machine is too busy to run all in the");
    const unbroken = { brokenAt: undefined, repairedAt: undefined, submittedAt: 30_000 };
    const late = reportOn({ shares: [20, 2, 18], failed: 0, moments: unbroken, untroubled: "little-time" });
    expect(late).toContain("no time was left to break an agent");
    expect(late).not.toMatch(/too few|lost share/);
  });

  it("is no failure where none was journaled, and no share where the moments are missing", () => {
    expect(reportOn({ shares: [20, 2, 18], failed: 0 })).toContain("No attempt of gale failed.");
    const unbroken = { brokenAt: undefined, repairedAt: undefined, submittedAt: 30_000 };
    const report = reportOn({ shares: [20, 2, 18], failed: 0, moments: unbroken });
    expect(report).toContain("2 tasks are too few to show how routing reacts");
    expect(report).not.toMatch(/broken and repaired|lost share/);
  });
});

describe("the submission", () => {
  it("is of what is due, as far as agents have slots; tasks that wait for a retry occupy none", () => {
    const plan = { everyMs: 50, openMax: 19 };
    const none = { ended: 0, delayed: 0 };
    expect(submittedBy(0, { ...plan, ...none })).toBe(limits.demoStepMs / plan.everyMs);
    expect(submittedBy(10_000, { ...plan, ...none })).toBe(19);
    expect(submittedBy(10_000, { ...plan, ended: 30, delayed: 4 })).toBe(53);
  });

  it("ends with Ctrl-C while no leader answers", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const stopped = new AbortController();
    const submitting = submitEvenly(swarm, demoTasks(["a.md"], "run"), {
      everyMs: 1,
      submitMs: 1_000,
      openMax: 19,
      delayed: () => 0,
      signal: stopped.signal,
      timeUp: new AbortController().signal,
      onSubmitted: () => expect.unreachable("nothing was accepted"),
    });
    submitting.catch(() => undefined);
    await vi.waitFor(() => expect(leader.of("submit")).not.toEqual([]));
    await clock.advance(100);
    stopped.abort(new Error("Ctrl-C"));
    await expect(submitting).rejects.toThrow();
  });
});
