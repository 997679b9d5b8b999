// The parts of the demo: which files, who asks for what, and what the journal adds up to.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { JournaledEvent } from "../../src/audit/journaled-event.ts";
import { submitFor } from "../../src/cli/demo/asking.ts";
import { findTextFiles } from "../../src/cli/demo/files.ts";
import {
  chanceOf,
  type DemoTask,
  demoAgents,
  demoUsers,
  paceMs,
  troubledAgent,
} from "../../src/cli/demo/scenario.ts";
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
  it("are all but those in hidden folders and node_modules, and only text", async () => {
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

  it.runIf(hasGit)("are those git lists, where it lists any", async () => {
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
  const files = Array.from({ length: 57 }, (_, at) => `f${at}`);

  it("has every kind of every file done once, each under an id of its own", () => {
    const tasks = demoUsers(files, "run").flatMap((user) => user.tasks);
    const pairs = tasks.map(({ file, kind }) => `${file} ${kind}`);
    expect(new Set(pairs)).toEqual(
      new Set(files.flatMap((file) => demoKinds.map((kind) => `${file} ${kind}`))),
    );
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(files.length * demoKinds.length);
    expect(pairs.length).toBe(files.length * demoKinds.length);
  });

  it("has one user who asks for all at once, and two for a few at a time, later", () => {
    const [ann, ben, cleo] = demoUsers(files, "run");
    expect(ann?.atOnce).toBe(ann?.tasks.length);
    for (const other of [ben, cleo]) {
      expect(other?.startsAfterMs).toBeGreaterThan(ann?.startsAfterMs ?? 0);
      expect(other?.atOnce).toBeLessThan((other?.tasks.length ?? 0) / 2);
    }
  });

  it("has six agents that differ, every kind served by two that do not fail", () => {
    expect(demoAgents.length).toBe(6);
    expect(new Set(demoAgents.map(({ kinds }) => kinds.join())).size).toBeGreaterThan(2);
    expect(new Set(demoAgents.map(({ maxConcurrent }) => maxConcurrent)).size).toBeGreaterThan(2);
    for (const kind of demoKinds) {
      const sound = demoAgents.filter(
        ({ kinds, failShare }) => kinds.includes(kind) && failShare === undefined,
      );
      expect(sound.length).toBeGreaterThanOrEqual(2);
    }
  });

  it("fails by a chance that is the same each time and fair over many", () => {
    const ids = Array.from({ length: 10_000 }, (_, at) => `outline-${at}-k3f9#1!`);
    const failures = ids.filter((id) => chanceOf(id) < 0.3).length;
    expect(failures / ids.length).toBeGreaterThan(0.28);
    expect(failures / ids.length).toBeLessThan(0.32);
    expect(chanceOf("outline-1-k3f9#1!")).toBe(chanceOf("outline-1-k3f9#1!"));
  });

  it("takes its time with few files, and hurries with many", () => {
    expect(paceMs(1)).toBe(limits.demoAttemptMsMax);
    expect(paceMs(300)).toBeLessThan(paceMs(100));
    expect(paceMs(limits.demoFilesMax)).toBeLessThan(20);
  });
});

describe("the tally", () => {
  const [, ben] = demoUsers(["a.md", "b.md", "c.md"], "run");
  const [first, second, third] = ben?.tasks ?? [];

  it("adds up attempts, shares, waits and latencies, of its own tasks only", () => {
    const tally = new DemoTally(ben?.tasks ?? []);
    let at = 0;
    const tell = (event: object) => tally.add({ idx: 1, term: 1, at, event } as unknown as JournaledEvent);
    const failure = { class: "failed", error: "" };
    for (const task of [first, second, third]) tell({ type: "TaskSubmitted", task: { id: task?.id } });
    tell({ type: "TaskSubmitted", task: { id: "somebody-else" } });
    tell({ type: "TaskAssigned", task: "somebody-else", agent: "dune" });
    at = 100;
    tell({ type: "TaskAssigned", task: first?.id, agent: troubledAgent });
    tell({ type: "AttemptFailed", task: first?.id, agent: troubledAgent, latencyMs: 10, failure });
    at = 300;
    for (const task of [first, second, third]) tell({ type: "TaskAssigned", task: task?.id, agent: "dune" });
    for (const task of [first, second])
      tell({ type: "TaskCompleted", task: task?.id, agent: "dune", latencyMs: 20 });
    expect(tally.hasAllEnded).toBe(false);
    tell({ type: "TaskDeadLettered", task: third?.id, agent: "dune", latencyMs: 50, failure });
    expect(tally.hasAllEnded).toBe(true);

    expect(tally.agents([troubledAgent, "dune", "fern"])).toEqual([
      {
        agent: troubledAgent,
        attempts: 1,
        share: 0.25,
        byKind: { outline: { attempts: 1, completed: 0 } },
        latencyMsMean: 10,
      },
      {
        agent: "dune",
        attempts: 3,
        share: 0.75,
        byKind: { outline: { attempts: 3, completed: 2 } },
        latencyMsMean: 30,
      },
      { agent: "fern", attempts: 0, share: 0, byKind: {}, latencyMsMean: 0 },
    ]);
    expect(tally.users()).toEqual([
      { user: "ben", tasks: 3, completed: 2, waitMsMean: (100 + 300 + 300) / 3, waitMsMax: 300 },
    ]);
    expect(tally.outlineShares(troubledAgent, 2)).toEqual([0.5, 0]);
  });
});

describe("what a user asks for", () => {
  it("is told of before it is sent, for who is stopped then may have it accepted all the same", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const [user] = demoUsers(["a.md"], "run");
    if (user === undefined) throw new Error("nobody asks");
    const stopped = new AbortController();
    const told: string[] = [];
    const onSubmit = (tasks: readonly DemoTask[]) => {
      expect(leader.of("submit")).toEqual([]);
      told.push(...tasks.map(({ id }) => id));
    };
    const asking = submitFor(
      swarm,
      { ...user, startsAfterMs: 0 },
      {
        signal: stopped.signal,
        onSubmit,
        onEnd: () => expect.unreachable("nothing was accepted"),
      },
    );
    asking.catch(() => undefined);
    await vi.waitFor(() => expect(leader.of("submit")).not.toEqual([]));
    await clock.advance(100);
    stopped.abort(new Error("Ctrl-C"));
    await expect(asking).rejects.toThrow();
    const [submit] = leader.of("submit") as unknown as { body: { tasks: { id: string }[] } }[];
    expect(submit?.body.tasks.map(({ id }) => id)).toEqual(told.slice(0, submit?.body.tasks.length));
    expect(told).toContain(user.tasks[0]?.id);
  });
});
