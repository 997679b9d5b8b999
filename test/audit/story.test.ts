// Folding a task's history from events of several tasks.

import { describe, expect, it } from "vitest";
import { StoryFold, type StoryLine } from "../../src/audit/story.ts";
import { agentId, assignmentNumber, attemptNumber, instant, kind, taskId } from "../../src/ids.ts";
import type { Event } from "../../src/state/event.ts";
import { aSpec, journaled, samples } from "./event-factory.ts";

function storyOf(...events: readonly Event[]): StoryLine & { readonly isOver: boolean } {
  const fold = new StoryFold({ project: "acme", task: "t1" });
  for (const event of journaled(...events)) fold.add(event);
  return { ...fold.line, isOver: fold.isOver };
}

const { TaskSubmitted, TaskAssigned, AssignmentsConfirmed, TaskCompleted, AttemptFailed, TaskReleased } =
  samples;

describe("a story", () => {
  it("of a completed task: one attempt with a receipt, one wait", () => {
    const story = storyOf(TaskSubmitted, TaskAssigned, AssignmentsConfirmed, TaskCompleted);
    expect(story).toMatchObject({
      state: "completed",
      submittedAt: 1_000,
      endedAt: 4_000,
      isOver: true,
      spec: { id: "t1" },
      waits: [{ state: "queued", from: 1_000, to: 2_000 }],
    });
    expect(story.attempts).toEqual([
      {
        attempt: 1,
        agent: "a1",
        receipt: TaskAssigned.receipt,
        assignedAt: 2_000,
        assignedIdx: 2,
        runningAt: 3_000,
        endedAt: 4_000,
        ended: "completed",
        latencyMs: 1_234,
        tokens: 9,
        tokensCharged: 9,
      },
    ]);
    expect(story.events.map(({ event }) => event.type)).toEqual([
      "TaskSubmitted",
      "TaskAssigned",
      "AssignmentsConfirmed",
      "TaskCompleted",
    ]);
  });

  it("whose beginning is no longer kept tells every new time of the task, even in the same state", () => {
    const later = { ...samples.TaskRescheduled, notBefore: instant(90_000) };
    const story = storyOf(samples.TaskRescheduled, later);
    expect(story.events.map(({ event }) => event)).toEqual([samples.TaskRescheduled, later]);
    expect(story).toMatchObject({ state: "delayed", waits: [{ state: "delayed", from: 1_000 }] });
  });

  it("of a task tried again: the back-off is a wait of its own", () => {
    const second = { ...TaskAssigned, attempt: attemptNumber(2), agent: agentId("a2") };
    const story = storyOf(TaskSubmitted, TaskAssigned, AttemptFailed, TaskReleased, second);
    expect(story.waits).toEqual([
      { state: "queued", from: 1_000, to: 2_000 },
      { state: "delayed", from: 3_000, to: 4_000 },
      { state: "queued", from: 4_000, to: 5_000 },
    ]);
    expect(story.attempts).toMatchObject([
      { attempt: 1, agent: "a1", ended: "failed", error: "exit 1" },
      { attempt: 2, agent: "a2" },
    ]);
    expect(story).toMatchObject({ state: "assigned", isOver: false });
  });

  it("of a task that a budget made cheaper: what each attempt ran as", () => {
    const cheaper = { ...TaskAssigned, runsAs: kind("ask-mini"), cheaperType: "haiku" };
    const second = { ...TaskAssigned, attempt: attemptNumber(2) };
    const [first, last] = storyOf(TaskSubmitted, cheaper, AttemptFailed, TaskReleased, second).attempts;
    expect(first).toMatchObject({
      attempt: 1,
      runsAs: "ask-mini",
      cheaperType: "haiku",
      ended: "failed",
    });
    expect(last).not.toHaveProperty("runsAs");
    expect(last).not.toHaveProperty("cheaperType");
  });

  describe("of a task under a budget: what each attempt was reserved, reported and charged", () => {
    const reserving = { ...TaskAssigned, tokensReserved: 50 };
    const { tokens: _, ...silent } = TaskCompleted;
    const revoked = { ...AttemptFailed, revoked: true as const };
    const lost = { ...AttemptFailed, failure: { class: "lost", error: "" } as const };
    const quota = { ...AttemptFailed, failure: { class: "infrastructure", error: "" } as const };
    const { AttemptReleased, TokensCharged } = samples;
    it.each<[string, Event[], (number | undefined)[]]>([
      ["open", [], [undefined, undefined]],
      ["completed with a report", [TaskCompleted], [9, 9]],
      ["completed without one", [silent], [undefined, 50]],
      ["failed with a report", [{ ...AttemptFailed, tokens: 70 }], [70, 70]],
      ["failed without one", [AttemptFailed], [undefined, 50]],
      ["refused by infrastructure", [quota], [undefined, 0]],
      ["lost", [lost], [undefined, 0]],
      ["lost, and reported later", [lost, TokensCharged], [undefined, 700]],
      ["notified to stop", [revoked], [undefined, undefined]],
      ["notified to stop, and stopped", [revoked, AttemptReleased], [undefined, 50]],
      ["notified to stop, and reported", [revoked, { ...AttemptReleased, tokens: 3 }], [3, 3]],
      ["notified to stop, and gone", [revoked, { ...AttemptReleased, reason: "agent-gone" }], [undefined, 0]],
    ])("%s", (__, events, [tokens, tokensCharged]) => {
      const [attempt] = storyOf(TaskSubmitted, reserving, ...events).attempts;
      expect([attempt?.tokensReserved, attempt?.tokens, attempt?.tokensCharged]).toEqual([
        50,
        tokens,
        tokensCharged,
      ]);
    });
  });

  it("of a task without a budget shows no unreported tokens", () => {
    const [attempt] = storyOf(TaskSubmitted, TaskAssigned, AttemptFailed).attempts;
    for (const field of ["tokens", "tokensReserved", "tokensCharged"])
      expect(attempt).not.toHaveProperty(field);
  });

  it("of a task lost by its agent: queued again at once", () => {
    const { retryAt: _, ...lost } = { ...AttemptFailed, failure: { class: "lost", error: "" } as const };
    const story = storyOf(TaskSubmitted, TaskAssigned, lost);
    expect(story.state).toBe("queued");
    expect(story.waits.at(-1)).toEqual({ state: "queued", from: 3_000 });
  });

  it("of a task for later begins delayed", () => {
    const later = { ...TaskSubmitted, task: aSpec({ notBefore: instant(9_000) }) };
    expect(storyOf(later).state).toBe("delayed");
    expect(storyOf(later, TaskReleased).waits).toEqual([
      { state: "delayed", from: 1_000, to: 2_000 },
      { state: "queued", from: 2_000 },
    ]);
  });

  it("of a task cancelled while running is over when its attempt has let go", () => {
    const held = storyOf(TaskSubmitted, TaskAssigned, samples.TaskCancelled);
    expect(held).toMatchObject({
      state: "cancelled",
      attempts: [{ ended: "cancelled", holdsCapacity: true }],
      isOver: false,
    });
    const released = storyOf(TaskSubmitted, TaskAssigned, samples.TaskCancelled, samples.AttemptReleased);
    expect(released).toMatchObject({
      state: "cancelled",
      attempts: [{ holdsCapacity: false }],
      isOver: true,
    });
  });

  it.each([
    [samples.TaskCancelled, "cancelled"],
    [samples.TaskExpired, "expired"],
  ] as const)("of a task ended while waiting is over at once: $0.type", (event, state) => {
    expect(storyOf(TaskSubmitted, event)).toMatchObject({ state, isOver: true, attempts: [] });
  });

  it("of a task that ended badly says why", () => {
    const invalid = storyOf(TaskSubmitted, TaskAssigned, samples.TaskFailed);
    expect(invalid).toMatchObject({ state: "failed", attempts: [{ ended: "invalid", error: "exit 1" }] });
    const dead = storyOf(TaskSubmitted, TaskAssigned, samples.TaskDeadLettered);
    expect(dead).toMatchObject({ state: "dead-lettered", deadLetterReason: "attempts-exhausted" });
  });

  it("takes nothing from other tasks, agents and assignments", () => {
    const others: Event[] = [
      { ...TaskCompleted, task: taskId("t2") },
      { ...TaskSubmitted, task: aSpec({ id: taskId("t2") }) },
      { ...AssignmentsConfirmed, agent: agentId("a2") },
      { ...AssignmentsConfirmed, upTo: assignmentNumber(6) },
      samples.TermRenewed,
      samples.AgentLeft,
      samples.TasksRefused,
    ];
    const story = storyOf(TaskSubmitted, TaskAssigned, ...others);
    expect(story.state).toBe("assigned");
    expect(story.events).toHaveLength(2);
  });
});
