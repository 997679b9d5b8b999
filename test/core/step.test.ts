// The bounds of a turn, and the order of its outcome.

import { describe, expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { Turn } from "../../src/core/step.ts";
import { batchIndex, instant, taskId } from "../../src/ids.ts";
import { encodeBatch } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import { join, submit, Turns } from "../support/turns.ts";

function aTurn(turns: Turns): Turn {
  return new Turn(turns.state, turns.at, batchIndex(turns.records.length + 1));
}

function bytesOf(turns: Turns, turn: Turn): number {
  const { term, idx } = turns.state;
  const header = {
    journal: "j".repeat(16),
    session: "l".repeat(12),
    term,
    idx,
    prev: "p".repeat(43),
    at: turns.at,
  };
  return encodeBatch(header, turn.eventsJson).length;
}

describe("a turn", () => {
  it.each([
    ["ASCII", "a".repeat(255 * 1024)],
    ["three bytes each", "蜂".repeat(85 * 1024)],
    ["escapes", "\u0001".repeat(80 * 1024)],
  ])("takes commands while it is not full, and then fits one append: payloads of %s", (_, payload) => {
    const turns = new Turns();
    const turn = aTurn(turns);
    let taken = 0;
    while (!turn.isFull) {
      taken += 1;
      turn.take(submit({ id: taskId(`t${taken}`), payload }));
    }
    expect(bytesOf(turns, turn)).toBeLessThanOrEqual(limits.maxPayloadBytesDefault - 64 * 1024);
  });

  it("of small texts in a wide script and a last large command fits one append", () => {
    const turns = new Turns();
    const turn = aTurn(turns);
    const nearlyFull = () => turn.bytes < limits.turnBytesMax - 4_096;
    for (let n = 0; nearlyFull(); n += 1)
      turn.take(submit({ id: taskId(`t${n}`), payload: "蜂".repeat(1_000) }));
    turn.take(submit({ id: taskId("last"), payload: "\u0001".repeat(80 * 1024) }));
    expect(bytesOf(turns, turn)).toBeLessThanOrEqual(limits.maxPayloadBytesDefault - 64 * 1024);
  });

  it("that is full leaves due timers and assignments to the next turn", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    const due = (id: string) => submit({ id: taskId(id), notBefore: instant(turns.at + 10) });
    turns.turn(due("t1"), due("t2"));
    turns.pass(10);
    const turn = aTurn(turns);
    turn.take(submit({ id: taskId("large"), payload: "a".repeat(limits.payloadBytesMax) }));
    expect(turn.isFull).toBe(true);
    expect([turn.takeDue(() => 0), turn.plan()]).toEqual([false, false]);
    const next = aTurn(turns);
    expect([next.takeDue(() => 0), next.plan()]).toEqual([true, true]);
    expect(next.recorded.map(({ event }) => event.type)).toEqual([
      "TaskReleased",
      "TaskReleased",
      "TaskAssigned",
    ]);
  });

  it("applies each command before the next, then fires due timers, then assigns", () => {
    const turns = new Turns();
    const turn = aTurn(turns);
    const commands: Command[] = [
      submit({ id: taskId("t1"), deadline: turns.at }),
      submit({ id: taskId("t2") }),
      join("a1"),
    ];
    for (const command of commands) turn.take(command);
    turn.takeDue(() => 0);
    turn.plan();
    expect(turn.recorded.map(({ event, project }) => `${project} ${event.type}`)).toEqual([
      "p TaskSubmitted",
      "p TaskSubmitted",
      "_ AgentJoined",
      "p TaskExpired",
      "p TaskAssigned",
    ]);
    expect(turn.effects.map(({ kind }) => kind)).toEqual(["ended", "assign"]);
    expect([...turn.touchedAgents]).toEqual(["a1"]);
  });

  it("without events leaves the state unchanged, time and index included", () => {
    const turns = new Turns();
    const { at, idx } = turns.state;
    turns.pass(1_000);
    const turn = aTurn(turns);
    turn.take({ type: "DrainAgent", agent: join("nobody").agent });
    turn.takeDue(() => 0);
    turn.plan();
    expect(turn.recorded).toEqual([]);
    expect([turns.state.at, turns.state.idx]).toEqual([at, idx]);
  });
});
