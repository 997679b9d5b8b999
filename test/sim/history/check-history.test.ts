// The checkers find nothing in a true history, and each checker finds its violation in a history broken on purpose.

import { beforeAll, describe, expect, it } from "vitest";
import { instant, refOfKey } from "../../../src/ids.ts";
import { decodeRecord, encodeBatch, hashOf } from "../../../src/journal/records.ts";
import { checkHistory } from "../../../src/sim/history/check-history.ts";
import { checkSessions } from "../../../src/sim/history/check-sessions.ts";
import { CommittedLog, type LogRecord } from "../../../src/sim/history/committed-log.ts";
import type {
  Observation,
  Reading,
  StoryObserved,
  SubmitObserved,
} from "../../../src/sim/history/observation.ts";
import type { Event } from "../../../src/state/event.ts";
import { logOf, type Recorded, recordHistory } from "./recorded.ts";

let recorded: Recorded;
beforeAll(async () => {
  recorded = await recordHistory();
});

describe("a true history", () => {
  it("has no violations", () => {
    expect(checkHistory(recorded, { mustAllHaveEnded: false })).toEqual([]);
  });

  it("holds every kind of question and answer", () => {
    const heard = recorded.observations.map((observed) => {
      const answer =
        "answer" in observed && typeof observed.answer === "string" ? observed.answer : undefined;
      const refused = "refused" in observed ? observed.refused : undefined;
      return [observed.kind, answer ?? refused ?? (("answer" in observed && "described") || "")].join(" ");
    });
    expect([...new Set(heard)].sort()).toEqual([
      "assigned ",
      "await described",
      "await live",
      "await unknown-task",
      "cancel cancelled",
      "cancel conflict",
      "cancel ended",
      "cancel unknown-task",
      "notified ",
      "query described",
      "query unknown-task",
      "result gone",
      "result ok",
      "result stale",
      "result stale-token",
      "retry conflict",
      "retry retried",
      "retry unknown-task",
      "submit WAGGLE_NO_CAPABLE_AGENT",
      "submit accepted",
      "submit conflict",
      "submit duplicate",
    ]);
  });

  it("stays true with unanswered requests", () => {
    const unanswered = recorded.observations.map((observed): Observation => {
      if (observed.kind === "notified" || observed.kind === "assigned" || observed.kind === "call")
        return observed;
      const { heardMs: _heard, at: _at, answer: _answer, refused: _refused, ...asked } = observed;
      return asked as Observation;
    });
    expect(check({ observations: [...recorded.observations, ...unanswered] })).toEqual([]);
  });
});

describe("a violation planted on purpose", () => {
  it("an accepted task without an end, though every task must have ended", () => {
    expect(checkHistory(recorded, { mustAllHaveEnded: true }).map(({ sentence }) => sentence)).toEqual([
      expect.stringContaining("submit default/waiting"),
    ]);
  });

  it("an accepted task missing in the journal", () => {
    expectOnly({ observations: [...recorded.observations, anAccepted({ task: "lost" })] }, "P1 accepted");
  });

  it("an acceptance naming a batch before the submission", () => {
    const submittedIdx = logOf(recorded).taskById.get("default/waiting")?.submittedIdx ?? 0;
    const observed = anAccepted({ task: "default/waiting", at: { term: 1, idx: submittedIdx - 1 } });
    expectOnly({ observations: [...recorded.observations, observed] }, "P1 accepted", "P2 accepted");
  });

  it("a task accepted as new though submitted before the request left", () => {
    const late = anAccepted({ task: "default/waiting", sentMs: 1e12, heardMs: 1e12 + 1, at: lastPosition() });
    expectOnly({ observations: [...recorded.observations, late] }, "P1 accepted", "P2 accepted");
  });

  it("different content accepted under the same id", () => {
    expectOnly(changed("submit", "duplicate", { content: { id: "done", kind: "other" } }), "P6 accepted");
  });

  it("a conflict with the same content, and a conflict without a task", () => {
    expectOnly(changed("submit", "duplicate", { answer: "conflict" }), "P6 conflict");
    expectOnly(changed("submit", "conflict", { task: "nothing" }), "P6 conflict");
  });

  it("a refused task found in the journal", () => {
    const refused = recorded.observations.map((observed) =>
      observed.kind === "submit" && observed.task === "default/failed"
        ? without(observed, "answer", { refused: "WAGGLE_BACKPRESSURE" })
        : observed,
    );
    expectOnly({ observations: refused }, "P5 refused");
  });

  it("a refusal of a known task", () => {
    const late = without(anAccepted({ task: "default/done" }), "answer", {
      refused: "WAGGLE_NO_CAPABLE_AGENT",
      sentMs: 1e12,
      at: lastPosition(),
    });
    expectOnly({ observations: [...recorded.observations, late] }, "P5 refused");
  });

  it("a round without a request, or only with a refused request", () => {
    const isOther = ({ kind }: Observation) => kind !== "retry";
    expectOnly({ observations: recorded.observations.filter(isOther) }, "P5 retries");
    const refused = recorded.observations.map((observed) =>
      observed.kind === "retry" && observed.answer === "retried"
        ? without(observed, "answer", { refused: "WAGGLE_BACKPRESSURE" })
        : observed,
    );
    expectOnly({ observations: refused }, "P5 retries");
  });

  it("a round answered as opened but missing, and a round refused without reason", () => {
    expectOnly(changed("retry", "retried", { round: 3 }), "P5 answers");
    expectOnly(changed("retry", "conflict", { task: "default/failed" }), "P5 answers");
    expectOnly(changed("retry", "unknown-task", { task: "default/done" }), "P5 answers");
  });

  it("an outcome of the previous round, though the next round was known", () => {
    const cancelled = {
      project: "default",
      task: "dropped",
      state: "cancelled",
      attempts: 1,
      reason: "requested",
    } as const;
    const late = {
      kind: "await",
      node: "late",
      project: "default",
      task: "default/dropped",
      answer: cancelled,
    } as const;
    const observed: Observation = { ...late, sentMs: 1e12, heardMs: 1e12 + 1, at: lastPosition() };
    expectOnly({ observations: [...recorded.observations, observed] }, "P5 answers");
  });

  it("a round opened twice, after a completion, or with different work", () => {
    const faultsWith = (change: (event: Event) => readonly Event[]) =>
      new CommittedLog(edited(change)).faults.join("; ");
    const whereRetried = (change: (event: Extract<Event, { type: "TaskRetried" }>) => readonly Event[]) =>
      faultsWith((event) => (event.type === "TaskRetried" ? change(event) : [event]));
    expect(whereRetried((event) => [event])).toBe("");
    expect(whereRetried((event) => [event, event])).toContain(
      "opens round 2 of dropped, which is live in round 2",
    );
    expect(whereRetried((event) => [{ ...event, round: 3 }])).toContain("opens round 3 of dropped");
    expect(whereRetried((event) => [{ ...event, task: { ...event.task, payload: "else" } }])).toContain(
      "has dropped do in round 2 what it was not asked to",
    );
    const afterDone = (event: Event): readonly Event[] =>
      event.type === "TaskCompleted" && event.task === "done"
        ? [
            event,
            {
              type: "TaskRetried",
              task: logOf(recorded).taskById.get("default/done")?.spec as never,
              hash: "",
              round: 2,
            },
          ]
        : [event];
    expect(faultsWith(afterDone)).toContain("opens round 2 of done, which is completed in round 1");
  });

  it("an answer from a missing batch, or from a batch of a different term", () => {
    const { idx } = lastPosition();
    expectOnly(changed("query", undefined, { at: { term: 1, idx: idx + 1 } }), "P12 positions");
    expectOnly(changed("query", undefined, { at: { term: 2, idx } }), "P12 positions");
  });

  it("a history that ends with a loss", () => {
    expectOnly(
      {
        observations: [
          ...recorded.observations,
          aStory({ refused: "WAGGLE_JOURNAL_DAMAGED", saysLoss: true }),
        ],
      },
      "P12 stories",
    );
  });

  it("a history with an event left out, repeated or in another batch, or with another agent", () => {
    const { events, attempts, statusIdx } = trueStory();
    const expectWrong = (change: Partial<NonNullable<StoryObserved["answer"]>>) => {
      const answer = { events, attempts, statusIdx, ...change };
      expectOnly({ observations: [...recorded.observations, aStory({ answer })] }, "P12 stories");
    };
    const [first, second] = events;
    if (first === undefined || second === undefined) throw new Error("the task has too few events");
    expectWrong({ events: events.slice(1) });
    expectWrong({ events: events.slice(0, -1) });
    expectWrong({ events: [first, ...events.slice(2)] });
    expectWrong({ events: [first, first, ...events.slice(1)] });
    expectWrong({ events: [...events, ...events.slice(-1)] });
    expectWrong({ events: [first, { ...second, idx: second.idx + 1 }, ...events.slice(2)] });
    expectWrong({ attempts: attempts.map((attempt) => ({ ...attempt, agent: "another" })) });
    const story = aStory({ answer: { events, attempts, statusIdx } });
    expect(check({ observations: [...recorded.observations, story] })).toEqual([]);
  });

  it("an answer from before the newest known batch", () => {
    const late = {
      kind: "await",
      node: "late",
      project: "default",
      task: "default/done",
      answer: "live",
    } as const;
    const observed: Observation = { ...late, sentMs: 1e12, heardMs: 1e12 + 1, at: { term: 1, idx: 3 } };
    expectOnly({ observations: [...recorded.observations, observed] }, "P5 freshness");
  });

  it.each([
    ["await", "unknown-task", { task: "default/done" }, "a known task is answered as unknown"],
    ["await", "live", { task: "unknown" }, "a missing task is answered as live"],
    ["cancel", "unknown-task", { task: "default/done" }, "a cancellation is answered as of an unknown task"],
    ["cancel", "cancelled", { task: "default/done" }, "a cancellation wins over a completion"],
    [
      "cancel",
      "ended",
      { task: "default/dropped", at: { term: 1, idx: 1 } },
      "a task is answered as ended before its end",
    ],
    [
      "cancel",
      "conflict",
      { round: 2 },
      "a cancellation of the current round is answered as a conflict of rounds",
    ],
    ["query", "unknown-task", { task: "default/waiting" }, "a query does not find a submitted task"],
    [
      "result",
      "ok",
      { outcome: "completed", result: "other" },
      "a result is recorded with different content than accepted",
    ],
    ["result", "stale-token", { token: "first" }, "the right token is called stale"],
  ] as const)("%s %s, changed: %s", (kind, answer, change, _sentence) => {
    const more = "token" in change ? { token: tokenOf("default/failed") } : change;
    expect(names(changed(kind, answer, more))).toContain("P5 answers");
  });

  it.each(["stale", "gone"] as const)("a recorded result is answered %s", (answer) => {
    const results = recorded.observations.filter(
      (observed) =>
        observed.kind === "result" && observed.answer === "ok" && observed.task === "default/done",
    );
    const repeated = { ...results[1], answer } as Observation;
    expectOnly(
      { observations: recorded.observations.map((each) => (each === results[1] ? repeated : each)) },
      "P5 answers",
    );
  });

  it("a state in which the task never was", () => {
    const queries = recorded.observations.filter(
      (observed) => observed.kind === "query" && typeof observed.answer === "object",
    );
    expect(queries.length).toBe(3);
    for (const query of queries) {
      const answer = { ...(query as { answer: object }).answer, state: "running" };
      const observations = recorded.observations.map((each) =>
        each === query ? ({ ...query, answer } as Observation) : each,
      );
      expectOnly({ observations }, "P5 answers");
    }
  });

  it("an outcome that contradicts the journal, in an answer or a notification", () => {
    for (const change of [{ result: "another" }, { state: "failed" }, { attempts: 2 }, { agent: "a2" }]) {
      const observations = recorded.observations.map((observed): Observation => {
        if (observed.kind !== "notified" || observed.outcome.task !== "done") return observed;
        return { ...observed, outcome: { ...observed.outcome, ...change } as typeof observed.outcome };
      });
      expectOnly({ observations }, "P5 answers");
    }
  });

  it("an end answered as no longer kept, though the audit still keeps the batch", () => {
    const observations = recorded.observations.map((observed): Observation => {
      if (observed.kind !== "notified" || observed.outcome.task !== "done") return observed;
      const { project, task, state, attempts } = observed.outcome;
      return { ...observed, outcome: { project, task, state, attempts, gone: true } };
    });
    expectOnly({ observations }, "P5 answers");
    const endedIdx = logOf(recorded).taskById.get("default/done")?.rounds[0].ended?.idx ?? 0;
    const trimmed = (
      firstIdx: number,
      { isLate = false, reason = "retention", before = [] as number[] } = {},
    ) => {
      const trims = [...before, firstIdx].map((each) => ({ type: "AuditTrimmed", firstIdx: each, reason }));
      const events = trims as unknown as Event[];
      const isThere = (event: Event) => event.type === "TaskCompleted" && event.task === "done";
      return isLate ? withAtEnd(events) : edited((event) => (isThere(event) ? [event, ...events] : [event]));
    };
    expect(names({ observations, journal: trimmed(endedIdx + 1) })).not.toContain("P5 answers");
    expect(names({ observations, journal: trimmed(endedIdx) })).toContain("P5 answers");
    // The journal records a loss later.
    const late = { isLate: true };
    expect(names({ observations, journal: trimmed(endedIdx + 1, late) })).toContain("P5 answers");
    const lost = { ...late, reason: "lost" };
    expect(names({ observations, journal: trimmed(endedIdx + 1, lost) })).not.toContain("P5 answers");
    // A full journal is purged before its next record says so.
    const short = { ...late, reason: "storage-short" };
    expect(names({ observations, journal: trimmed(endedIdx + 1, short) })).not.toContain("P5 answers");
    expect(names({ observations, journal: trimmed(endedIdx, short) })).toContain("P5 answers");
    const behindAnother = { ...short, before: [endedIdx - 1, endedIdx] };
    expect(names({ observations, journal: trimmed(endedIdx + 1, behindAnother) })).not.toContain(
      "P5 answers",
    );
  });

  it("an attempt missing in the journal", () => {
    for (const change of [{ agent: "a2" }, { token: "other" }, { attempt: 9 }, { task: "unknown" }])
      expect(names(changed("assigned", undefined, change))).toEqual(["P4 assigned"]);
  });

  it("a second outcome, a second submission, or an attempt out of order", () => {
    const again = (type: Event["type"]) => ({ journal: withRepeated(type) });
    expect(names(again("TaskCompleted"))).toContain("P2 task-histories");
    expect(names(again("TaskSubmitted"))).toContain("P2 task-histories");
    expect(names(again("TaskAssigned"))).toContain("P2 task-histories");
  });

  it("more counted attempts than a task allows", () => {
    const ofNone = (event: Event): Event =>
      event.type === "TaskSubmitted" ? { ...event, task: { ...event.task, maxAttempts: 0 } } : event;
    expect(names({ journal: edited((event) => [ofNone(event)]) })).toContain("P3 attempts");
  });

  it("more attempts than an agent's capacity", () => {
    const journal = edited((event) =>
      event.type === "AgentJoined" ? [{ ...event, maxConcurrent: 0 }] : [event],
    );
    expect(names({ journal })).toContain("P7 capacity");
  });

  it("an assignment to an agent on hold", () => {
    const held = edited((event) =>
      event.type === "AgentJoined"
        ? [
            event,
            { type: "HoldPlaced", on: "agent", name: event.agent, until: instant(9e12), by: "operator" },
          ]
        : [event],
    );
    expect(names({ journal: held })).toContain("P7 holds");
  });

  it("an assignment to an agent without the labels, or by an affinity that is another agent's", () => {
    const needy = edited((event) =>
      event.type === "TaskSubmitted"
        ? [{ ...event, task: { ...event.task, needs: { gpu: ["a100"] } } }]
        : [event],
    );
    expect(names({ journal: needy })).toContain("P7 needs");
    const favoured = edited((event) =>
      event.type === "TaskAssigned"
        ? [{ ...event, receipt: { ...event.receipt, decidedBy: "affinity" } }]
        : [event],
    );
    expect(names({ journal: favoured })).toContain("P7 needs");
  });

  it("a task, a session or slots beyond the grant in force", () => {
    const grantOf = (grant: object) => ({ type: "GrantConfigured", group: "_", grant }) as unknown as Event;
    const withGrant = (at: Event["type"], grant: object) =>
      edited((event) => (event.type === at ? [grantOf(grant), event] : [event]));
    const journal = withGrant("TaskAssigned", { projects: ["other"] });
    expect(checkHistory({ ...recorded, journal }, { mustAllHaveEnded: false })).toContainEqual({
      promise: "P7",
      checker: "grants",
      sentence: expect.stringContaining("but the grant of group _ excludes the project"),
    });
    expect(
      names({ journal: withGrant("AgentJoined", { kinds: ["count"], maxConcurrent: 1 }) }),
    ).not.toContain("P7 grants");
    for (const grant of [{ kinds: [] }, { maxConcurrent: 0 }, { types: ["gpt"] }])
      expect(names({ journal: withGrant("AgentJoined", grant) })).toContain("P7 grants");
    const undeclared = edited((event) =>
      event.type === "TermStarted"
        ? [event, { type: "PolicyChanged", policy: { agents: "declared" } } as unknown as Event]
        : [event],
    );
    expect(names({ journal: undeclared })).toContain("P7 grants");
    const slots = { agent: "a1", incarnation: "a1-1", handle: "h1", resources: ["gpt"] };
    const grantedSlots = [
      { type: "AgentJoined", agent: "a1", incarnation: "a1-1", kinds: [], maxConcurrent: 1 },
      grantOf({ resources: ["gpt"] }),
      { type: "SlotGranted", ...slots },
    ] as unknown as Event[];
    expect(names({ journal: withAtEnd(grantedSlots) })).not.toContain("P7 grants");
    const excluded = [...grantedSlots.slice(0, 1), grantOf({ resources: [] }), ...grantedSlots.slice(2)];
    expect(names({ journal: withAtEnd(excluded) })).toContain("P7 grants");
    const left = { type: "AgentLeft", agent: "a1", incarnation: "a1-1", reason: "forbidden" };
    expect(names({ journal: withAtEnd([left as unknown as Event]) })).toContain("P7 grants");
  });

  it("a program whose every call is refused, though the task was accepted", () => {
    const call = { kind: "call", node: "client", task: "default/waiting", sentMs: 0, heardMs: 1 } as const;
    const no: Observation = { ...call, refused: "WAGGLE_UNREACHABLE" };
    const { observations } = recorded;
    expectOnly({ observations: [...observations, no] }, "P5 calls");
    expectOnly({ observations: [...observations, { ...no, task: "never" }] });
    expectOnly({ observations: [...observations, no, { ...call, sentMs: 2 }] });
    const copy = {
      ...anAccepted({ task: "default/waiting" }),
      answer: undefined,
      at: undefined,
      isCopy: true,
    };
    expectOnly({ observations: [...observations, no, copy as Observation] });
  });

  it("a fenced session that joins again", () => {
    const session = { agent: "a1", incarnation: "a1-1" };
    const left = { type: "AgentLeft", ...session, reason: "fenced" } as unknown as Event;
    const joined = { type: "AgentJoined", ...session, kinds: [], maxConcurrent: 1 } as unknown as Event;
    const journal = (events: readonly Event[]) => withAtEnd(events);
    expect(names({ journal: journal([left, joined]) })).toContain("P4 sessions");
    expect(names({ journal: journal([joined, left]) })).not.toContain("P4 sessions");
  });

  it("an ended session with assignments that joins again, unless the agent was forgotten", () => {
    const session = { agent: "a9", incarnation: "a9-1" };
    const assigned = { type: "TaskAssigned", task: "none", attempt: 1, ...session } as unknown as Event;
    const left = { type: "AgentLeft", ...session, reason: "lapsed" } as unknown as Event;
    const joined = { type: "AgentJoined", ...session, kinds: [], maxConcurrent: 1 } as unknown as Event;
    const forgotten = { type: "AgentForgotten", agent: "a9" } as unknown as Event;
    const wrongIn = (events: readonly Event[]) => checkSessions(new CommittedLog(withAtEnd(events))).length;
    expect(wrongIn([assigned, left, joined])).toBe(1);
    expect(wrongIn([left, joined])).toBe(0);
    expect(wrongIn([assigned, left, forgotten, joined])).toBe(0);
  });

  it("an attempt declared lost though its agent keeps running", () => {
    const lost = edited((event) =>
      event.type === "TaskFailed"
        ? [{ ...event, type: "TaskDeadLettered", failure: { class: "lost", error: "" } } as unknown as Event]
        : [event],
    );
    expect(names({ journal: lost })).toContain("P4 sessions");
  });

  it("more slots granted than the resource has", () => {
    const grant = { agent: "a1", incarnation: "a1-1", handle: "h", resources: ["gpu", "gpu"] };
    const events = [
      { type: "ResourceConfigured", resource: "gpu", settings: { slots: 1 } },
      { type: "SlotGranted", ...grant, weightThousandths: 1, receipt: {} },
    ] as unknown as Event[];
    const journal = withAtEnd(events);
    expect(names({ journal })).toContain("P7 capacity");
  });

  it("readers with different batches or states", () => {
    const at = (change: Partial<Reading>) => ({
      readings: recorded.readings.map((reading) => (reading.idx === 4 ? { ...reading, ...change } : reading)),
    });
    expectOnly(at({ hash: "another" }), "P8 readings");
    expectOnly(at({ idx: 4_000 }), "P8 readings");
    expectOnly(at({ state: "another" }), "P13 fold");
  });
});

function check(change: Partial<Recorded>) {
  return checkHistory({ ...recorded, ...change }, { mustAllHaveEnded: false });
}

function names(change: Partial<Recorded>): string[] {
  return [...new Set(check(change).map(({ promise, checker }) => `${promise} ${checker}`))];
}

function expectOnly(change: Partial<Recorded>, ...expected: string[]): void {
  expect(names(change)).toEqual(expected);
}

/** The history with its last observation of a kind and an answer changed. */
function changed(
  kind: Observation["kind"],
  answer: string | undefined,
  change: object,
): { readonly observations: readonly Observation[] } {
  const place = recorded.observations.findLastIndex(
    (observed) =>
      observed.kind === kind &&
      (answer === undefined || ("answer" in observed && observed.answer === answer)),
  );
  expect(place, `${kind} ${answer} is in the history`).toBeGreaterThanOrEqual(0);
  const observations = recorded.observations.map((observed, at) =>
    at === place ? ({ ...observed, ...change } as Observation) : observed,
  );
  return { observations };
}

function without(observed: Observation, field: string, more: object): Observation {
  const { [field]: _dropped, ...rest } = observed as unknown as Record<string, unknown>;
  return { ...rest, ...more } as unknown as Observation;
}

/** The history of a task that completed. */
function trueStory(): Required<NonNullable<StoryObserved["answer"]>> {
  const log = logOf(recorded);
  const history = log.taskById.get("default/done");
  if (history === undefined) throw new Error("the task is not in the journal");
  const attempts = [...history.attempts].map(([attempt, { agent, openedIdx }]) => ({
    attempt,
    agent,
    assignedIdx: openedIdx,
  }));
  return { events: history.events, attempts, statusIdx: log.lastIdx };
}

function aStory(more: Pick<StoryObserved, "answer" | "refused" | "saysLoss">): StoryObserved {
  return { kind: "story", node: "reader", task: "default/done", sentMs: 1e12, heardMs: 1e12 + 1, ...more };
}

function anAccepted(change: Partial<SubmitObserved> & { readonly task: string }): Observation {
  const { task: id } = refOfKey(change.task);
  const content = { id, kind: "nobody", payload: `of ${id}` };
  const at = { term: 1, idx: logOf(recorded).lastIdx - 1 };
  const base = { kind: "submit", node: "later", project: "default", content, answer: "accepted" } as const;
  return { ...base, sentMs: 0, heardMs: 1e11, at, ...change };
}

function tokenOf(task: string): string {
  return logOf(recorded).taskById.get(task)?.attempts.get(1)?.token ?? "";
}

function lastPosition() {
  const idx = logOf(recorded).lastIdx;
  return { term: 1, idx };
}

/** The journal with changed events and a new, valid chain. @param more events for the last batch */
function edited(change: (event: Event) => readonly Event[], more: readonly Event[] = []): LogRecord[] {
  let prev = "";
  return recorded.journal.map(({ bytes }, at) => {
    const batch = decodeRecord(bytes);
    if (batch?.kind !== "batch") throw new Error("a record of the history is no batch");
    const { events, ...header } = batch;
    const isLast = at === recorded.journal.length - 1;
    const again = encodeBatch(
      { ...header, prev },
      [...events.flatMap(change), ...(isLast ? more : [])].map((event) => JSON.stringify(event)),
    );
    prev = hashOf(again);
    return { bytes: again };
  });
}

/** The journal with the given events at its end. */
function withAtEnd(events: readonly Event[]): LogRecord[] {
  return edited((event) => [event], events);
}

function withRepeated(type: Event["type"]): LogRecord[] {
  return edited((event) => (event.type === type ? [event, event] : [event]));
}
