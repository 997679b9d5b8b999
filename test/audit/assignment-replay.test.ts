// The table of all agents at a past assignment agrees with the receipt in batches of real turns, and disagrees with a
// forged receipt.

import { describe, expect, it } from "vitest";
import { AssignmentReplay, type ReplayedBatch } from "../../src/audit/assignment-replay.ts";
import { JournalDamagedError } from "../../src/errors.ts";
import { kind, taskId, userId } from "../../src/ids.ts";
import { decodeRecord } from "../../src/journal/records.ts";
import type { EventOf } from "../../src/state/event.ts";
import { join, submit, Turns } from "../support/turns.ts";

/** Agents with different success, load, backlog and speed, several assignments per turn, some failed attempts. */
function aHistory(): Turns {
  const swarm = new Turns();
  for (let n = 0; n < 6; n += 1) {
    const kinds = n === 5 ? ["other"] : ["k"];
    swarm.turn(join(`a${n}`, { kinds: kinds.map(kind), maxConcurrent: 1 + (n % 3), prefetch: 3 * (n % 2) }));
  }
  for (let n = 0; n < 30; n += 1) {
    const tasks = Array.from({ length: 8 + (n % 4) }, (_, each) =>
      submit({ id: taskId(`t${n}-${each}`), user: userId(`u${each}`), weight: 1 + each }),
    );
    swarm.turn(...tasks);
    swarm.pass(700);
    const open = [...swarm.state.taskById.values()].filter((row) => row.open !== undefined);
    const reports = open
      .filter(({ open: attempt }, at) => (attempt?.agent === "a2" ? n % 4 === 0 : (at + n) % 3 !== 0))
      .map(({ spec, open: attempt }) => {
        const isBad = attempt?.agent === "a1" && n % 2 === 0;
        return swarm.report(
          spec.id,
          isBad ? { kind: "failed", error: "" } : { kind: "completed", result: "" },
        );
      });
    swarm.turn(...reports);
    swarm.pass(300);
  }
  return swarm;
}

const history = aHistory();
const batches = history.records.map(({ bytes }) => decodeRecord(bytes) as unknown as ReplayedBatch);

function replay(task: string, attempt: number, from: readonly ReplayedBatch[] = batches) {
  const replaying = new AssignmentReplay({ project: "p", task }, attempt);
  for (const batch of from) {
    const found = replaying.take(batch);
    if (found !== undefined) return found;
  }
  return undefined;
}

describe("a past assignment", () => {
  it("is ranked by the replay as its receipt says, whatever its place in the batch", () => {
    const assigned = history.all("TaskAssigned");
    expect(assigned.length).toBeGreaterThan(40);
    expect(
      assigned.some(({ receipt }) => receipt.candidates.some(({ backlog }) => backlog !== undefined)),
    ).toBe(true);
    expect(assigned.some(({ receipt }) => receipt.candidates.some(({ speed }) => speed !== undefined))).toBe(
      true,
    );
    for (const { task, attempt, agent, receipt } of assigned) {
      const table = replay(task, attempt);
      expect(table).toMatchObject({ task, attempt, agent, agrees: true, receipt });
      expect(table?.agents[0]?.agent).toBe(agent);
      expect(table?.agents.slice(0, receipt.candidates.length).map(({ terms }) => terms)).toEqual(
        receipt.candidates,
      );
    }
  });

  it("is shown with every agent, ineligible agents with their reason", () => {
    const [first] = history.all("TaskAssigned");
    const table = replay(first?.task ?? "", 1);
    expect(table?.agents).toHaveLength(6);
    expect(table?.agents.at(-1)).toMatchObject({ agent: "a5", standing: "wrong-kind" });
    expect(table?.replayed).toEqual({ from: 1, to: table?.idx });
  });

  it("does not agree with a receipt that says otherwise", () => {
    const sought = history.all("TaskAssigned").find(({ receipt }) => receipt.candidates.length > 1);
    const forged = batches.map((batch) => ({
      ...batch,
      events: batch.events.map((event) => {
        const assigned = event as EventOf<"TaskAssigned">;
        if (assigned.type !== "TaskAssigned" || assigned.task !== sought?.task) return event;
        const candidates = assigned.receipt.candidates.map((each) => ({ ...each, score: each.score / 2 }));
        return { ...assigned, receipt: { ...assigned.receipt, candidates } };
      }),
    }));
    expect(replay(sought?.task ?? "", sought?.attempt ?? 1, forged)).toMatchObject({ agrees: false });
  });

  it("is not found where there was none", () => {
    expect(replay("nope", 1)).toBeUndefined();
  });

  it("is refused for a journal without its first batch, or with a gap", () => {
    expect(() => replay("nope", 1, batches.slice(1))).toThrow(JournalDamagedError);
    const twice = batches.map((batch) => ({ ...batch, events: [...batch.events, ...batch.events] }));
    expect(() => replay("nope", 1, twice)).toThrow(JournalDamagedError);
  });
});
