// Each invariant is broken on purpose, to prove that its checker sees; and a busy state has no violations. The numbers
// are those of docs/invariants.md.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Violation } from "../../src/core/invariant.ts";
import { checkAfterTurn, checkInvariants } from "../../src/core/invariants.ts";
import { Roll } from "../../src/core/roll.ts";
import { Succession } from "../../src/core/succession.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
  type Instant,
  incarnation,
  instant,
  kind,
  projectId,
  taskId,
  term,
  userId,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { EndedTask } from "../../src/state/ended-task.ts";
import {
  type AffinityRow,
  emptyState,
  type OpenAttempt,
  type SwarmState,
  type TaskRow,
} from "../../src/state/state.ts";
import { aRef, endedTask, liveTask, putEnded } from "../support/task-refs.ts";
import { join, submit, Turns } from "../support/turns.ts";

/** One task in each state, a revoked attempt, an agent that left, and learned values. */
function aBusySwarm(): Turns {
  const turns = new Turns();
  turns.turn(join("a1", { maxConcurrent: 3 }), join("a2", { kinds: [kind("other")] }), join("gone"));
  turns.turn({ type: "LeaveAgent", agent: agentId("gone"), incarnation: incarnation("gone-1") });
  turns.turn(
    submit({ id: taskId("running") }),
    submit({ id: taskId("revoked"), kind: kind("other") }),
    submit({ id: taskId("retried"), maxAttempts: 5 }),
  );
  turns.turn(
    turns.report("retried", { kind: "failed", error: "" }),
    { type: "CancelTask", project: projectId("p"), task: taskId("revoked"), round: 1 },
    {
      type: "ReconcileAgent",
      agent: agentId("a1"),
      incarnation: incarnation("a1-1"),
      held: [{ ...aRef("running"), attempt: attemptNumber(1) }],
      seen: assignmentNumber(1),
    },
    submit({ id: taskId("assigned"), deadline: instant(turns.at + 60_000) }),
    submit({ id: taskId("delayed"), notBefore: instant(turns.at + 60_000) }),
    submit({ id: taskId("queued"), kind: kind("nobody-serves-this") }),
    submit({ id: taskId("queued too"), kind: kind("nobody-serves-this"), priority: 1 }),
  );
  return turns;
}

function row(state: SwarmState, id: string): TaskRow {
  return liveTask(state, id) as TaskRow;
}

function open(state: SwarmState, id: string): OpenAttempt {
  return row(state, id).open as OpenAttempt;
}

const agent = (state: SwarmState, id: string) => state.agentById.get(agentId(id)) as never as Mutable;
// biome-ignore lint/suspicious/noExplicitAny: what is broken here is what the types forbid
type Mutable = any;

const breaks: readonly (readonly [number, what: string, doIt: (state: SwarmState) => void])[] = [
  [
    1,
    "a task is live and has ended",
    (state) => {
      const ended = endedTask(state, "revoked") as Mutable;
      putEnded(state, { ...ended, id: taskId("queued") });
    },
  ],
  [
    1,
    "a live task is in a terminal state",
    (state) => {
      (row(state, "queued") as Mutable).state = "failed";
    },
  ],
  [1, "a task is kept under another id", (state) => state.taskById.set(aRef("x"), row(state, "delayed"))],
  [
    1,
    "an ended task is in a live state",
    (state) => {
      const ended = endedTask(state, "revoked") as Mutable;
      putEnded(state, { ...ended, state: "running" });
    },
  ],
  [
    2,
    "a delayed task has an open attempt",
    (state) => {
      row(state, "delayed").open = open(state, "running");
    },
  ],
  [
    2,
    "a delayed task has no release timer",
    (state) => {
      row(state, "delayed").releaseTimer = undefined;
    },
  ],
  [
    2,
    "a queued task stands in no queue",
    (state) => {
      row(state, "queued").partition = undefined;
    },
  ],
  [
    2,
    "a task is running, its attempt is not",
    (state) => {
      open(state, "running").state = "assigned";
    },
  ],
  [
    2,
    "a deadline has no timer",
    (state) => {
      row(state, "assigned").deadlineTimer = undefined;
    },
  ],
  [
    3,
    "a user's part takes another task for its first",
    (state) => {
      (row(state, "queued").partition as Mutable).user.firstPriority += 1;
    },
  ],
  [
    3,
    "a user's part takes another task for its oldest",
    (state) => {
      (row(state, "queued").partition as Mutable).user.oldestTurn += 1;
    },
  ],
  [
    3,
    "a queue is empty",
    (state) => {
      const partition = row(state, "queued").partition as Mutable;
      for (const each of [...partition.tasks.values()]) partition.tasks.remove(each);
    },
  ],
  [
    3,
    "a queue holds a task of another kind",
    (state) => {
      const queue = row(state, "queued").partition?.user.project.queue as Mutable;
      queue.kind = kind("k");
    },
  ],
  [
    3,
    "a member stands in no order",
    (state) => {
      const user = row(state, "queued").partition?.user as Mutable;
      user.project.users.leave(user);
    },
  ],
  [
    3,
    "a member's tasks are counted wrongly",
    (state) => {
      const user = row(state, "queued").partition?.user as Mutable;
      user.cost += 1;
    },
  ],
  [
    3,
    "a queue forgot its longest waiting member",
    (state) => {
      (row(state, "queued").partition as Mutable).oldest = undefined;
    },
  ],
  [
    3,
    "a kind counts queues that do not exist",
    (state) => {
      const queue = row(state, "queued").partition?.user.project.queue as Mutable;
      queue.kindRow.queues += 1;
    },
  ],
  [
    3,
    "a queue is out of order",
    (state) => {
      (row(state, "queued").partition as Mutable).tasks.peek().spec = {
        ...row(state, "queued").spec,
        priority: 9e5,
      };
    },
  ],
  [
    3,
    "a queued task is in no queue's queue",
    (state) => row(state, "queued").partition?.tasks.remove(row(state, "queued")),
  ],
  [
    4,
    "an attempt does not occupy its agent",
    (state) => agent(state, "a1").open.delete(open(state, "running").number),
  ],
  [
    4,
    "capacity is occupied by no task's attempt",
    (state) => {
      row(state, "running").open = undefined;
    },
  ],
  [
    4,
    "an attempt outlived the incarnation",
    (state) => {
      agent(state, "a1").incarnation = "a1-2";
    },
  ],
  [
    4,
    "a revoked attempt is under way",
    (state) => {
      for (const each of agent(state, "a2").open.values()) each.state = "running";
    },
  ],
  [
    4,
    "an offline agent has attempts",
    (state) => {
      agent(state, "a1").online = false;
    },
  ],
  [
    5,
    "an attempt was skipped",
    (state) => {
      row(state, "running").attempt = 3;
      (open(state, "running") as Mutable).attempt = 3;
    },
  ],
  [
    5,
    "the open attempt is not the last",
    (state) => {
      (open(state, "running") as Mutable).attempt = 2;
    },
  ],
  [
    5,
    "a task is live after its last attempt",
    (state) => {
      row(state, "delayed").failures = 3;
      row(state, "delayed").attempt = 3;
    },
  ],
  [
    6,
    "a number was given out of turn",
    (state) => {
      agent(state, "a1").lastNumber = 1;
    },
  ],
  [
    6,
    "an arrived assignment is unconfirmed",
    (state) => {
      agent(state, "a1").confirmedNumber = 3;
    },
  ],
  [
    6,
    "an assignment is confirmed that did not arrive",
    (state) => {
      agent(state, "a1").confirmedNumber = 0;
    },
  ],
  [
    7,
    "an attempt has no time-out",
    (state) => {
      open(state, "running").timeoutTimer = undefined;
    },
  ],
  [7, "an attempt's agent is unknown", (state) => state.agentById.delete(agentId("a1"))],
  [8, "a timer belongs to a task that is no more", (state) => state.taskById.delete(aRef("delayed"))],
  [
    8,
    "a timer waits in no heap",
    (state) => {
      state.timers.remove(row(state, "delayed").releaseTimer as Mutable);
    },
  ],
  [
    8,
    "timers are out of order",
    (state) => {
      (state.timers.peek() as Mutable).dueAt = instant(9e15);
    },
  ],
  [
    8,
    "an agent that left is never forgotten",
    (state) => {
      agent(state, "gone").forgetTimer = undefined;
    },
  ],
  [
    9,
    "the swarm's counter is off",
    (state) => {
      state.counts.queued += 1;
    },
  ],
  [
    9,
    "a project's counter is off",
    (state) => {
      (state.projectById.get(projectId("p")) as Mutable).counts.running = 0;
    },
  ],
  [
    9,
    "a user's counter is off",
    (state) => {
      (state.projectById.get(projectId("p")) as Mutable).userByName.get(userId("u")).counts.delayed -= 1;
    },
  ],
  [
    9,
    "a task is counted in rows outside the state",
    (state) => {
      const { projectRow } = row(state, "queued");
      (row(state, "queued") as Mutable).projectRow = { ...projectRow };
    },
  ],
  [9, "a project has no counters", (state) => state.projectById.delete(projectId("p"))],
  [
    9,
    "a task was never counted",
    (state) => {
      state.submissions += 1;
    },
  ],
  [
    10,
    "an agent is not listed for its kind",
    (state) => state.onlineByKind.get(kind("k"))?.delete(agentId("a1")),
  ],
  [
    10,
    "an agent is listed for a kind it does not serve",
    (state) => {
      state.onlineByKind.set(kind("new"), new Map([[agentId("a1"), agent(state, "a1")]]));
    },
  ],
  [9, "a kind has no row", (state) => state.kindByName.delete(kind("k"))],
  [9, "a kind in use is listed as idle", (state) => state.idleKinds.add(kind("k"))],
  [
    9,
    "a kind is kept without a reason",
    (state) => {
      state.kindByName.set(kind("new"), { kind: kind("new"), settings: undefined, tick: 0, queues: 0 });
      state.idleKinds.add(kind("new"));
    },
  ],
  [
    10,
    "an agent has a kind row outside the state",
    (state) => {
      const { kindRows } = agent(state, "a1");
      agent(state, "a1").kindRows = kindRows.map((row: object) => ({ ...row }));
    },
  ],
  [10, "a kind is listed without agents", (state) => state.onlineByKind.set(kind("new"), new Map())],
  [
    11,
    "more starts of terms than are remembered",
    (state) => {
      const starts = Array.from({ length: limits.rememberedTerms + 1 }, (_, at) => at + 1);
      state.termStarts = starts.map((nth) => ({ term: term(nth), idx: batchIndex(nth), opened: "" }));
    },
  ],
  [
    11,
    "an agent serves too many kinds",
    (state) => {
      agent(state, "gone").kinds = new Set(
        Array.from({ length: limits.kindsPerAgentMax + 1 }, (_, at) => `k${at}`),
      );
    },
  ],
  [
    11,
    "more idle kinds are kept than the maximum",
    (state) => {
      for (let at = 0; at <= limits.idleKindsMax; at += 1) {
        const idle = kind(`k${at}`);
        state.kindByName.set(idle, { kind: idle, settings: undefined, tokensMean: 1, tick: 0, queues: 0 });
        state.idleKinds.add(idle);
      }
    },
  ],
  [
    11,
    "infrastructure refuses for ever",
    (state) => {
      row(state, "delayed").infrastructureFailures = limits.infrastructureFailuresMax + 1;
      row(state, "delayed").attempt = limits.infrastructureFailuresMax + 1;
    },
  ],
  [
    12,
    "a record remembers more than was tried",
    (state) => {
      (state.recordByKind.get(kind("k")) as Mutable).failures = 40;
    },
  ],
  [
    12,
    "a rate is no number",
    (state) => {
      (state.recordByKind.get(kind("k")) as Mutable).successes = Number.NaN;
    },
  ],
  [
    12,
    "an outcome is in the future",
    (state) => {
      (state.recordByKind.get(kind("k")) as Mutable).updatedAt = state.at + 1;
    },
  ],
  [
    13,
    "an agent idles beside a waiting task",
    (state) => {
      state.agentById.get(agentId("a1"))?.open.clear();
      const queue = row(state, "queued").partition?.user.project.queue as Mutable;
      queue.kind = kind("k");
    },
  ],
  [
    57,
    "an affinity is kept under another key",
    (state) => {
      state.affinityByKey.set("p elsewhere", anAffinity("s", state.at));
    },
  ],
  [
    57,
    "an affinity was used in the future",
    (state) => {
      state.affinityByKey.set("p s", anAffinity("s", instant(state.at + 1)));
    },
  ],
  [
    57,
    "affinities are out of order of use",
    (state) => {
      state.affinityByKey.set("p s1", anAffinity("s1", state.at));
      state.affinityByKey.set("p s2", anAffinity("s2", instant(state.at - 1)));
    },
  ],
  [
    57,
    "more affinities are remembered than the maximum",
    (state) => {
      for (let at = 0; at <= limits.affinitiesMax; at += 1)
        state.affinityByKey.set(`p s${at}`, anAffinity(`s${at}`, state.at));
    },
  ],
  [
    14,
    "a timer is overdue",
    (state) => {
      state.at = instant(state.at + 120_000);
    },
  ],
  [
    53,
    "a term starts before the term before it",
    (state) => {
      state.termStarts = [{ term: term(9), idx: batchIndex(1), opened: "" }, ...state.termStarts];
    },
  ],
  [
    53,
    "the present term has no start",
    (state) => {
      state.term = term(99);
    },
  ],
  [
    53,
    "a term starts in the future",
    (state) => {
      state.termStarts = [{ term: state.term, idx: batchIndex(99_999), opened: "" }];
    },
  ],
];

function anAffinity(affinity: string, usedAt: Instant): AffinityRow {
  return { project: projectId("p"), affinity, agent: agentId("a1"), usedAt };
}

const steps: readonly (readonly [number, what: string, doIt: (state: SwarmState) => void])[] = [
  [
    15,
    "a round is skipped",
    (state) => {
      const ended = endedTask(state, "revoked") as Mutable;
      putEnded(state, { ...ended, round: ended.round + 2 });
    },
  ],
  [
    15,
    "an ended task is live again",
    (state) => {
      state.endedById.delete(aRef("revoked"));
      state.taskById.set(aRef("revoked"), row(state, "queued"));
    },
  ],
  [
    15,
    "a task ends twice, differently",
    (state) => {
      const ended = endedTask(state, "revoked") as Mutable;
      putEnded(state, { ...ended, state: "completed" });
    },
  ],
  [15, "an outcome is forgotten before its time", (state) => state.endedById.delete(aRef("revoked"))],
  [
    16,
    "an attempt was skipped",
    (state) => {
      row(state, "delayed").attempt += 2;
    },
  ],
  [
    16,
    "an attempt's number falls",
    (state) => {
      row(state, "running").attempt -= 1;
    },
  ],
  [
    17,
    "an agent has more attempts than capacity",
    (state) => {
      const { open: places } = agent(state, "a2");
      places.set(assignmentNumber(7), open(state, "running"));
    },
  ],
  [
    18,
    "the term falls",
    (state) => {
      state.term = term(0);
    },
  ],
  [
    18,
    "the index falls",
    (state) => {
      state.idx = batchIndex(0);
    },
  ],
  [
    18,
    "journal time goes back",
    (state) => {
      state.at = instant(state.at - 1);
    },
  ],
  [
    18,
    "a session restarts its numbers",
    (state) => {
      agent(state, "a1").lastNumber = 0;
    },
  ],
];

const numbersOf = (violations: readonly Violation[]) => violations.map(({ number }) => number);

describe("the checkers", () => {
  it("find nothing in a sound swarm, however busy", () => {
    const { state } = aBusySwarm();
    const states = [...state.taskById.values()].map((each) => each.state).sort();
    expect(states).toEqual(["assigned", "delayed", "delayed", "queued", "queued", "running"]);
    expect(checkAfterTurn(state)).toEqual([]);
    expect(checkAfterTurn(emptyState())).toEqual([]);
  });

  it.each(breaks)("see that %i is broken: %s", (number, _, doIt) => {
    const { state } = aBusySwarm();
    doIt(state);
    const violations = number > 12 ? checkAfterTurn(state) : checkInvariants(state);
    expect(numbersOf(violations)).toContain(number);
    for (const { name, sentence } of violations) expect(`${name}: ${sentence}`).not.toContain("undefined");
  });

  it.each(breaks)("see the violation also in a formerly sound state: %i, %s", (number, _, doIt) => {
    const { state } = aBusySwarm();
    const roll = new Roll();
    expect(checkAfterTurn(state, roll)).toEqual([]);
    expect(checkAfterTurn(state, roll)).toEqual([]);
    doIt(state);
    expect(numbersOf(checkAfterTurn(state, roll))).toContain(number);
  });

  it("treat a task in a new row as new, and an ended task as ended", () => {
    const { state } = aBusySwarm();
    const roll = new Roll();
    checkAfterTurn(state, roll);
    const ref = aRef("queued");
    const known = row(state, "queued");
    state.taskById.set(ref, { ...known } as never);
    expect(numbersOf(checkInvariants(state, roll))).toContain(3);
    state.taskById.set(ref, known as never);
    const ended = endedTask(state, "revoked") as EndedTask;
    putEnded(state, { ...ended, id: ref.task, project: ref.project, state: "failed" });
    expect(checkInvariants(state, roll).map(({ sentence }) => sentence)).toContain(
      "task queued has ended and is queued",
    );
  });

  it.each(steps)("see a violation of %i between two batches: %s", (number, _, doIt) => {
    const { state } = aBusySwarm();
    const succession = new Succession();
    succession.check(state);
    doIt(state);
    expect(numbersOf(succession.check(state))).toContain(number);
  });

  it("allow an agent with lowered capacity to have more attempts, until they end", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 2 }));
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }), submit({ id: taskId("t3") }));
    const held = ["t1", "t2"].map((id) => ({ ...aRef(id), attempt: attemptNumber(1) }));
    turns.turn(join("a1", { maxConcurrent: 1, held, seen: assignmentNumber(2) }));
    expect(turns.agent("a1").open.size).toBe(2);
    turns.turn(turns.report("t1", { kind: "completed", result: "" }));
    expect(turns.agent("a1").open.size).toBe(1);
    expect(turns.task("t3").state).toBe("queued");
  });

  it("stand in docs/invariants.md with their numbers and names", () => {
    const page = readFileSync(fileURLToPath(new URL("../../docs/invariants.md", import.meta.url)), "utf8");
    const numbers = new Set([...breaks, ...steps].map(([number]) => number));
    const here = [...Array.from({ length: 18 }, (_, at) => at + 1), 53, 57];
    expect([...numbers].sort((a, b) => a - b)).toEqual(here);
    for (const number of numbers) expect(page).toMatch(new RegExp(`^\\| ${number} \\|`, "m"));
  });
});
