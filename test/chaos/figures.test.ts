// Times of recovery from observations.

import { describe, expect, it } from "vitest";
import type { Term } from "../../src/ids.ts";
import type { Observation } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import { type Fault, quantile, recoveriesOf } from "./figures.ts";
import type { SeenEvent } from "./witness.ts";

describe("recovery", () => {
  it("of a leader ends with the first acceptance of a later term", () => {
    const fault = { figure: "leader killed → next accept", atMs: 100, endedTerm: 1 } as const;
    const accepts = [accept(90, 95, 1), accept(99, 103, 1), accept(120, 900, 2), accept(150, 950, 2)];
    expect(recoveries(fault, accepts)).toEqual([800]);
  });

  it("of anything else ends with the first acceptance that was asked for after it", () => {
    const fault = { figure: "server has room again → next accept", atMs: 100 } as const;
    expect(recoveries(fault, [accept(90, 130, 1), accept(101, 140, 1)])).toEqual([40]);
  });

  it("of a client ends with an acceptance of its own", () => {
    const fault = { figure: "client continued → its next accept", atMs: 100, client: "c2" } as const;
    expect(recoveries(fault, [accept(101, 140, 1), { ...accept(120, 190, 1), node: "c2" }])).toEqual([90]);
  });

  it("that never came is infinite", () => {
    const fault = { figure: "server has room again → next accept", atMs: 100 } as const;
    expect(recoveries(fault, [accept(90, 130, 1)])).toEqual([Number.POSITIVE_INFINITY]);
  });

  it("of a dead agent ends when the last of its tasks is elsewhere or has ended", () => {
    const fault = { figure: "agent killed → reassigned", atMs: 100, agent: "a1" } as const;
    const seen = [
      assigned(10, "t1", "a1"),
      assigned(20, "t2", "a1"),
      assigned(30, "t3", "a1"),
      assigned(30, "t4", "a2"),
      ended(50, "t1"),
      ended(300, "t4"),
      assigned(400, "t2", "a2"),
      ended(450, "t3"),
      assigned(900, "t5", "a2"),
    ];
    expect(recoveries(fault, [], seen)).toEqual([350]);
    expect(recoveries(fault, [], seen.slice(0, 7))).toEqual([Number.POSITIVE_INFINITY]);
    expect(recoveries({ ...fault, agent: "a3" }, [], seen)).toEqual([]);
  });
});

describe("a quantile", () => {
  it("is one of the values, or none", () => {
    expect(quantile([3, 1, 2], 0.5)).toBe(2);
    expect(quantile([1], 0.99)).toBe(1);
    expect(quantile([], 0.5)).toBeNaN();
  });
});

function recoveries(fault: Fault, observations: readonly Observation[], seen: readonly SeenEvent[] = []) {
  return recoveriesOf([fault], observations, seen)[fault.figure];
}

function accept(sentMs: number, heardMs: number, term: number): Observation {
  const task = { project: "p", task: "t", content: {}, answer: "accepted" } as const;
  return { kind: "submit", node: "c", sentMs, heardMs, at: { term, idx: 1 }, ...task };
}

function assigned(seenMs: number, task: string, agent: string): SeenEvent {
  return { seenMs, term: 1 as Term, event: { type: "TaskAssigned", task, agent } as unknown as Event };
}

function ended(seenMs: number, task: string): SeenEvent {
  return { seenMs, term: 1 as Term, event: { type: "TaskCompleted", task } as unknown as Event };
}
