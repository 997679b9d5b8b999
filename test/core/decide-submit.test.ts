// Outcomes of submitting and cancelling: accepted once, refused without a trace, cancelled or not by order.

import { describe, expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import { assignmentNumber, instant, kind, projectId, taskId, term } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { join, submit, Turns } from "../support/turns.ts";

const cancel = (id: string, project = "p"): Command => ({
  type: "CancelTask",
  project: projectId(project),
  task: taskId(id),
  round: 1,
});

/** The reply to a command that must change nothing. */
function refusal(turns: Turns, command: Command) {
  const before = fingerprint(turns.state);
  const { events, reply } = decide(turns.state, command, turns.at);
  expect(events).toEqual([]);
  expect(fingerprint(turns.state)).toBe(before);
  return reply;
}

describe("submitting", () => {
  it("is accepted once: the same content is a duplicate, other content a conflict, live or ended", () => {
    const turns = new Turns();
    const first = submit({ id: taskId("t1") });
    expect(turns.turn(first)).toMatchObject([{ kind: "accepted", duplicate: false }]);
    const other = { ...first, hash: "other" };
    expect(refusal(turns, first)).toMatchObject({ kind: "accepted", duplicate: true, warnings: [] });
    expect(refusal(turns, other)).toEqual({ kind: "conflict", task: "t1" });
    turns.turn(cancel("t1"));
    expect(refusal(turns, first)).toMatchObject({ kind: "accepted", duplicate: true });
    expect(refusal(turns, other)).toEqual({ kind: "conflict", task: "t1" });
  });

  it("within one turn is idempotent too", () => {
    const turns = new Turns();
    const replies = turns.turn(submit(), submit(), cancel("t1"), submit());
    expect(replies).toMatchObject([
      { duplicate: false },
      { duplicate: true },
      { kind: "cancelled" },
      { duplicate: true },
    ]);
    expect(turns.all("TaskSubmitted")).toHaveLength(1);
  });

  it("warns of a kind without agents, or is refused if the submitter prefers", () => {
    const turns = new Turns();
    turns.turn(join("a1", { kinds: [kind("count")] }));
    const mistyped = submit({ kind: kind("cuont") });
    expect(refusal(turns, { ...mistyped, failFast: true })).toEqual({
      kind: "no-capable-agent",
      taskKind: "cuont",
      nearMisses: ["count"],
    });
    expect(turns.turn(mistyped)).toMatchObject([
      { kind: "accepted", warnings: [{ code: "no-agent-serves-kind", nearMisses: ["count"] }] },
    ]);
    expect(turns.turn(submit({ id: taskId("t2"), kind: kind("count") }))).toMatchObject([{ warnings: [] }]);
  });

  it("warns of needs that no agent of the kind meets, with near misses, or is refused if the submitter prefers", () => {
    const turns = new Turns();
    const agents = ["h100", "l4"].map((gpu, at) => join(`a${at}`, { labels: { gpu, region: "eu" } }));
    turns.turn(...agents);
    const needy = submit({ needs: { gpu: ["h10"], region: ["eu"] } });
    const why = { taskKind: "k", nearMisses: ["gpu=h100"], needs: "gpu=h10" };
    expect(refusal(turns, { ...needy, failFast: true })).toEqual({ kind: "no-capable-agent", ...why });
    expect(turns.turn(needy)).toMatchObject([
      { kind: "accepted", warnings: [{ code: "no-agent-has-labels", ...why }] },
    ]);
    const met = submit({ id: taskId("t2"), needs: { gpu: ["h100"] } });
    expect(turns.turn(met)).toMatchObject([{ warnings: [] }]);
  });

  it("looks at a bounded number of agents for a warning, and at all of them before a refusal", () => {
    const turns = new Turns();
    const many = limits.labelledAgentsComparedMax + 1;
    turns.turn(...Array.from({ length: many }, (_, at) => join(`a${at}`, { labels: { gpu: "l4" } })));
    const needy = submit({ needs: { gpu: ["a100"] } });
    expect(refusal(turns, { ...needy, failFast: true })).toMatchObject({ kind: "no-capable-agent" });
    expect(turns.turn(needy)).toMatchObject([{ kind: "accepted", warnings: [] }]);
  });

  it("is refused with needs of its own while live tasks, due or not, have the maximum of different needs", () => {
    const turns = new Turns();
    const dueAt = instant(turns.at + 500);
    const needy = (host: string) =>
      submit({
        id: taskId(`for-${host}`),
        needs: { host: [host] },
        ...(host < "h3" ? { notBefore: dueAt } : {}),
      });
    for (let at = 0; at < limits.needsQueuesMax; at += 1_000)
      turns.turn(...Array.from({ length: 1_000 }, (_, n) => needy(`h${at + n}`)));
    const full = { has: limits.needsQueuesMax, max: limits.needsQueuesMax };
    expect(refusal(turns, needy("other"))).toMatchObject({ reason: "too-many-needs", ...full });
    const same = submit({ id: taskId("t2"), needs: { host: ["h1"] } });
    expect(turns.turn(same, submit({ id: taskId("t3") }))).toMatchObject([
      { kind: "accepted" },
      { kind: "accepted" },
    ]);
    turns.passToDue();
    expect(turns.state.queueByKey.size).toBe(limits.needsQueuesMax + 1);
    turns.turn({ type: "CancelTask", project: projectId("p"), task: taskId("for-h7"), round: 1 });
    expect(turns.turn(needy("other"))).toMatchObject([{ kind: "accepted" }]);
  });

  it("is refused when the swarm, or the project, has the maximum of waiting tasks", () => {
    const turns = new Turns();
    turns.turn(submit({ id: taskId("t1") }));
    const { counts } = turns.state;
    const project = turns.state.projectById.get(projectId("p"))?.counts ?? counts;
    const more = submit({ id: taskId("t2") });

    counts.delayed = limits.queuedTasksMax - counts.queued;
    expect(refusal(turns, more)).toEqual({
      kind: "refused",
      reason: "swarm-queue-full",
      project: "p",
      user: "u",
      has: limits.queuedTasksMax,
      max: limits.queuedTasksMax,
      retryAfterMs: limits.retryAfterMs,
    });
    counts.delayed -= 1;
    expect(decide(turns.state, more, turns.at).events).toHaveLength(1);
    project.delayed = limits.queuedTasksPerProjectMax - project.queued;
    expect(refusal(turns, more)).toMatchObject({ kind: "refused", reason: "project-queue-full" });
    expect(
      decide(turns.state, submit({ id: taskId("t3"), project: projectId("q") }), turns.at).events,
    ).toHaveLength(1);
    // A task accepted before is still the same task.
    expect(refusal(turns, submit({ id: taskId("t1") }))).toMatchObject({ kind: "accepted", duplicate: true });
  });

  it("with a deadline that passed ends expired in the same turn; a task with a later not-before waits", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(
      submit({ id: taskId("late"), deadline: instant(turns.at - 1) }),
      submit({ id: taskId("later"), notBefore: instant(turns.at + 500) }),
      submit({ id: taskId("never"), notBefore: instant(turns.at + 500), deadline: instant(turns.at + 400) }),
    );
    expect(turns.ended("late")).toMatchObject({ state: "expired", attempts: 0 });
    expect(turns.task("later").state).toBe("delayed");
    turns.passToDue();
    expect(turns.ended("never").state).toBe("expired");
    expect(turns.task("later").state).toBe("delayed");
    turns.passToDue();
    expect(turns.task("later").state).toBe("assigned");
  });

  it("is forgotten beyond the horizon, and its id is then a new task", () => {
    const turns = new Turns();
    turns.turn(submit({ id: taskId("old") }), cancel("old"));
    turns.pass(limits.rememberMsDefault + 1);
    turns.turn(submit({ id: taskId("t2") }), cancel("t2"));
    expect(turns.turn(submit({ id: taskId("old") }))).toMatchObject([{ kind: "accepted", duplicate: false }]);
  });

  it("is remembered whatever time the clock shows between two terms", () => {
    const turns = new Turns();
    turns.turn(submit({ id: taskId("old") }), cancel("old"));
    turns.pass(limits.rememberMsDefault + 1);
    turns.turn({ type: "StartTerm", term: term(2), leader: "c2", opened: "o1", timeoutMs: 3_000 });
    turns.turn(submit({ id: taskId("t2") }), cancel("t2"));
    expect(turns.turn(submit({ id: taskId("old") }))).toMatchObject([{ kind: "accepted", duplicate: true }]);
    turns.pass(limits.rememberMsDefault + 1);
    turns.turn(submit({ id: taskId("t3") }), cancel("t3"));
    expect(turns.turn(submit({ id: taskId("old") }))).toMatchObject([{ kind: "accepted", duplicate: false }]);
  });
});

describe("cancelling", () => {
  it("wins before the result and loses after it", () => {
    const turns = new Turns();
    turns.turn(join("a1", { maxConcurrent: 2 }));
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
    const results = ["t1", "t2"].map((id) => turns.report(id, { kind: "completed", result: "" }));
    const [first, second] = results as [Command, Command];
    expect(turns.turn(cancel("t1"), first)).toMatchObject([{ kind: "cancelled" }, { kind: "stale" }]);
    expect(turns.turn(second, cancel("t2"))).toMatchObject([
      { kind: "ok" },
      { kind: "cancelled", state: "completed" },
    ]);
    expect([turns.ended("t1").state, turns.ended("t2").state]).toEqual(["cancelled", "completed"]);
  });

  it("revokes the attempt, whose capacity is occupied until its agent confirms", () => {
    const turns = new Turns();
    turns.turn(join("a1"));
    turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
    const end = turns.report("t1", { kind: "revoked" });
    turns.turn(cancel("t1"));
    expect(turns.effects.at(-2)).toMatchObject({ kind: "revoke", reason: "the task was cancelled" });
    expect(turns.effects.at(-1)).toMatchObject({ kind: "ended", task: "t1" });
    expect(turns.task("t2").state).toBe("queued");
    expect(turns.turn(end)).toEqual([{ kind: "stale" }]);
    expect(turns.last("AttemptReleased")).toMatchObject({ task: "t1", reason: "confirmed" });
    expect(turns.task("t2").state).toBe("assigned");
  });

  it("is confirmed by a heartbeat that does not list the attempt any more", () => {
    const turns = new Turns();
    const { incarnation, agent } = join("a1");
    turns.turn(join("a1"));
    turns.turn(submit());
    turns.turn(cancel("t1"));
    turns.turn({ type: "ReconcileAgent", agent, incarnation, held: [], seen: assignmentNumber(1) });
    expect(turns.last("AttemptReleased")).toMatchObject({ task: "t1", reason: "agent-gone" });
    expect(turns.agent("a1").open.size).toBe(0);
  });

  it("has the same reply twice, and another project's task is unknown", () => {
    const turns = new Turns();
    turns.turn(submit());
    expect(refusal(turns, cancel("t1", "other"))).toEqual({ kind: "unknown-task", task: "t1" });
    turns.turn(cancel("t1"));
    expect(refusal(turns, cancel("t1"))).toEqual({ kind: "cancelled", task: "t1", state: "cancelled" });
    expect(refusal(turns, cancel("t1", "other"))).toEqual({ kind: "unknown-task", task: "t1" });
    expect(refusal(turns, cancel("nobody"))).toEqual({ kind: "unknown-task", task: "nobody" });
  });
});
