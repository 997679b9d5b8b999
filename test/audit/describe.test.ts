// The line of text for each type of event.

import { describe, expect, it } from "vitest";
import { describe as describeEvent, describeReceipt, duration, whyOnHold } from "../../src/audit/describe.ts";
import { agentId, instant, kind } from "../../src/ids.ts";
import type { Event } from "../../src/state/event.ts";
import { aReceipt, aSpec, samples } from "./event-factory.ts";

describe("a line", () => {
  it.each(Object.values(samples))("for $type is a line with a description", (event) => {
    const line = describeEvent(event);
    expect(line).not.toMatch(/[\n\r]|undefined|null|\[object|NaN/);
    expect(line.length).toBeGreaterThan(10);
    expect(line).not.toContain("newer version");
  });

  it("is different for each type", () => {
    const lines = Object.values(samples).map(describeEvent);
    expect(new Set(lines).size).toBe(lines.length);
  });

  it.each<[string, Event]>([
    ["term 2 began, led by c1", samples.TermStarted],
    ["acme/t1 submitted by acme/ann: count", samples.TaskSubmitted],
    [
      "acme/t1#1 → a1 · score 0.90, a2 0.40; 2 eligible agents (of 3; 1 offline); waited 12 ms",
      samples.TaskAssigned,
    ],
    [
      "acme/t1#1 as skim, by type haiku only → a1 · score 0.90, a2 0.40; 2 eligible agents (of 3; 1 offline); waited 12 ms; over the project's budget (downgrade) and the swarm's budget (alert)",
      {
        ...samples.TaskAssigned,
        runsAs: kind("skim"),
        cheaperType: "haiku",
        receipt: { ...samples.TaskAssigned.receipt, budget: { project: "downgrade", global: "alert" } },
      },
    ],
    [
      "acme/t1#1 by type haiku only → a1 · score 0.90, a2 0.40; 2 eligible agents (of 3; 1 offline); waited 12 ms",
      { ...samples.TaskAssigned, cheaperType: "haiku" },
    ],
    ["acme/t1#1 completed by a1 in 1.2 s, 9 tokens", samples.TaskCompleted],
    ["acme/t1#1 failed at a1: exit 1; tried again from 1970-01-01T00:01:00.000Z", samples.AttemptFailed],
    ["acme/t1#1 found the input invalid at a1: exit 1; the task failed", samples.TaskFailed],
    ["acme/t1#1 failed at a1: exit 1; dead-lettered: attempts exhausted", samples.TaskDeadLettered],
    ["a1 joined: count, digest; max concurrent 4", samples.AgentJoined],
    ["a1 was silent too long and counts as lost", samples.AgentLeft],
    ["3 tasks of acme refused: project queue full", samples.TasksRefused],
    ["the journal now begins at batch 40: the retention time has passed", samples.AuditTrimmed],
  ])("reads %j", (line, event) => {
    expect(describeEvent(event)).toBe(line);
  });

  it("says what is not usual about a task", () => {
    const traceparent = `00-${"ab".repeat(16)}-${"cd".repeat(8)}-01`;
    const task = aSpec({ role: "reviewer", weight: 5, priority: 9, notBefore: instant(0), traceparent });
    expect(describeEvent({ ...samples.TaskSubmitted, task })).toBe(
      "acme/t1 submitted by acme/ann: count, role reviewer, weight 5, priority 9, not before 1970-01-01T00:00:00.000Z, " +
        `trace ${"ab".repeat(16)}`,
    );
  });

  it("shows no control character of what agents wrote", () => {
    const error = "no\u001b[2Jway\nsecond\u2028line\u202e";
    const line = describeEvent({ ...samples.TaskFailed, failure: { class: "failed", error } });
    expect(line).toBe("acme/t1#1 failed at a1: no [2Jway second line ; the task failed");
  });

  it("names an event of a newer version by its type", () => {
    expect(describeEvent({ type: "MoonRisen" } as unknown as Event)).toBe("MoonRisen (of a newer version)");
  });
});

describe("a receipt", () => {
  it("says what decided when the score did not", () => {
    const even = { successRate: 0.9, load: 0, score: 0.9 };
    const candidates = [
      { agent: agentId("a1"), ...even },
      { agent: agentId("a2"), ...even },
    ];
    expect(describeReceipt(aReceipt({ candidates, decidedBy: "longest-idle", ineligible: {} }))).toBe(
      "score 0.90, a2 0.90, longest idle; 2 eligible agents; waited 12 ms",
    );
  });
});

it.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1 s"],
  [59_949, "59.9 s"],
  [60_000, "1 min"],
  [5_400_000, "1.5 h"],
])("%d ms is %s", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

it.each([
  [{ by: "operator" }, "set by an operator"],
  [{ by: "agent" }, "work was refused"],
  [{ by: "agent", reason: "quota\nused up" }, "quota used up"],
  [{ by: "refusals" }, "refusals in a row without a time"],
  [{ by: "refusals", reason: "429" }, "refusals in a row without a time, the last: 429"],
] as const)("a hold %j is explained by: %s", (hold, text) => {
  expect(whyOnHold(hold)).toBe(text);
});
