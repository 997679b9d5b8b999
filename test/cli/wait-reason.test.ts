// Notices for a person at a terminal about a task that waits.

import { describe, expect, it } from "vitest";
import { Output } from "../../src/cli/output.ts";
import { printWaitReason } from "../../src/cli/wait-reason.ts";
import { NoLeaderError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import type { TaskObstacle, TaskWait } from "../../src/protocol/explain-schemas.ts";
import { aShell } from "./shell.ts";

const paused: TaskObstacle = { reason: "swarm-paused" };
const full = (open: number): TaskObstacle => ({ reason: "swarm-limit", open, topN: 8 });
const waitingFor = (...obstacles: TaskObstacle[]): TaskWait => ({
  obstacles,
  ageMs: 0,
  ageTicks: 0,
  agents: [],
});

/** The notices if each answer comes after one more pause. */
async function printed(
  answers: readonly (TaskWait | "runs" | "no leader")[],
  { columns, json = false }: { readonly columns?: number; readonly json?: boolean },
) {
  const shell = aShell(columns === undefined ? {} : { columns });
  const ended = new AbortController();
  const left = [...answers];
  const pauses: number[] = [];
  await printWaitReason({
    explain: async () => {
      const answer = left.shift();
      if (answer === "no leader") throw new NoLeaderError("nobody leads");
      return { waiting: answer === "runs" ? undefined : answer };
    },
    output: new Output(shell, { json }),
    signal: ended.signal,
    pause: async (ms) => {
      pauses.push(ms);
      if (left.length === 0) ended.abort();
    },
  });
  return { lines: shell.stderr.text.split("\n").slice(0, -1), stdout: shell.stdout.text, pauses };
}

describe("at a terminal", () => {
  it("a reason is printed once, and again when it changes", async () => {
    const waits = [waitingFor(full(8)), waitingFor(full(9)), waitingFor(paused), waitingFor(paused)];
    const { lines, stdout, pauses } = await printed(waits, { columns: 80 });
    expect(lines).toEqual([
      expect.stringMatching(/waits: The swarm has reached its maximum of open attempts, 8 of 8/),
      expect.stringMatching(/waits: The swarm is paused/),
    ]);
    expect(stdout).toBe("");
    expect(new Set(pauses)).toEqual(new Set([limits.waitReasonMs]));
  });

  it("prints nothing for a running task, or without an answer", async () => {
    const { lines } = await printed(["no leader", "runs", waitingFor()], { columns: 80 });
    expect(lines).toEqual([]);
    expect((await printed(["no leader", waitingFor(paused)], { columns: 80 })).lines).toHaveLength(1);
  });
});

it.each([
  ["nobody reads it", {}],
  ["programs do", { columns: 80, json: true }],
])("nothing is asked where %s", async (_, view) => {
  expect(await printed([waitingFor(paused)], view)).toEqual({ lines: [], stdout: "", pauses: [] });
});
