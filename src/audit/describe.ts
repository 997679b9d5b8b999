// One line for people about each type of event, for `waggle events` and `waggle task`. Not here: columns, colours,
// times (src/cli). Texts of agents and users are made safe for a terminal.

import { counted } from "../count-text.ts";
import { DEFAULT_PROJECT, type TaskRef, taskKey } from "../ids.ts";
import { limits } from "../limits.ts";
import type { BareEvent, BareTaskSpec, EventOf, GivenUpBatches, ResultDigest } from "../state/event.ts";
import type { Grant } from "../state/grant.ts";
import type { HoldBasis, HoldTarget } from "../state/hold.ts";
import { needsText, valuesText } from "../state/needs.ts";
import type { CandidateTerms, ExceededBudgets, Receipt, SlotReceipt, TurnBases } from "../state/receipt.ts";
import { refOf } from "../state/task-rows.ts";

/** The event as one line without a line end. An event of a newer version is shown by its type only. */
export function describe(event: BareEvent): string {
  return safe(sentence(event));
}

function sentence(event: BareEvent): string {
  switch (event.type) {
    case "TermStarted":
      return `term ${event.term} began, led by ${event.leader}`;
    case "TermRenewed":
      return "the leader renewed its term";
    case "TaskSubmitted":
      return `${shortName(refOf(event.task))} submitted by ${event.task.project}/${event.task.user}: ${describeSpec(event.task)}`;
    case "TaskRetried":
      return `${shortName(refOf(event.task))} retried, round ${event.round}: ${describeSpec(event.task)}`;
    case "TaskReleased":
      return `${shortName(event)} is due and waits for an agent`;
    case "TaskRescheduled":
      return `${shortName(event)} rescheduled: not before ${new Date(event.notBefore).toISOString()}`;
    case "TaskAssigned":
      return `${attemptOf(event)}${cheaperOf(event)} → ${event.agent} · ${describeReceipt(event.receipt)}`;
    case "TaskCompleted":
      return `${attemptOf(event)} completed by ${event.agent} in ${duration(event.latencyMs)}${tokens(event.tokens)}${digest(event.resultDigest)}`;
    case "AttemptFailed":
      return `${attemptOf(event)} ${failure(event)}${tokens(event.tokens)}; ${nextTry(event)}`;
    case "TaskFailed":
      return `${attemptOf(event)} ${failure(event)}${tokens(event.tokens)}; the task failed`;
    case "TaskDeadLettered":
      return `${attemptOf(event)} ${failure(event)}${tokens(event.tokens)}; dead-lettered: ${event.reason.replace("-", " ")}`;
    case "TaskCancelled":
      return `${shortName(event)} cancelled: ${event.reason}`;
    case "TaskExpired":
      return `${shortName(event)} expired: its deadline passed`;
    case "AttemptReleased":
      return `${attemptOf(event)} released its capacity at ${event.agent}: ${event.reason.replace("-", " ")}${tokens(event.tokens)}`;
    case "TokensCharged":
      return `${attemptOf(event)} was lost but reported: ${event.tokens} tokens charged to ${event.project}`;
    case "BudgetExceeded":
      return `the budget of ${event.project ?? "the swarm"} is exceeded: ${event.spent} tokens spent, ${event.reserved} reserved, of ${event.budget.tokens} in ${duration(event.budget.windowMs)}`;
    case "AgentJoined":
      return `${event.agent} joined: ${describeAgent(event)}`;
    case "AssignmentsConfirmed":
      return `${event.agent} has received its assignments up to number ${event.upTo}`;
    case "AgentFoundAhead":
      return `${event.agent} received assignments up to number ${event.upTo} beyond the journal: the journal lost records at its end`;
    case "AgentLeft":
      return `${event.agent} ${departures[event.reason]}`;
    case "AgentDrained":
      return `${event.agent} drains: no new tasks`;
    case "AgentUndrained":
      return `${event.agent} receives tasks again`;
    case "AgentUnresponsive":
      return `${event.agent} is silent, or its assignments do not arrive: no new tasks`;
    case "AgentResponsive":
      return `${event.agent} has caught up with its assignments`;
    case "AgentSuspended":
      return `${event.agent} fails ${event.kind} too often: probed again from ${new Date(event.until).toISOString()}`;
    case "AgentReinstated":
      return `${event.agent} receives ${event.kind} again`;
    case "AgentForgotten":
      return `${event.agent} left a while ago and is removed`;
    case "HoldPlaced":
      return `${targetText(event)} on hold until ${new Date(event.until).toISOString()}: ${holdReason(event)}`;
    case "HoldElapsed":
      return `the hold on ${targetText(event)} is over: the next ${event.on === "resource" ? "grant" : "task"} is the probe`;
    case "HoldEnded":
      return `${targetText(event)} no longer on hold: ${holdEnds[event.reason]}`;
    case "PolicyChanged":
      return `policy set: ${pairs(event.policy)}`;
    case "ProjectConfigured":
      return `project ${event.project} set: ${pairs(event.settings)}`;
    case "ProjectRemoved":
      return `project ${event.project} removed`;
    case "KindConfigured":
      return `kind ${event.kind} set: ${pairs(event.settings)}`;
    case "ResourceConfigured":
      return `resource ${event.resource} set: ${pairs(event.settings)}`;
    case "ResourceRemoved":
      return `resource ${event.resource} removed`;
    case "RateConfigured":
      return `rate of agents of type ${event.agentType} set: ${pairs(event.settings)}`;
    case "RateRemoved":
      return `agents of type ${event.agentType} are no longer limited ${event.window}`;
    case "GrantConfigured":
      return `grant of group ${event.group} set: ${grantText(event.grant)}`;
    case "GrantRemoved":
      return `grant of group ${event.group} removed`;
    case "ProjectPaused":
      return `project ${event.project} paused: none of its tasks is assigned`;
    case "ProjectResumed":
      return `project ${event.project} resumed`;
    case "SlotAwaited":
      return `${slotQueueText(event)} waits for ${slotsOf(event)}${event.deadline === undefined ? "" : `, until ${new Date(event.deadline).toISOString()}`}`;
    case "SlotGranted":
      return `${slotsOf(event)} → ${slotQueueText(event)} · ${describeGrant(event.receipt)}`;
    case "SlotReleased":
      return `${slotsOf(event)} ${slotReleases[event.reason]} ${event.agent}${event.refusal === undefined ? "" : ", whose work was refused"}`;
    case "SlotTouched":
      return `${event.agent} uses slot ${event.handle}: its idle time starts anew`;
    case "SlotRefused":
      return `${event.agent} reported that the work under ended slot ${event.handle} of ${event.resource} was refused`;
    case "SlotCharged":
      return `${counted(event.tokens, "token")} charged late for slot ${event.handle} of ${event.agent}`;
    case "SlotWaitEnded":
      return `${event.agent} no longer waits for slots (${event.handles.join(", ")}): ${slotWaitEnds[event.reason]}`;
    case "AlphaTuned":
      return `α of ${event.resource} moved from ${event.from} to ${event.to} at tick ${event.tick}: ${event.reason.replace("-", " ")} (${event.measured.toFixed(2)})`;
    case "SwarmPaused":
      return "the swarm is paused: no task is assigned";
    case "SwarmResumed":
      return "the swarm is resumed";
    case "TasksRefused":
      return `${event.count} ${event.count === 1 ? "task" : "tasks"} of ${event.project} refused: ${event.reason.replaceAll("-", " ")}`;
    case "AuditTrimmed":
      return event.givenUp === undefined
        ? `the journal now begins at batch ${event.firstIdx}: ${trimReasons[event.reason]}`
        : `the journal was recovered: ${givenUpText(event.givenUp)} lost, and it begins at batch ${event.firstIdx}`;
    default:
      return unknownEvent(event);
  }
}

/** A newer version may have written the journal. The compiler proves that every event of this version has a case. */
function unknownEvent(event: never): string {
  return `${(event as { readonly type: string }).type} (of a newer version)`;
}

const departures = {
  left: "left",
  lapsed: "was silent too long and counts as lost",
  fenced: "was replaced by a later start of the same id",
  forbidden: "lost its session: the group's grant no longer permits the agent",
} as const;

/** ` as skim, by type haiku only`. */
function cheaperOf({ runsAs, cheaperType }: EventOf<"TaskAssigned">): string {
  const kind = runsAs === undefined ? "" : ` as ${runsAs}`;
  const by = kind === "" ? " by" : ", by";
  return cheaperType === undefined ? kind : `${kind}${by} type ${cheaperType} only`;
}

/** Why this agent got the task: `score 0.45, a2 0.40; 3 eligible agents; waited 12 ms`. */
export function describeReceipt(receipt: Receipt): string {
  const [winner, ...others] = receipt.candidates;
  const scores =
    winner === undefined
      ? []
      : [`score ${scoreOf(winner)}`, ...others.map((other) => `${other.agent} ${scoreOf(other)}`)];
  return [
    ...(receipt.turn === undefined ? [] : [turnOf(receipt.turn)]),
    [...scores, decisions[receipt.decidedBy]].filter((part) => part !== "").join(", "),
    eligibleText(receipt),
    `waited ${duration(receipt.waitedMs)}`,
    ...(receipt.budget === undefined ? [] : [budgetsOf(receipt.budget)]),
  ].join("; ");
}

/** `only eligible agent (1 of 7; 6 offline)`, `3 eligible agents (of 5; 2 full)`. */
function eligibleText({ feasible, ineligible }: Receipt): string {
  const eligible = feasible === 1 ? "only eligible agent" : `${feasible} eligible agents`;
  const counts = Object.entries(ineligible);
  if (counts.length === 0) return eligible;
  const total = counts.reduce((sum, [, count]) => sum + count, feasible);
  const reasons = counts.map(([reason, count]) => `${count} ${reason}`).join(", ");
  return `${eligible} (${feasible === 1 ? "1 " : ""}of ${total}; ${reasons})`;
}

/** `over the project's budget (downgrade) and the swarm's (alert)`. */
function budgetsOf({ project, global }: ExceededBudgets): string {
  const parts = [
    project !== undefined && `the project's budget (${project})`,
    global !== undefined && `the swarm's budget (${global})`,
  ];
  return `over ${parts.filter((part) => part !== false).join(" and ")}`;
}

const decisions = {
  only: "",
  affinity: "affinity",
  score: "",
  "in-flight": "fewer in flight",
  "longest-idle": "longest idle",
  joined: "first to join",
  id: "first by id",
  probe: "as a probe",
} as const;

/** `project by guarantee`, `user by starvation limit`; by the rule goes without saying. */
function turnOf({ project, user }: TurnBases): string {
  const parts = [project !== "rule" && `project by ${project}`, user !== "rule" && `user by ${user}`];
  return parts.filter((part) => part !== false).join(", ");
}

function scoreOf({ score }: CandidateTerms): string {
  return score.toFixed(2);
}

export function givenUpText({ from, to }: GivenUpBatches): string {
  if (to === undefined) return `batches from ${from} on of earlier terms are`;
  return from === to
    ? `batch ${from} of an earlier term is`
    : `batches ${from} to ${to} of earlier terms are`;
}

const trimReasons = {
  retention: "the retention time has passed",
  "storage-short": "the retention size was reached",
  gap: "the journal lost records",
  "tail-lost": "the journal lost records at its end",
  lost: "the journal lost the records before",
} as const;

/** `all claude agents`, `agent a1`, `resource gpt-4o`. */
export function targetText({ on, name }: HoldTarget): string {
  return on === "type" ? `all ${name} agents` : `${on} ${name}`;
}

/** `kinds review,translate maxConcurrent 4`; `unbounded` without any field. */
export function grantText(grant: Grant): string {
  const parts = Object.entries(grant).map(
    ([field, value]) => `${field} ${Array.isArray(value) ? value.join(",") || "none" : String(value)}`,
  );
  return parts.length === 0 ? "unbounded" : parts.join(" ");
}

/** Why a hold is in force, for one line of text. */
export function whyOnHold({
  by,
  reason,
}: {
  readonly by?: HoldBasis | undefined;
  readonly reason?: string | undefined;
}): string {
  if (by === "operator") return "set by an operator";
  const said = reason?.replaceAll(/\s+/g, " ");
  if (by !== "refusals") return said ?? "work was refused";
  return `refusals in a row without a time${said === undefined ? "" : `, the last: ${said}`}`;
}

function holdReason({ by, reason, reportedBy }: EventOf<"HoldPlaced">): string {
  if (by === "operator") return "set by an operator";
  const said = reason === undefined ? "" : `: ${reason}`;
  return by === "agent"
    ? `${reportedBy ?? "an agent"} was refused${said}`
    : `refusals in a row, the last at ${reportedBy ?? "an agent"}${said}`;
}

/** The end of a hold whose time is over. */
export const untilProbed = `until its probe ends, or has run for ${limits.probeTrustedMs / 1_000} s, without a refusal`;

const holdEnds = {
  probed: "the probe was not refused",
  trusted: `the probe has run for ${limits.probeTrustedMs / 1_000} s without being refused`,
  operator: "an operator ended the hold",
  displaced: "a new hold needed its room",
} as const;

const slotWaitEnds = {
  aborted: "aborted",
  "timed-out": "timed out",
  lost: "lost",
  "agent-gone": "agent gone",
  "above-capacity": "above the resource's slots",
  "on-hold": "on hold for longer than the request may wait",
} as const;

const slotReleases = {
  released: "released by",
  lost: "no longer held by",
  "agent-gone": "taken back from",
  idle: "taken back for idleness from",
} as const;

/** `slot of gpt-4o (x1, weight 2.5)`: the names in brackets are the handle's. */
function slotsOf(event: {
  readonly resources: readonly string[];
  readonly handle: string;
  readonly weightThousandths?: number;
  readonly label?: string;
  readonly project?: string;
  readonly user?: string;
  readonly tokens?: number;
}): string {
  const weight = event.weightThousandths ?? 1_000;
  const named = [
    event.handle,
    ...(weight === 1_000 ? [] : [`weight ${weight / 1_000}`]),
    ...(event.label === undefined ? [] : [`"${event.label}"`]),
    ...(event.project === undefined ? [] : [`for ${forWhom(event.project, event.user)}`]),
    ...(event.tokens === undefined ? [] : [counted(event.tokens, "token")]),
  ].join(", ");
  return `${event.resources.length === 1 ? "slot" : "slots"} of ${event.resources.join(" + ")} (${named})`;
}

function forWhom(project: string, user: string | undefined): string {
  return user === undefined ? project : `${project}/${user}`;
}

/** An agent's queue for slots: `desk`, or `desk/analyst`. */
export function slotQueueText({
  agent,
  as,
}: {
  readonly agent: string;
  readonly as?: string | undefined;
}): string {
  return as === undefined ? agent : `${agent}/${as}`;
}

/** Why this request got the slots, and why now: `L 0.90, a2 0.40; α 0.25; 2 requests; waited 12 ms`. */
function describeGrant({ by, load, alpha, runnerUp, waiting, waitedMs }: SlotReceipt): string {
  if (by === "free") return "free at once";
  const next = runnerUp === undefined ? "" : `, ${slotQueueText(runnerUp)} ${runnerUp.load.toFixed(2)}`;
  const why =
    by === "starvation-limit"
      ? "past the starvation limit"
      : `L ${(load ?? 0).toFixed(2)}${next}; α ${alpha ?? "unknown"}`;
  return `${why}; ${waiting === 1 ? "only request" : `${waiting} requests`}; waited ${duration(waitedMs)}`;
}

function describeSpec(task: BareTaskSpec): string {
  const parts: readonly (string | false)[] = [
    task.kind,
    task.role !== undefined && `role ${task.role}`,
    task.needs !== undefined && `needs ${needsText(task.needs)}`,
    task.affinity !== undefined && `affinity ${task.affinity}`,
    task.weight !== 1 && `weight ${task.weight}`,
    task.priority !== 100 && `priority ${task.priority}`,
    task.notBefore !== undefined && `not before ${new Date(task.notBefore).toISOString()}`,
    task.deadline !== undefined && `by ${new Date(task.deadline).toISOString()}`,
    task.attributes !== undefined && `attributes ${valuesText(task.attributes)}`,
    task.traceparent !== undefined && `trace ${task.traceparent.split("-")[1]}`,
  ];
  return parts.filter((part) => part !== false).join(", ");
}

function describeAgent(agent: EventOf<"AgentJoined">): string {
  const parts: readonly (string | false)[] = [
    agent.kinds.length === 0 ? "no kinds" : agent.kinds.join(", "),
    agent.role !== undefined && `role ${agent.role}`,
    agent.agentType !== undefined && `type ${agent.agentType}`,
    agent.labels !== undefined && `labels ${valuesText(agent.labels)}`,
    agent.group !== undefined && `group ${agent.group}`,
    `max concurrent ${agent.maxConcurrent}`,
    agent.prefetch !== undefined && agent.prefetch > 0 && `prefetch ${agent.prefetch}`,
  ];
  return parts.filter((part) => part !== false).join("; ");
}

function attemptOf(event: TaskRef & { readonly attempt: number }): string {
  return `${shortName(event)}#${event.attempt}`;
}

/** `acme/t1`; of the default project the id alone. */
function shortName(ref: TaskRef): string {
  return ref.project === DEFAULT_PROJECT ? ref.task : taskKey(ref);
}

const verdicts = {
  failed: "failed",
  infrastructure: "failed on infrastructure",
  refused: "was refused",
  aborted: "was aborted",
  invalid: "found the input invalid",
  lost: "was lost",
  "timed-out": "took too long",
  stalled: "showed no progress for too long",
  revoked: "was revoked",
} as const;

function failure({
  agent,
  failure: { class: verdict, error },
}: EventOf<"AttemptFailed" | "TaskFailed" | "TaskDeadLettered">): string {
  return `${verdicts[verdict]} at ${agent}${error === "" ? "" : `: ${error}`}`;
}

function nextTry({ retryAt }: EventOf<"AttemptFailed">): string {
  return retryAt === undefined
    ? "waits for an agent again"
    : `tried again from ${new Date(retryAt).toISOString()}`;
}

/** `rules waggle, lambda 0.25, budget tokens 100 windowMs 60000 mode wait`. */
function pairs(settings: object): string {
  return Object.entries(settings)
    .map(([name, value]) =>
      typeof value === "object" && value !== null
        ? `${name} ${pairs(value).replaceAll(",", "")}`
        : `${name} ${String(value)}`,
    )
    .join(", ");
}

function tokens(used: number | undefined): string {
  return used === undefined ? "" : `, ${used} tokens`;
}

function digest(of: ResultDigest | undefined): string {
  return of === undefined
    ? ""
    : `; result kept as hash: ${of.bytes} bytes, sha256 ${of.sha256.slice(0, 12)}…`;
}

/** `12 ms`, `3.4 s`, `5 min`, `2.5 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.round(ms / 100) / 10} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 6_000) / 10} min`;
  return `${Math.round(ms / 360_000) / 10} h`;
}

/** Control characters, line ends and the like could move a terminal's cursor or split the line. */
function safe(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}
