// The outcome of a command, as a value: events and a reply. Reads the state, changes nothing, performs nothing. The one
// thing to know: a decision may use only the state (which follows from the journal), the command, and its journal
// instant. Every refusal is a reply without events.

import { unreachable } from "../assert.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { EndedTask } from "../state/ended-task.ts";
import type { Event, TaskSpec } from "../state/event.ts";
import { nearMisses } from "../state/near-miss.ts";
import { type Labels, meetsNeeds, needsWords, unmetNeeds } from "../state/needs.ts";
import type { SwarmState, TaskState, Timer } from "../state/state.ts";
import { isRetryable, refOf } from "../state/task-rows.ts";
import { refusalOf } from "./admission.ts";
import type { Command, Reply, SubmitWarning } from "./command.ts";
import {
  decideDrain,
  decideJoin,
  decideLapse,
  decideLeave,
  decideReconcile,
  decideUndrain,
  decideUnresponsive,
} from "./decide-agent.ts";
import { decideResult, decideRevoke, decideStall, decideTimeout } from "./decide-attempt.ts";
import { timeIsOver } from "./decide-hold.ts";
import { decideSettings } from "./decide-settings.ts";
import {
  decideAcquire,
  decideAcquireTimeout,
  decideIdle,
  decideRelease,
  decideTouch,
} from "./decide-slot.ts";
import { answered, type Decision } from "./decision.ts";

const NOTHING = answered({ kind: "none" });

/** Decides one command at instant `at` of the journal. */
export function decide(state: SwarmState, command: Command, at: Instant): Decision {
  switch (command.type) {
    case "StartTerm":
      return decided({
        type: "TermStarted",
        term: command.term,
        leader: command.leader,
        opened: command.opened,
        timeoutMs: command.timeoutMs,
      });
    case "RenewTerm":
      return decided({ type: "TermRenewed" });
    case "SubmitTask":
      return decideSubmit(state, command, at);
    case "CancelTask":
      return decideCancel(state, command);
    case "RetryTask":
      return decideRetryTask(state, command, at);
    case "RevokeAttempt":
      return decideRevoke(state, command, at);
    case "RescheduleTask":
      return decideReschedule(state, command, at);
    case "JoinAgent":
      return decideJoin(state, command, at);
    case "LeaveAgent":
      return decideLeave(state, command, at);
    case "ReconcileAgent":
      return decideReconcile(state, command, at);
    case "ReportResult":
      return decideResult(state, command, at);
    case "AcquireSlots":
      return decideAcquire(state, command, at);
    case "ReleaseSlots":
      return decideRelease(state, command, at);
    case "TouchSlots":
      return decideTouch(state, command, at);
    case "DrainAgent":
      return decideDrain(state, command.agent);
    case "UndrainAgent":
      return decideUndrain(state, command.agent);
    case "LapseAgent":
      return decideLapse(state, command, at);
    case "MarkUnresponsive":
      return decideUnresponsive(state, command.agent, command.incarnation);
    case "StallAttempt":
      return decideStall(state, command, at);
    case "Tick":
      return decideDue(state, command.jitter, at);
    case "SummarizeRefusals":
      return decided({
        type: "TasksRefused",
        project: command.project,
        reason: command.reason,
        count: command.count,
      });
    case "TrimAudit":
      return decideTrim(state, command);
    case "SetPolicy":
    case "SetProject":
    case "RemoveProject":
    case "SetKind":
    case "SetResource":
    case "RemoveResource":
    case "SetRate":
    case "RemoveRate":
    case "SetGrant":
    case "RemoveGrant":
    case "Pause":
    case "Resume":
    case "PlaceHold":
    case "EndHold":
      return decideSettings(state, command, at);
    default:
      unreachable(command);
  }
}

function decided(event: Event): Decision {
  return { events: [event], reply: { kind: "ok" } };
}

function decideTrim(state: SwarmState, command: Extract<Command, { type: "TrimAudit" }>): Decision {
  const { firstIdx, givenUp } = command;
  if (firstIdx <= state.auditFirstIdx && givenUp === undefined) return NOTHING;
  return decided({ ...command, type: "AuditTrimmed" });
}

function decideSubmit(
  state: SwarmState,
  command: Extract<Command, { type: "SubmitTask" }>,
  at: Instant,
): Decision {
  const { task, hash } = command;
  const ref = refOf(task);
  const known = state.taskById.get(ref) ?? state.endedById.get(ref);
  if (known !== undefined) {
    if (known.hash !== hash) return answered({ kind: "conflict", task: task.id });
    return answered({ kind: "accepted", task: task.id, duplicate: true, warnings: [] });
  }
  const refusal = refusalOf(state, task, at);
  if (refusal !== undefined) return answered(refusal);
  const event: Event = { type: "TaskSubmitted", task, hash };
  const warning = incapable(state, task, command.failFast === true);
  if (warning === undefined)
    return { events: [event], reply: { kind: "accepted", task: task.id, duplicate: false, warnings: [] } };
  if (command.failFast === true) {
    const { code: _, ...why } = warning;
    return answered({ kind: "no-capable-agent", ...why });
  }
  return {
    events: [event],
    reply: { kind: "accepted", task: task.id, duplicate: false, warnings: [warning] },
  };
}

/**
 * Why no online agent could have the task, whatever its role. A warning about labels or grants looks at the first
 * `limits.labelledAgentsComparedMax` agents of the kind, because submissions must not cost as much as the swarm is
 * large. `isExact`: looks at all agents.
 */
function incapable(
  state: SwarmState,
  { kind, needs, project }: TaskSpec,
  isExact: boolean,
): SubmitWarning | undefined {
  const serving = state.onlineByKind.get(kind);
  if (serving === undefined) {
    const near = nearMisses(kind, state.onlineByKind.keys());
    return { code: "no-agent-serves-kind", taskKind: kind, nearMisses: near };
  }
  const access = state.grants.accessOf(project);
  if (needs === undefined && access === undefined) return undefined;
  const compared: Labels[] = [];
  let looked = 0;
  for (const { labels, group } of serving.values()) {
    looked += 1;
    if (looked > limits.labelledAgentsComparedMax && !isExact) return undefined;
    if (access?.admits(group) === false) continue;
    if (meetsNeeds(labels, needs)) return undefined;
    if (compared.length < limits.labelledAgentsComparedMax) compared.push(labels);
  }
  if (needs === undefined || compared.length === 0)
    return { code: "no-agent-serves-kind", taskKind: kind, nearMisses: [] };
  const { unmet, isUnmetByAll, nearMisses: near } = unmetNeeds(needs, compared);
  const lacking = needsWords(isUnmetByAll ? unmet : needs);
  return { code: "no-agent-has-labels", taskKind: kind, nearMisses: near, needs: lacking };
}

function decideCancel(state: SwarmState, command: Extract<Command, { type: "CancelTask" }>): Decision {
  const { project, task, round: wanted } = command;
  const known = state.taskById.get(command) ?? state.endedById.get(command);
  if (known === undefined) return answered({ kind: "unknown-task", task });
  const { round } = known;
  if (round !== wanted) return answered({ kind: "other-round", task, round, wanted });
  if ("endedAt" in known) return answered({ kind: "cancelled", task, state: known.state });
  return {
    events: [{ type: "TaskCancelled", project, task, reason: "requested" }],
    reply: { kind: "cancelled", task, state: "cancelled" },
  };
}

/**
 * The ended task to retry, or the reply if no round is to be opened. A round that was opened before gets the same reply
 * as then, whatever happened to the task since.
 */
export function toRetry(
  state: SwarmState,
  { project, task, round }: Pick<Extract<Command, { type: "RetryTask" }>, "project" | "task" | "round">,
): { readonly ended: EndedTask } | { readonly reply: Reply } {
  const ref = { project, task };
  const known = state.taskById.get(ref) ?? state.endedById.get(ref);
  if (known === undefined) return { reply: { kind: "unknown-task", task } };
  if (round <= known.round) return { reply: { kind: "retried", task, round } };
  if ("endedAt" in known && isRetryable(known.state) && round === known.round + 1) return { ended: known };
  return { reply: { kind: "not-retried", task, state: known.state, round: known.round, wanted: round } };
}

function decideRetryTask(
  state: SwarmState,
  command: Extract<Command, { type: "RetryTask" }>,
  at: Instant,
): Decision {
  const found = toRetry(state, command);
  if ("reply" in found) return answered(found.reply);
  const { task, round, spec } = command;
  const refusal = refusalOf(state, spec, at);
  if (refusal !== undefined) return answered(refusal);
  const event: Event = { type: "TaskRetried", task: spec, hash: found.ended.hash, round };
  return { events: [event], reply: { kind: "retried", task, round } };
}

/** A request that is repeated after the task started because of it gets the same answer. */
function decideReschedule(
  state: SwarmState,
  { project, task, round: wanted, notBefore }: Extract<Command, { type: "RescheduleTask" }>,
  at: Instant,
): Decision {
  const ref = { project, task };
  const row = state.taskById.get(ref);
  const known = row ?? state.endedById.get(ref);
  if (known === undefined) return answered({ kind: "unknown-task", task });
  const { round } = known;
  if (round !== wanted) return answered({ kind: "other-round", task, round, wanted });
  if (row === undefined) return answered({ kind: "not-waiting", task, state: known.state });
  const { deadline } = row.spec;
  const done = (after: TaskState): Reply => ({ kind: "rescheduled", task, round, notBefore, state: after });
  if (row.open !== undefined) {
    if (row.spec.notBefore === notBefore) return answered(done(row.state));
    return answered({ kind: "not-waiting", task, state: row.state });
  }
  if (deadline !== undefined && notBefore >= deadline)
    return answered({ kind: "after-deadline", task, notBefore, deadline });
  const dueAt = row.releaseTimer?.dueAt ?? at;
  const isSame = row.spec.notBefore === notBefore && dueAt === Math.max(at, notBefore);
  const event: Event = { type: "TaskRescheduled", project, task, notBefore };
  return { events: isSame ? [] : [event], reply: done(notBefore > at ? "delayed" : "queued") };
}

/** The first due timer, alone: its change decides whether the next timer still means anything. */
function decideDue(state: SwarmState, jitter: number, at: Instant): Decision {
  const timer = state.timers.peek();
  if (timer === undefined || timer.dueAt > at) return NOTHING;
  return { events: eventsOfTimer(state, timer, at, jitter), reply: { kind: "none" } };
}

function eventsOfTimer(state: SwarmState, { due }: Timer, at: Instant, jitter: number): readonly Event[] {
  switch (due.kind) {
    case "release":
      return [{ type: "TaskReleased", ...refOf(due.task.spec) }];
    case "deadline":
      return [{ type: "TaskExpired", ...refOf(due.task.spec) }];
    case "timeout":
      return decideTimeout(state, due.attempt, at, jitter);
    case "acquire-timeout":
      return decideAcquireTimeout(due.slot);
    case "slot-idle":
      return decideIdle(due.slot);
    case "forget":
      return [{ type: "AgentForgotten", agent: due.agent }];
    case "hold":
      return [timeIsOver(due.hold)];
  }
}
