// Random histories of tasks, agents and settings: wishes that choose among existing things, valid or not, and the
// model that makes commands of wishes.

import fc from "fast-check";
import type { Command, HeldAttempt, ReportedOutcome, SettingsCommand } from "../../src/core/command.ts";
import type { ProjectPatch, ResourcePatch } from "../../src/core/settings-patch.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
  type GroupId,
  incarnation,
  instant,
  kind,
  projectId,
  resourceName,
  taskId,
  taskKey,
  token,
  userId,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { EventOf } from "../../src/state/event.ts";
import type { Grant } from "../../src/state/grant.ts";
import type { AgentRow } from "../../src/state/state.ts";
import { refOf } from "../../src/state/task-rows.ts";
import { refIn } from "./task-refs.ts";
import { aTask, join, submit, Turns } from "./turns.ts";

/** A command before its subject is known: numbers choose among existing subjects. */
export interface Wish {
  readonly what: (typeof wishes)[number];
  readonly pick: number;
  readonly detail: number;
  readonly number: number;
}

const wishes = [
  "submit",
  "submit",
  "submit",
  "submit",
  "cancel",
  "retry",
  "join",
  "join",
  "leave",
  "lapse",
  "reconcile",
  "reconcile",
  "result",
  "result",
  "result",
  "result",
  "drain",
  "undrain",
  "mark",
  "stall",
  "refusals",
  "renew",
  "trim",
  "set",
  "set",
] as const;

const wish: fc.Arbitrary<Wish> = fc.record({
  what: fc.constantFrom(...wishes),
  pick: fc.nat(31),
  detail: fc.nat(1023),
  number: fc.nat(7),
});
const turn = fc.record({
  wishes: fc.array(wish, { maxLength: 6, size: "max" }),
  passMs: fc.oneof(
    { weight: 6, arbitrary: fc.nat(300) },
    { weight: 2, arbitrary: fc.nat(20_000) },
    { weight: 1, arbitrary: fc.constant(25 * 3_600_000) },
  ),
});
export const history = fc.record({
  /** Whether agents a0 to a2 already have a history, a0 with little success. */
  isExperienced: fc.nat(7).map((number) => number === 0),
  turns: fc.array(turn, { minLength: 1, maxLength: 24, size: "max" }),
});

const kinds = ["k", "l", "m", "nobody-serves-this"].map(kind);
const outcomes: ReportedOutcome[] = [
  { kind: "completed", result: "ré\u0000sult", digest: { sha256: "ab", bytes: 8 }, tokens: 3 },
  { kind: "completed", result: "AAAA", digest: { sha256: "cd", bytes: 3 }, encoding: "base64" },
  { kind: "failed", error: "no" },
  { kind: "failed", error: "no", tokens: 5 },
  { kind: "infrastructure", error: "quota" },
  { kind: "invalid", error: "bad" },
  { kind: "revoked" },
];

/** With or without a time, of any scope. */
function refusalOf(detail: number): ReportedOutcome {
  const scopes = [undefined, "agent", "type", { resource: resourceName("gpt") }] as const;
  const on = scopes[detail % 4];
  return {
    kind: "infrastructure",
    error: detail % 3 === 0 ? "" : "quota",
    refusal: {
      ...(on === undefined ? {} : { on }),
      ...(detail % 5 < 2 ? {} : { forMs: detail * 10 }),
    },
  };
}

/** The agents' knowledge, from the events alone. */
export class Model {
  /** By `taskKey`. */
  readonly accepted = new Set<string>();
  readonly turns = new Turns();
  #sessions = 0;

  commandOf({ what, pick, detail, number }: Wish): Command {
    const { turns } = this;
    const agent = agentId(`a${pick % 4}`);
    const row = turns.state.agentById.get(agent);
    const session = incarnation(number === 0 ? `${agent}-old` : (row?.incarnation ?? `${agent}-1`));
    switch (what) {
      case "submit":
        return this.#submission(pick, detail, number);
      case "cancel":
        return {
          type: "CancelTask",
          project: projectId(`p${detail % 2}`),
          task: taskId(`t${pick % 16}`),
          round: 1 + (number % 2),
        };
      case "retry":
        return this.#retry(pick, detail, number);
      case "join":
        return this.#join(agent, row, pick, detail, number);
      case "leave":
        return { type: "LeaveAgent", agent, incarnation: session };
      case "lapse":
        return { type: "LapseAgent", agent, incarnation: session };
      case "reconcile":
        return {
          type: "ReconcileAgent",
          agent,
          incarnation: session,
          ...heldBy(row, detail, number),
          ...(detail % 17 === 0 ? { draining: true } : {}),
          ...(detail % 5 === 0 ? { maxConcurrent: 1 + (pick % 3) } : {}),
        };
      case "result":
        return this.#result(pick, detail, number);
      case "drain":
        return { type: "DrainAgent", agent };
      case "undrain":
        return { type: "UndrainAgent", agent };
      case "mark":
        return { type: "MarkUnresponsive", agent, incarnation: session };
      case "stall":
        return {
          type: "StallAttempt",
          ...refIn(turns.state, `t${pick % 16}`),
          attempt: attemptNumber(1 + (number % 3)),
          jitter: detail / 1024,
        };
      case "refusals":
        return {
          type: "SummarizeRefusals",
          project: projectId("p0"),
          reason: "inbox-full",
          count: number + 1,
        };
      case "trim":
        return {
          type: "TrimAudit",
          firstIdx: batchIndex(1 + (detail % Math.max(1, turns.state.idx))),
          reason: "retention",
        };
      case "renew":
        return { type: "RenewTerm" };
      case "set":
        return settingOf(pick, detail, number);
    }
  }

  #submission(pick: number, detail: number, number: number): Command {
    const at = this.turns.at;
    const task = aTask({
      id: taskId(`t${pick % 16}`),
      kind: kinds[detail % 4] ?? kind("k"),
      project: projectId(`p${detail % 2}`),
      user: userId(`u${detail % 3}`),
      priority: 99 + (detail % 3),
      weight: 1 + (detail % 5),
      maxAttempts: 1 + (detail % 3),
      timeoutMs: 50 + detail * 10,
      payload: "ü".repeat(number),
      ...(number === 1 ? { role: "r" } : {}),
      ...(detail % 7 === 3 ? { needs: { zone: [`z${pick % 4}`, `z${(pick % 4) + 2}`] } } : {}),
      ...(pick % 3 === 0 ? { affinity: `s${detail % 4}` } : {}),
      ...(detail % 9 === 5 ? { attributes: { ticket: `T-${pick}` } } : {}),
      ...(number === 2 ? { deadline: instant(Math.max(0, at + detail - 100)) } : {}),
      ...(number === 3 ? { notBefore: instant(at + detail) } : {}),
      ...(number === 4 ? { notBefore: instant(at + detail), deadline: instant(at + 300) } : {}),
    });
    // About every second time a repeated id has the same hash.
    const failFast = number === 5;
    return { type: "SubmitTask", task, hash: `h${detail % 2}`, ...(failFast ? { failFast } : {}) };
  }

  /** Mostly an ended task, and mostly its next round. */
  #retry(pick: number, detail: number, number: number): Command {
    const ended = [...this.turns.state.endedById.values()];
    const one = ended[pick % Math.max(1, ended.length)];
    const isOther = number === 0 || one === undefined;
    const task = isOther ? taskId(`t${pick % 16}`) : one.id;
    const spec = this.turns.specOf(task, isOther ? undefined : one.project) ?? aTask({ id: task });
    const { deadline: _, notBefore: __, ...rest } = spec;
    const renewed = number === 1 ? { ...rest, deadline: instant(this.turns.at + detail) } : rest;
    const round = (one?.round ?? 1) + (number === 2 ? detail % 3 : 1);
    return { type: "RetryTask", project: spec.project, task, round, spec: renewed };
  }

  #join(
    agent: AgentRow["id"],
    row: AgentRow | undefined,
    pick: number,
    detail: number,
    number: number,
  ): Command {
    const isResumed = row !== undefined && number > 3;
    this.#sessions += 1;
    return join(agent, {
      incarnation: isResumed ? row.incarnation : incarnation(`${agent}-${this.#sessions}`),
      ...(pick % 4 === 0 ? { group: (detail % 2 === 0 ? "g1" : "g2") as GroupId } : {}),
      kinds: kinds.slice(0, 3).filter((_, at) => (pick >> at) & 1),
      maxConcurrent: 1 + (detail % 3),
      ...(detail % 2 === 0 ? { prefetch: detail % 3 } : {}),
      ...(number % 2 === 0 ? { role: "r" } : {}),
      ...(detail % 5 === 0 ? { agentType: "claude", labels: { zone: `z${number}` } } : {}),
      ...heldBy(row, detail, number),
    });
  }

  /** Any attempt so far; mostly from its agent, with the right token. */
  #result(pick: number, detail: number, number: number): Command {
    const assigned = this.turns.all("TaskAssigned");
    const open = assigned.filter(
      (assignment) => this.turns.state.taskById.get(assignment)?.open?.attempt === assignment.attempt,
    );
    const among = open.length > 0 && number > 1 ? open : assigned;
    const one: EventOf<"TaskAssigned"> | undefined = among[pick % Math.max(1, among.length)];
    return {
      type: "ReportResult",
      agent: detail % 31 === 0 ? agentId("a0") : (one?.agent ?? agentId("a1")),
      incarnation: detail % 29 === 0 ? incarnation("other") : (one?.incarnation ?? incarnation("none")),
      project: one?.project ?? projectId("p0"),
      task: one?.task ?? taskId("t0"),
      attempt: one?.attempt ?? attemptNumber(1),
      token: detail % 23 === 0 ? token("9.9") : (one?.token ?? token("1.1")),
      outcome: number === 7 ? refusalOf(detail) : (outcomes[detail % outcomes.length] ?? { kind: "revoked" }),
      jitter: detail / 1024,
    };
  }

  /** Enough attempts of each agent for one suspension. */
  learn(): void {
    const { turns } = this;
    turns.turn(...["a0", "a1", "a2"].map((id) => join(id, { kinds: kinds.slice(0, 3) })));
    for (let lesson = 0; lesson < limits.suspendAttemptsMin; lesson += 1) {
      const ids = ["a", "b", "c"].map((name) => `lesson-${name}${lesson}`);
      turns.turn(...ids.map((id) => submit({ id: taskId(id), maxAttempts: 1 })));
      turns.turn(...ids.map((id) => turns.report(id, this.#lessonOf(id))));
    }
  }

  #lessonOf(id: string): ReportedOutcome {
    const isBad = this.turns.task(id).open?.agent === agentId("a0");
    return isBad
      ? { kind: "failed", error: "" }
      : { kind: "completed", result: "", digest: { sha256: "ef", bytes: 0 } };
  }

  run(history: readonly { readonly wishes: readonly Wish[]; readonly passMs: number }[]): void {
    for (const { wishes: asked, passMs } of history) {
      this.turns.pass(passMs);
      const commands = asked.map((each) => this.commandOf(each)).filter(isFirstJoin);
      const replies = this.turns.turn(...commands);
      for (const [at, reply] of replies.entries()) {
        const command = commands[at];
        if (reply.kind === "accepted" && command?.type === "SubmitTask")
          this.accepted.add(taskKey(refOf(command.task)));
      }
    }
  }
}

const ruleNames = ["waggle", "budget", "loco", "vapora", "lucio"] as const;

/** Operators' settings while tasks run: rules, limits below the current use, pauses and resumes. */
function settingOf(pick: number, detail: number, number: number): SettingsCommand {
  const project = projectId(`p${detail % 2}`);
  const budget =
    detail % 3 === 0
      ? null
      : {
          tokens: 1 + (detail % 50),
          windowMs: limits.budgetWindowMsMin,
          mode: detail % 3 === 1 ? ("wait" as const) : ("alert" as const),
        };
  const limit = detail % 5 === 0 ? null : 1 + (detail % 4);
  switch (pick % 12) {
    case 0:
      return { type: "SetPolicy", patch: { rules: ruleNames[number % ruleNames.length] } };
    case 1:
      return {
        type: "SetPolicy",
        patch: {
          topN: limit,
          projects: number === 0 ? "declared" : "open",
          agents: detail % 3 === 0 ? "declared" : "open",
        },
      };
    case 2:
      return { type: "SetPolicy", patch: { budget, alpha: detail / 1024, autoTune: number > 3 } };
    case 3:
      return {
        type: "SetProject",
        project,
        patch: { maxConcurrent: limit, creditWeight: 1 + number, ...results(detail) },
      };
    case 4:
      return detail % 4 === 0
        ? { type: "RemoveProject", project }
        : { type: "SetProject", project, patch: { budget, queueMax: number === 0 ? 2 : null } };
    case 5: {
      const patch = { importance: 1 + number, cheaper: kinds[number % 4] ?? null };
      return { type: "SetKind", kind: kinds[detail % 4] ?? kind("k"), patch };
    }
    case 6:
      return detail % 4 === 0
        ? { type: "RemoveResource", resource: resourceName("gpt") }
        : {
            type: "SetResource",
            resource: resourceName("gpt"),
            patch: { slots: number, ...alphaPatch(detail) },
          };
    case 7:
      return number < 3
        ? { type: "RemoveRate", agentType: "claude" }
        : { type: "SetRate", agentType: "claude", patch: { window: "per_minute", tokensMax: detail } };
    case 9: {
      const on = (["agent", "type", "resource"] as const)[detail % 3] ?? "agent";
      const target = { on, name: { agent: `a${detail % 4}`, type: "claude", resource: "gpt" }[on] };
      return number < 3
        ? { type: "EndHold", ...target }
        : { type: "PlaceHold", ...target, forMs: 1 + detail };
    }
    case 10: {
      const group = (detail % 2 === 0 ? "g1" : "g2") as GroupId;
      return number === 0
        ? { type: "RemoveGrant", group }
        : { type: "SetGrant", group, grant: grantOf(detail) };
    }
    case 8:
      return { type: "Pause", ...(number < 2 ? {} : { project }) };
    default:
      return { type: "Resume", ...(number < 5 ? {} : { project }) };
  }
}

function grantOf(detail: number): Grant {
  return {
    ...(detail % 3 === 0 ? { projects: detail % 2 === 0 ? [projectId("p0")] : [] } : {}),
    ...(detail % 5 === 0 ? { kinds: kinds.slice(0, 2) } : {}),
    ...(detail % 7 === 0 ? { resources: [] } : {}),
    ...(detail % 4 === 0 ? { maxConcurrent: 2, tokens: 20 } : {}),
  };
}

/** A fenced session does not join again, so an agent joins at most once per turn. */
function isFirstJoin(command: Command, at: number, all: readonly Command[]): boolean {
  if (command.type !== "JoinAgent") return true;
  return all.findIndex((other) => other.type === "JoinAgent" && other.agent === command.agent) === at;
}

/** The attempts that an agent lists: its held attempts, with some missing or added. */
function heldBy(row: AgentRow | undefined, detail: number, number: number) {
  const held: HeldAttempt[] = [];
  for (const [at, { project, task, attempt }] of [...(row?.open.values() ?? [])].entries())
    if (number > 2 || (detail >> at) & 1) held.push({ project, task, attempt });
  if (detail % 7 === 0)
    held.push({ project: projectId("p0"), task: taskId("t3"), attempt: attemptNumber(1) });
  return { held, seen: assignmentNumber(Math.max(0, (row?.lastNumber ?? 0) + 1 - (detail % 4))) };
}

function results(detail: number): ProjectPatch {
  return detail % 3 === 0 ? { results: detail % 2 === 0 ? "hash" : "whole" } : {};
}

/** α of a resource: unchanged, the policy's, or its own, with or without auto-tune. */
function alphaPatch(detail: number): ResourcePatch {
  if (detail % 3 === 0) return {};
  return detail % 3 === 1 ? { alpha: null } : { alpha: (detail % 512) / 1024, autoTune: detail % 2 === 0 };
}
