// The health of a swarm: one verdict on flow, execution and liveness, computed by rules from an answer of `status`.
// Each finding gives its figures and the one command to run next. Not here: a question without an answer
// (client/health.ts).

import { counted } from "../count-text.ts";
import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { labelFlags, meetsNeeds, needsWords } from "../state/needs.ts";
import { duration, targetText, untilProbed, whyOnHold } from "./describe.ts";
import { presentHolds } from "./present-holds.ts";

/** `flow`: do tasks move? `execution`: do attempts succeed? `liveness`: are coordinators, agents and journal in
 *  order? */
export type HealthArea = "flow" | "execution" | "liveness";

/** From good to bad. `note`: worth knowing, nothing is wrong. */
export type HealthLevel = "ok" | "note" | "attention" | "critical";

export interface HealthFinding {
  readonly area: HealthArea;
  /** Name of the rule, for programs: `nobody-capable`. */
  readonly rule: HealthRule;
  readonly level: Exclude<HealthLevel, "ok">;
  /** A sentence for people, without its end. */
  readonly text: string;
  readonly evidence: Readonly<Record<string, number | string | readonly string[]>>;
  /** The command to run next. */
  readonly next: string;
}

export type HealthRule =
  | "no-leader"
  | "unreachable"
  | "paused"
  | "nobody-capable"
  | "nobody-free"
  | "overloaded"
  | "held-back"
  | "budget-used-up"
  | "rate-limit"
  | "failing-kind"
  | "suspended"
  | "on-hold"
  | "agents-silent"
  | "two-processes"
  | "no-standby"
  | "journal-nearly-full"
  | "journal-not-compacted"
  | "journal-changed"
  | "journal-slow"
  | "foreign-records";

export interface Health {
  /** The worst level of all findings. */
  readonly level: HealthLevel;
  /** One sentence: the worst finding, or the swarm's work. */
  readonly verdict: string;
  /** The command of the worst finding, or the first step in a new swarm; undefined for a healthy swarm at work. */
  readonly next: string | undefined;
  /** `unknown` if no coordinator answered, so that no rule could judge the area. */
  readonly areas: Readonly<Record<HealthArea, HealthLevel | "unknown">>;
  /** The worst first. */
  readonly findings: readonly HealthFinding[];
}

export const healthAreas = ["flow", "execution", "liveness"] as const;
const levels = ["ok", "note", "attention", "critical"] as const;

export function healthOf(status: StatusResponse): Health {
  return summed([...flow(status), ...execution(status), ...liveness(status)], workOf(status));
}

/** The health of a swarm without an answer. @param finding the reason */
export function healthWithoutAnswer(finding: HealthFinding): Health {
  const health = summed([finding], { text: "", next: undefined });
  return { ...health, areas: { ...health.areas, flow: "unknown", execution: "unknown" } };
}

interface Work {
  readonly text: string;
  readonly next: string | undefined;
}

/** @param work the verdict of a swarm without findings that need attention */
function summed(found: readonly HealthFinding[], work: Work): Health {
  const findings = [...found].sort((one, other) => levels.indexOf(other.level) - levels.indexOf(one.level));
  const [worst] = findings;
  const levelOf = (area: HealthArea) => findings.find((finding) => finding.area === area)?.level ?? "ok";
  const isHealthy = worst === undefined || worst.level === "note";
  return {
    level: worst?.level ?? "ok",
    verdict: isHealthy ? work.text : worst.text,
    next: isHealthy ? work.next : worst.next,
    areas: { flow: levelOf("flow"), execution: levelOf("execution"), liveness: levelOf("liveness") },
    findings,
  };
}

function workOf(status: StatusResponse): Work {
  return firstStep(status) ?? { text: workText(status), next: undefined };
}

/** The first step to suggest for a swarm that has never had a task; undefined for any other swarm. */
function firstStep({ tasks, agents, metrics }: StatusResponse): Work | undefined {
  if (Object.values(tasks).some((count) => count > 0)) return undefined;
  const online = agents.filter(({ status }) => status !== "offline");
  const [kind] = online.flatMap(({ kinds }) => kinds.map((each) => each.kind));
  if (kind !== undefined) {
    return {
      text: `${counted(online.length, "agent")} joined, and no task was submitted yet`,
      next: `waggle submit --kind ${kind} --text 'hello' --wait`,
    };
  }
  if (agents.length > 0 || (metrics?.totalAgents ?? 0) > 0) return undefined;
  return {
    text: "the swarm is new: no agent has joined, and no task was submitted yet",
    next: "waggle agent --kind count --exec 'wc -w'",
  };
}

function workText({ tasks, queues }: StatusResponse): string {
  const running = (tasks["assigned"] ?? 0) + (tasks["running"] ?? 0);
  const waiting = tasks["queued"] ?? 0;
  if (running === 0 && waiting === 0) return "no task waits or runs";
  const oldestMs = Math.max(0, ...queues.map((queue) => queue.oldestMs));
  const oldest = waiting === 0 ? "" : `, the oldest for ${duration(oldestMs)}`;
  return `${counted(running, "task")} ${running === 1 ? "runs" : "run"}, ${waiting} ${waiting === 1 ? "waits" : "wait"}${oldest}`;
}

// --- flow -------------------------------------------------------------------------------------------

function flow(status: StatusResponse): readonly HealthFinding[] {
  return [...pauses(status), ...queues(status), ...budgets(status), ...rates(status)];
}

function pauses({ paused, tasks, projects }: StatusResponse): readonly HealthFinding[] {
  const waiting = tasks["queued"] ?? 0;
  if (paused === true)
    return [
      {
        ...{ area: "flow", rule: "paused", level: waiting > 0 ? "critical" : "attention" },
        text: `the swarm is paused, and ${waitText(waiting)}`,
        evidence: { waiting },
        next: "waggle resume",
      },
    ];
  return projects
    .filter((row) => row.paused === true && (row.tasks["queued"] ?? 0) > 0)
    .map(({ project, tasks: { queued = 0 } }) => ({
      ...{ area: "flow", rule: "paused", level: "attention" },
      text: `the project ${project} is paused, and ${waitText(queued)}`,
      evidence: { project, waiting: queued },
      next: `waggle resume ${project}`,
    }));
}

function queues({ queues: all, agents, paused }: StatusResponse): readonly HealthFinding[] {
  if (paused === true) return [];
  const findings: HealthFinding[] = [];
  for (const { kind, role, needs, waiting, oldestMs, agents: online } of all) {
    if (waiting === 0) continue;
    const ofRole = role === undefined ? kind : `${kind} (role ${role})`;
    const name = needs === undefined ? ofRole : `${ofRole} with ${needsWords(needs)}`;
    const wait = `${counted(waiting, "task")} of kind ${name} ${waiting === 1 ? "waits" : "wait"}`;
    const evidence = { kind, waiting, oldestMs, agents: online };
    if (online === 0) {
      findings.push({
        ...{ area: "flow", rule: "nobody-capable", level: "critical", evidence },
        text:
          needs === undefined
            ? `${wait}, and no agent online serves it`
            : `${wait}, and no agent online that serves it has these labels`,
        next: `waggle agent --kind ${kind}${needs === undefined ? "" : ` ${labelFlags(needs)}`} --exec COMMAND`,
      });
      continue;
    }
    if (oldestMs < limits.healthWaitMs) continue;
    const serving = agents.filter(
      (agent) => agent.status !== "offline" && servesKind(agent, kind) && meetsNeeds(agent.labels, needs),
    );
    const able = serving.filter(
      (agent) =>
        !agent.draining && !agent.unresponsive && !isSuspended(agent, kind) && agent.onHold === undefined,
    );
    if (serving.length > 0 && able.length === 0)
      findings.push({
        ...{ area: "flow", rule: "nobody-free", level: "critical", evidence },
        text: `${wait}, and its agents drain, are silent, suspended or on hold`,
        next: "waggle status",
      });
    else if (able.every((agent) => agent.saturated))
      findings.push({
        ...{ area: "flow", rule: "overloaded", level: "attention", evidence },
        text: `${wait} for up to ${duration(oldestMs)}, and every agent for it is full`,
        next: `waggle agent --kind ${kind}${needs === undefined ? "" : ` ${labelFlags(needs)}`} --exec COMMAND`,
      });
    else if (oldestMs >= limits.healthHeldBackMs)
      findings.push({
        ...{ area: "flow", rule: "held-back", level: "attention", evidence },
        text: `${wait} for up to ${duration(oldestMs)} beside free agents: a budget, rate, limit or pause holds tasks back`,
        next: `waggle tasks --state queued --kind ${kind} --sort oldest`,
      });
  }
  return findings;
}

export function servesKind({ kinds }: StatusResponse["agents"][number], kind: string): boolean {
  return kinds.some((each) => each.kind === kind);
}

export function isSuspended({ kinds }: StatusResponse["agents"][number], kind: string): boolean {
  return kinds.some((each) => each.kind === kind && each.suspendedUntil !== undefined);
}

function budgets({ budget: ofSwarm, projects, tasks }: StatusResponse): readonly HealthFinding[] {
  const rows = projects.map(({ project, budget, tasks: counts }) => ({
    name: `the project ${project}`,
    command: `waggle project show ${project}`,
    ...{ project, budget, waiting: counts["queued"] ?? 0 },
  }));
  const swarm = {
    name: "the swarm",
    command: "waggle policy show",
    ...{ project: "", budget: ofSwarm, waiting: tasks["queued"] ?? 0 },
  };
  return [swarm, ...rows].flatMap(({ name, command, project, budget, waiting }) => {
    if (budget === undefined || !isUsedUp(budget)) return [];
    const holdsTasks = mayHoldTasks(budget) && waiting > 0;
    return [
      {
        ...({ area: "flow", rule: "budget-used-up", level: holdsTasks ? "attention" : "note" } as const),
        text: `the budget of ${name} is used up${holdsTasks ? `, and ${counted(waiting, "task")} may wait for it` : ""}`,
        evidence: {
          ...{ project, waiting, spent: budget.spent, reserved: budget.reserved },
          ...{ tokens: budget.tokens, windowMs: budget.windowMs },
        },
        next: command,
      },
    ];
  });
}

type Budget = NonNullable<StatusResponse["budget"]>;

export function isUsedUp({ spent, reserved, tokens }: Budget): boolean {
  return spent + reserved >= tokens;
}

/** Whether tasks wait for a used up budget. */
export function mayHoldTasks({ mode }: Budget): boolean {
  return mode === "wait" || mode === "reject";
}

function rates({ rates: all = [], at, tasks }: StatusResponse): readonly HealthFinding[] {
  const waiting = tasks["queued"] ?? 0;
  return all.flatMap(({ type, window, tokensMax, used, opensAt }) =>
    opensAt === undefined || opensAt <= at || waiting === 0
      ? []
      : [
          {
            ...({ area: "flow", rule: "rate-limit", level: "attention" } as const),
            text: `agents of type ${type} used up their rate ${window.replace("_", " ")}, and get tasks again in ${duration(opensAt - at)}`,
            evidence: { type, window, used, tokensMax, opensInMs: opensAt - at },
            next: `waggle rate show ${type}`,
          },
        ],
  );
}

// --- execution --------------------------------------------------------------------------------------

function execution(status: StatusResponse): readonly HealthFinding[] {
  const { agents, at } = status;
  return [...failingKinds(agents), ...suspended(agents), ...onHold(presentHolds(status), at)];
}

function failingKinds(agents: StatusResponse["agents"]): readonly HealthFinding[] {
  const byKind = new Map<string, { attempts: number; completed: number; weighted: number; agents: number }>();
  for (const { kinds, status } of agents) {
    if (status === "offline") continue;
    for (const { kind, attempts, completed, successRate } of kinds) {
      const sum = byKind.get(kind) ?? { attempts: 0, completed: 0, weighted: 0, agents: 0 };
      sum.attempts += attempts;
      sum.completed += completed;
      sum.weighted += attempts * successRate;
      sum.agents += 1;
      byKind.set(kind, sum);
    }
  }
  const findings: HealthFinding[] = [];
  for (const [kind, { attempts, completed, weighted, agents: serving }] of byKind) {
    const successRate = attempts === 0 ? 1 : weighted / attempts;
    if (attempts < limits.suspendAttemptsMin || successRate >= limits.healthSuccessRateMin) continue;
    findings.push({
      ...{ area: "execution", rule: "failing-kind", level: "critical" },
      text: `attempts of kind ${kind} fail: ${Math.round(100 * (1 - successRate))} % of the recent ones`,
      evidence: { kind, attempts, completed, successRate, agents: serving },
      next: `waggle tasks --kind ${kind} --state dead-lettered`,
    });
  }
  return findings;
}

function suspended(agents: StatusResponse["agents"]): readonly HealthFinding[] {
  return agents.flatMap(({ id, kinds }) => {
    const names = kinds.filter(({ suspendedUntil }) => suspendedUntil !== undefined).map(({ kind }) => kind);
    if (names.length === 0) return [];
    return [
      {
        ...({ area: "execution", rule: "suspended", level: "attention" } as const),
        text: `the agent ${id} is suspended for ${names.join(", ")}, because it fails more than others`,
        evidence: { agent: id, kinds: names },
        next: `waggle events --agent ${id} --type AttemptFailed --tail 20`,
      },
    ];
  });
}

/** A hold by an operator is a note: somebody wanted it. The time that a provider named is not to be cut short: an
 *  attempt before is refused, and places the hold again. */
function onHold(holds: ReturnType<typeof presentHolds>, at: number): readonly HealthFinding[] {
  return holds.map(({ on, name, until, since, phase, by, reason }) => {
    const endsAlone = by === "agent" ? ` (ends by itself at ${new Date(until).toISOString()})` : "";
    const end = phase === "held" ? `for ${duration(Math.max(0, until - at))} more${endsAlone}` : untilProbed;
    return {
      ...({ area: "execution", rule: "on-hold", level: by === "operator" ? "note" : "attention" } as const),
      text: `${targetText({ on, name })} ${on === "type" ? "are" : "is"} on hold ${end}: ${whyOnHold({ by, reason })}`,
      evidence: { on, name, until, since, phase, by },
      next: by === "agent" ? "waggle status" : `waggle unhold ${on} ${name}`,
    };
  });
}

// --- liveness ---------------------------------------------------------------------------------------

function liveness(status: StatusResponse): readonly HealthFinding[] {
  return [...leadership(status), ...silentAgents(status), ...journal(status), ...slowJournal(status)];
}

function leadership({
  stale,
  leader,
  standbys,
  journal: { durability },
}: StatusResponse): readonly HealthFinding[] {
  if (stale === true || leader === "")
    return [
      {
        ...{ area: "liveness", rule: "no-leader", level: "critical" },
        text: "no coordinator leads: a standby answered",
        evidence: { leader },
        next: "waggle doctor",
      },
    ];
  const mayStandBy = durability === "page-cache" || durability === "replicated";
  if (!mayStandBy || standbys === undefined || standbys.length > 0) return [];
  return [
    {
      ...{ area: "liveness", rule: "no-standby", level: "note" },
      text: `no coordinator stands by: if ${leader} ends, nothing is assigned until another starts`,
      evidence: { leader },
      next: "waggle up",
    },
  ];
}

function silentAgents({ agents }: StatusResponse): readonly HealthFinding[] {
  const findings: HealthFinding[] = [];
  const silent = agents.filter(({ unresponsive, status }) => unresponsive && status !== "offline");
  if (silent.length > 0) {
    const ids = silent.map(({ id }) => id);
    findings.push({
      ...{ area: "liveness", rule: "agents-silent", level: "attention" },
      text: `${counted(silent.length, "agent")} ${silent.length === 1 ? "is" : "are"} silent: ${listed(ids)}`,
      evidence: { agents: ids, silentMsMax: Math.max(...silent.map(({ silentMs = 0 }) => silentMs)) },
      next: "waggle status --all",
    });
  }
  for (const { id, outlivedMs } of agents)
    if (outlivedMs !== undefined)
      findings.push({
        ...{ area: "liveness", rule: "two-processes", level: "attention" },
        text: `two processes run as the agent ${id}: the earlier one was fenced, and still sends messages`,
        evidence: { agent: id, lastMessageMs: outlivedMs },
        next: `waggle events --agent ${id} --tail 20`,
      });
  return findings;
}

function journal({ journal: facts, at }: StatusResponse): readonly HealthFinding[] {
  const { bytes, bytesMax, baseFailure, foreignRecords, verified } = facts;
  const findings: HealthFinding[] = [];
  if (verified?.fault !== undefined)
    findings.push({
      ...{ area: "liveness", rule: "journal-changed", level: "critical" },
      text: `the journal is not as it was written: ${verified.fault.text}`,
      evidence: { segment: verified.fault.segment, lastGoodIdx: verified.idx },
      next: "waggle verify",
    });
  if (bytesMax !== undefined && bytes > bytesMax * limits.journalFullShare)
    findings.push({
      ...{ area: "liveness", rule: "journal-nearly-full", level: "critical" },
      text: `the journal is ${Math.round((100 * bytes) / bytesMax)} % full, and refuses tasks`,
      evidence: { bytes, bytesMax },
      next: "waggle doctor",
    });
  if (baseFailure !== undefined)
    findings.push({
      ...{ area: "liveness", rule: "journal-not-compacted", level: "attention" },
      text: `the journal cannot be compacted: ${baseFailure}`,
      evidence: { baseFailure },
      next: "waggle doctor",
    });
  if (foreignRecords !== undefined && at - foreignRecords.lastAt <= limits.foreignRecordShownMs)
    findings.push({
      ...{ area: "liveness", rule: "foreign-records", level: "attention" },
      text: `another program writes into the journal: ${counted(foreignRecords.count, "record")}`,
      evidence: { count: foreignRecords.count, lastAt: foreignRecords.lastAt },
      next: "waggle doctor",
    });
  return findings;
}

function slowJournal({ observed, journal: { durability } }: StatusResponse): readonly HealthFinding[] {
  const append = observed?.timings?.append;
  if (append === undefined || append.count < limits.healthAppendsMin || append.p50 < limits.healthAppendMs)
    return [];
  const { count, p50, p99, max } = append;
  return [
    {
      ...{ area: "liveness", rule: "journal-slow", level: "attention" },
      text: `the journal is slow: half of its recent appends took ${duration(Math.round(p50))} or longer, and each answer waits for one`,
      evidence: { appends: count, p50Ms: p50, p99Ms: p99, maxMs: max, durability },
      next: "waggle doctor",
    },
  ];
}

// --- words ------------------------------------------------------------------------------------------

const LISTED_MAX = 5;

function listed(names: readonly string[]): string {
  const more = names.length - LISTED_MAX;
  return more > 0 ? `${names.slice(0, LISTED_MAX).join(", ")} and ${more} more` : names.join(", ");
}

/** `3 tasks wait` */
function waitText(count: number): string {
  return `${counted(count, "task")} ${count === 1 ? "waits" : "wait"}`;
}
