// The fold of the journal: how an event changes the state. Total over the event types, for legal events only. An event
// unfit for the state is a bug, of the fold or of the journal's writer, and stops the process. May mutate the argument
// `state`; pure means that the same journal gives the same state.

import { assert, unreachable } from "../assert.ts";
import type { Instant, ProjectId, TaskRef } from "../ids.ts";
import { limits } from "../limits.ts";
import { budgetRoom } from "../scheduling/gates.ts";
import { beginAffinity, endAffinity } from "../state/affinity-rows.ts";
import {
  agentOf,
  closeAttempt,
  forgetRow,
  joinRow,
  learn,
  leaveRow,
  openAttempt,
  passOver,
  releaseAttempt,
} from "../state/agent-rows.ts";
import { awaitCharge, chargeLate, noteExceeded, reserve, settle, usedTokens } from "../state/budget-rows.ts";
import {
  costCorrection,
  learnEstimate,
  learnTokens,
  type SpentAttempt,
  tokensEstimate,
} from "../state/estimate.ts";
import type { Event, EventOf, FailureClass } from "../state/event.ts";
import { beginProbes, elapseHold, endHold, noteUser, placeHold } from "../state/hold-rows.ts";
import { kindRowOf, noteKind } from "../state/kind-rows.ts";
import { meetsNeeds } from "../state/needs.ts";
import { leaveQueue, takeTurn } from "../state/queues.ts";
import { configureRate, removeRate } from "../state/rate-rows.ts";
import type { TurnBases } from "../state/receipt.ts";
import { countingTargets, countRefusal, forgetRefusals, refusalOfAttempt } from "../state/refusal-rows.ts";
import { isHard } from "../state/settings.ts";
import {
  changePolicy,
  configureKind,
  configureProject,
  configureResource,
  pauseProject,
  removeProject,
  removeResource,
} from "../state/settings-rows.ts";
import {
  awaitSlot,
  endWaits,
  grantSlot,
  releaseSlot,
  restartIdleTimes,
  touchSlot,
  tuneAlpha,
} from "../state/slot-rows.ts";
import { chargeSlots } from "../state/slot-tokens.ts";
import type { OpenAttempt, SwarmState, TaskRow } from "../state/state.ts";
import {
  addFailedBy,
  countFirstStart,
  delay,
  type EventContext,
  end,
  enqueue,
  move,
  rescheduleRow,
  retryRow,
  startTimer,
  stopReleaseTimer,
  submitRow,
} from "../state/task-rows.ts";

/**
 * Effects of each class of failure: on the task's `maxAttempts` (the scheduler then prefers agents without a failed
 * attempt of the task), and on the agent's learned rate.
 */
const failureEffects: Readonly<Record<FailureClass, { readonly attempt: boolean; readonly agent: boolean }>> =
  {
    failed: { attempt: true, agent: true },
    "timed-out": { attempt: true, agent: true },
    stalled: { attempt: true, agent: true },
    lost: { attempt: true, agent: false },
    aborted: { attempt: true, agent: false },
    invalid: { attempt: true, agent: false },
    revoked: { attempt: true, agent: false },
    infrastructure: { attempt: false, agent: false },
    refused: { attempt: false, agent: false },
  };

const byRule: TurnBases = { project: "rule", user: "rule" };

/** Changes `state` by one event. @throws InvariantError if the event is not legal in the state */
export function apply(state: SwarmState, event: Event, context: EventContext): void {
  switch (event.type) {
    case "TermStarted":
      assert(event.term > state.term, `term ${event.term} follows term ${state.term}`);
      assert(event.timeoutMs > 0, `term ${event.term} has a timeout`);
      state.term = event.term;
      state.termStarts = [
        ...state.termStarts.slice(1 - limits.rememberedTerms),
        {
          term: event.term,
          idx: context.idx,
          opened: event.opened.slice(0, limits.openedCharacters),
        },
      ];
      state.leader = event.leader;
      state.leaderTimeoutMs = event.timeoutMs;
      return restartIdleTimes(state, context.at);
    case "TermRenewed":
    case "TasksRefused":
      return;
    case "AuditTrimmed":
      assert(
        event.firstIdx > state.auditFirstIdx ||
          (event.givenUp !== undefined && event.firstIdx === state.auditFirstIdx),
        "the audit's beginning only moves on",
      );
      assert(event.firstIdx <= context.idx, "batches yet to come are not trimmed");
      state.auditFirstIdx = event.firstIdx;
      return;
    case "TaskSubmitted":
      return submitRow(state, event.task, event.hash, context);
    case "TaskRetried":
      return retryRow(state, event, context);
    case "TaskReleased":
      return releaseTask(state, event, context.at);
    case "TaskRescheduled":
      return rescheduleRow(state, liveTask(state, event), event.notBefore, context.at);
    case "TaskAssigned":
      return assign(state, event, context.at);
    case "TaskCompleted":
      return complete(state, event, context);
    case "AttemptFailed":
      return failAttempt(state, event, context);
    case "TaskFailed":
    case "TaskDeadLettered":
      return failTask(state, event, context);
    case "TaskCancelled":
      return revokeAndEnd(state, event, "cancelled", context);
    case "TaskExpired":
      return revokeAndEnd(state, event, "expired", context);
    case "AttemptReleased":
      return release(state, event, context.at);
    case "AgentJoined":
      return joinRow(state, event, context);
    case "AssignmentsConfirmed":
      return confirm(state, event, context.at);
    case "AgentFoundAhead":
      return passOver(agentOf(state, event.agent), event.upTo);
    case "AgentLeft":
      return leaveRow(state, event, context);
    case "AgentDrained":
      agentOf(state, event.agent).draining = true;
      return;
    case "AgentUndrained":
      agentOf(state, event.agent).draining = false;
      return;
    case "AgentUnresponsive":
      agentOf(state, event.agent).unresponsive = true;
      return;
    case "AgentResponsive":
      agentOf(state, event.agent).unresponsive = false;
      return;
    case "AgentSuspended":
      agentOf(state, event.agent).suspensionByKind.set(event.kind, {
        until: event.until,
        step: event.step,
      });
      return;
    case "AgentReinstated":
      agentOf(state, event.agent).suspensionByKind.delete(event.kind);
      return;
    case "AgentForgotten":
      return forgetRow(state, event.agent);
    case "TokensCharged":
      return chargeLate(state, event, context.at);
    case "BudgetExceeded":
      return noteExceeded(state, event, context.at);
    case "PolicyChanged":
      return changePolicy(state, event, context.at);
    case "ProjectConfigured":
      return configureProject(state, event, context.at);
    case "ProjectRemoved":
      return removeProject(state, event, context.at);
    case "KindConfigured":
      return configureKind(state, event);
    case "ResourceConfigured":
      return configureResource(state, event, context.at);
    case "ResourceRemoved":
      return removeResource(state, event);
    case "RateConfigured":
      return configureRate(state, event, context.at);
    case "RateRemoved":
      return removeRate(state, event, context.at);
    case "GrantConfigured":
      state.grants = state.grants.with(event.group, event.grant);
      return;
    case "GrantRemoved":
      state.grants = state.grants.with(event.group, undefined);
      return;
    case "ProjectPaused":
    case "ProjectResumed":
      return pauseProject(state, event);
    case "SlotAwaited":
      return awaitSlot(state, event, context.at);
    case "SlotGranted":
      grantSlot(state, event, context.at);
      if (event.tokens !== undefined)
        assertWithinBudgets(state, event.project, `grant of slot ${event.handle}`, context.at);
      return;
    case "SlotReleased":
      return releaseSlot(state, event, context.at);
    case "SlotTouched":
      return touchSlot(state, event, context.at);
    case "SlotRefused":
      return refuseLate(state, event);
    case "SlotCharged":
      return chargeSlots(state, event, context.at);
    case "SlotWaitEnded":
      return endWaits(state, event);
    case "AlphaTuned":
      return tuneAlpha(state, event);
    case "HoldPlaced":
      return placeHold(state, event, context.at);
    case "HoldElapsed":
      return elapseHold(state, event);
    case "HoldEnded":
      return endHold(state, event, context.at);
    case "SwarmPaused":
    case "SwarmResumed":
      state.isPaused = event.type === "SwarmPaused";
      return;
    default:
      unreachable(event);
  }
}

function releaseTask(state: SwarmState, event: EventOf<"TaskReleased">, at: Instant): void {
  const row = liveTask(state, event);
  assert(row.state === "delayed", `task ${event.task} is released from delayed, not ${row.state}`);
  stopReleaseTimer(state, row);
  enqueue(state, row, at);
}

function assign(state: SwarmState, event: EventOf<"TaskAssigned">, at: Instant): void {
  const row = liveTask(state, event);
  assert(row.state === "queued", `task ${event.task} is assigned from queued, not ${row.state}`);
  assert(event.attempt === row.attempt + 1, `attempts of ${event.task} grow by one`);
  const agent = agentOf(state, event.agent);
  if (event.cheaperType !== undefined)
    assert(agent.agentType === event.cheaperType, `${event.task} goes to the type named as cheaper`);
  assert(
    state.grants.includes(agent.group, row.spec.project),
    `${event.task} goes to an agent whose grant includes project ${row.spec.project}`,
  );
  assert(meetsNeeds(agent.labels, row.spec.needs), `${event.task} goes to an agent with the labels it needs`);
  const attempt: OpenAttempt = {
    task: event.task,
    project: row.spec.project,
    kind: event.runsAs ?? row.spec.kind,
    weight: row.spec.weight,
    tokensReserved: event.tokensReserved ?? tokensEstimate(state, row.spec, event.runsAs),
    tokensSaid: row.spec.tokens,
    agentType: agent.agentType,
    charged: row.cost,
    attempt: event.attempt,
    agent: event.agent,
    incarnation: event.incarnation,
    number: event.number,
    token: event.token,
    assignedAt: at,
    assignedTick: state.tick,
    state: "assigned",
    clears: [],
    hasHeldSlots: undefined,
    timeoutTimer: undefined,
  };
  openAttempt(state, agent, attempt);
  reserve(state, row.projectRow, attempt, at);
  if (event.tokensReserved !== undefined)
    assertWithinBudgets(state, row.spec.project, `assignment of ${row.spec.id}`, at);
  attempt.timeoutTimer = startTimer(state, (at + row.spec.timeoutMs) as Instant, {
    kind: "timeout",
    attempt,
  });
  takeTurn(state, row, event.receipt.turn ?? byRule, at);
  leaveQueue(state, row);
  if (row.attempt === row.attemptsBefore) countFirstStart(row, at);
  row.attempt = event.attempt;
  row.lastAgent = event.agent;
  row.open = attempt;
  beginAffinity(state, row.spec, event.agent, at);
  move(state, row, "assigned");
}

function confirm(state: SwarmState, event: EventOf<"AssignmentsConfirmed">, at: Instant): void {
  const agent = agentOf(state, event.agent);
  assert(
    event.upTo > agent.confirmedNumber && event.upTo <= agent.lastNumber,
    `agent ${agent.id} confirms assignments that were sent`,
  );
  agent.confirmedNumber = event.upTo;
  for (const attempt of agent.open.values()) {
    if (attempt.number > event.upTo) return;
    if (attempt.state !== "assigned") continue;
    attempt.state = "running";
    // A prefetched attempt waits for the end of another: nothing says when it begins.
    if (agent.open.size <= agent.maxConcurrent) beginProbes(state, attempt, at);
    move(state, liveTask(state, attempt), "running");
  }
}

function complete(state: SwarmState, event: EventOf<"TaskCompleted">, context: EventContext): void {
  const { row, attempt } = openAttemptOf(state, event);
  learn(state, attempt, "success", context.at, event.latencyMs);
  closeAttempt(state, attempt, false);
  takeReport(state, attempt, "completed", event.tokens, context.at);
  carry(row, { charged: attempt.charged, isReturned: false, tokens: event.tokens });
  agentOf(state, event.agent).completed += 1;
  forgetRefusals(state, attempt);
  endAffinity(state, row.spec, event.agent, context.at);
  row.open = undefined;
  end(state, row, "completed", context);
}

function failAttempt(state: SwarmState, event: EventOf<"AttemptFailed">, context: EventContext): void {
  const row = closeFailed(state, event, context.at);
  if (event.retryAt !== undefined && event.retryAt > context.at) delay(state, row, event.retryAt);
  else enqueue(state, row, context.at);
}

function failTask(
  state: SwarmState,
  event: EventOf<"TaskFailed" | "TaskDeadLettered">,
  context: EventContext,
): void {
  const row = closeFailed(state, event, context.at);
  end(state, row, event.type === "TaskFailed" ? "failed" : "dead-lettered", context);
}

function closeFailed(
  state: SwarmState,
  event: EventOf<"AttemptFailed" | "TaskFailed" | "TaskDeadLettered">,
  at: Instant,
): TaskRow {
  const { row, attempt } = openAttemptOf(state, event);
  const effects = failureEffects[event.failure.class];
  if (effects.agent) learn(state, attempt, "failure", at);
  const { class: verdict } = event.failure;
  if (effects.attempt) row.failures += 1;
  else if (verdict === "refused") row.refusals += 1;
  else row.infrastructureFailures += 1;
  if (verdict === "infrastructure" && "refusal" in event && event.refusal !== undefined)
    for (const target of countingTargets(state, attempt, event.refusal.on))
      countRefusal(state, target, refusalOfAttempt(attempt));
  if (verdict === "refused" && "refusal" in event && typeof event.refusal?.on === "object")
    noteUser(state, event.refusal.on.resource, attempt);
  const isReturned = !effects.attempt || verdict === "lost" || verdict === "aborted" || verdict === "revoked";
  carry(row, { charged: attempt.charged, isReturned, tokens: event.tokens });
  if (effects.attempt) addFailedBy(row, event.agent);
  const isRevoked = event.type !== "TaskFailed" && event.revoked === true;
  closeAttempt(state, attempt, isRevoked);
  if (!isRevoked) takeReport(state, attempt, verdict, event.tokens, at);
  endAffinity(state, row.spec, event.agent, at);
  row.open = undefined;
  return row;
}

function refuseLate(state: SwarmState, { agent, handle, resource }: EventOf<"SlotRefused">): void {
  assert(state.resourceByName.has(resource), `resource ${resource} is known`);
  countRefusal(state, { on: "resource", name: resource }, { agent, handle });
}

function release(state: SwarmState, event: EventOf<"AttemptReleased">, at: Instant): void {
  const verdict = event.reason === "agent-gone" ? "lost" : "revoked";
  takeReport(state, releaseAttempt(state, event), verdict, event.tokens, at);
}

/** Settles an attempt's reservation, and learns from the report. */
function takeReport(
  state: SwarmState,
  attempt: OpenAttempt,
  verdict: FailureClass | "completed" | "revoked",
  tokens: number | undefined,
  at: Instant,
): void {
  settle(state, attempt, usedTokens(attempt, verdict, tokens), at);
  if (verdict === "lost") awaitCharge(state, attempt, at);
  if (tokens === undefined) return;
  const isWhole = verdict === "completed" || verdict === "failed";
  const kindRow = kindRowOf(state, attempt.kind);
  if (isWhole) learnTokens(kindRow, tokens);
  const { tokensSaid } = attempt;
  // An attempt with an early end teaches nothing about the whole, unless its use already exceeds the estimate.
  if (tokensSaid !== undefined && (isWhole || tokens > tokensSaid))
    learnEstimate(kindRow, tokensSaid, tokens);
  noteKind(state, kindRow);
}

/** Promise P7: the planners have checked the gates of hard budgets. */
function assertWithinBudgets(
  state: SwarmState,
  project: ProjectId | undefined,
  what: string,
  at: Instant,
): void {
  const row = project === undefined ? undefined : state.projectById.get(project);
  const own = row?.settings?.budget;
  const global = state.policy.budget;
  assert(
    row === undefined || !isHard(own) || budgetRoom(row.ledger, own, at) >= 0,
    `the ${what} fits the budget of ${project}`,
  );
  assert(!isHard(global) || budgetRoom(state.ledger, global, at) >= 0, `the ${what} fits the swarm's budget`);
}

/** Adds the correction of an attempt's charge to the next grant's. */
function carry({ spec, projectRow, userRow }: TaskRow, spent: SpentAttempt): void {
  const difference = costCorrection(spec, spent);
  projectRow.account.carried += difference;
  userRow.account.carried += difference;
}

function revokeAndEnd(
  state: SwarmState,
  event: EventOf<"TaskCancelled" | "TaskExpired">,
  to: "cancelled" | "expired",
  context: EventContext,
): void {
  const row = liveTask(state, event);
  if (row.open !== undefined) closeAttempt(state, row.open, true);
  row.open = undefined;
  end(state, row, to, context);
}

function liveTask(state: SwarmState, of: TaskRef): TaskRow {
  const row = state.taskById.get(of);
  assert(row !== undefined, `task ${of.task} is live`);
  return row;
}

function openAttemptOf(
  state: SwarmState,
  event: EventOf<"TaskCompleted" | "AttemptFailed" | "TaskFailed" | "TaskDeadLettered">,
): { readonly row: TaskRow; readonly attempt: OpenAttempt } {
  const row = liveTask(state, event);
  const attempt = row.open;
  assert(attempt !== undefined, `task ${event.task} has an open attempt`);
  assert(
    attempt.attempt === event.attempt && attempt.agent === event.agent,
    `attempt ${event.task}#${event.attempt} is the open one`,
  );
  return { row, attempt };
}
