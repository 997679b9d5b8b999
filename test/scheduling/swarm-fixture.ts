// A swarm's state for tests, built by applying events. Not a mock: every method is one legal event, with defaults for
// the fields that the test does not need.

import { apply } from "../../src/core/apply.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
  type GroupId,
  incarnation,
  instant,
  type Kind,
  kind,
  projectId,
  taskId,
  term,
  token,
  userId,
} from "../../src/ids.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import type { Event, EventOf, FailureClass, TaskSpec } from "../../src/state/event.ts";
import type { HoldScope, Refusal } from "../../src/state/hold.ts";
import { needsOf, type WrittenNeeds } from "../../src/state/needs.ts";
import type { Policy } from "../../src/state/policy.ts";
import type { Receipt, TurnBases } from "../../src/state/receipt.ts";
import type { KindSettings, ProjectSettings } from "../../src/state/settings.ts";
import {
  type AgentRow,
  defaultKindSettings,
  defaultProjectSettings,
  emptyState,
  type OpenAttempt,
  type SwarmState,
  type TaskRow,
} from "../../src/state/state.ts";
import { liveTask, refIn } from "../support/task-refs.ts";

export interface AgentOverrides {
  readonly kinds?: readonly string[];
  readonly role?: string;
  readonly maxConcurrent?: number;
  readonly prefetch?: number;
  readonly agentType?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly group?: string;
}

export interface TaskOverrides {
  readonly project?: string;
  readonly user?: string;
  readonly kind?: string;
  readonly role?: string;
  readonly needs?: WrittenNeeds;
  readonly affinity?: string;
  readonly priority?: number;
  readonly weight?: number;
  readonly maxAttempts?: number;
  readonly tokens?: number;
}

const unexplained: Receipt = {
  feasible: 1,
  candidates: [],
  ineligible: {},
  decidedBy: "only",
  queue: "",
  waiting: 1,
  waitedMs: 0,
};

export class SwarmFixture {
  readonly state: SwarmState = emptyState();
  /** Kept from round to round, as a coordinator does. */
  readonly planner = new Planner(this.state);
  at = instant(1_000_000);
  #idx = 0;

  constructor() {
    this.apply({ type: "TermStarted", term: term(7), leader: "c1", opened: "o1", timeoutMs: 3_000 });
  }

  apply(event: Event): void {
    this.#idx += 1;
    this.state.at = this.at;
    this.state.idx = batchIndex(this.#idx);
    apply(this.state, event, { at: this.at, idx: batchIndex(this.#idx) });
    if ("agent" in event) this.planner.touch(event.agent);
  }

  pass(ms: number): void {
    this.at = instant(this.at + ms);
  }

  agent(id: string): AgentRow {
    const row = this.state.agentById.get(agentId(id));
    if (row === undefined) throw new Error(`no agent ${id}`);
    return row;
  }

  join(id: string, overrides: AgentOverrides = {}): AgentRow {
    const { kinds = ["k"], role, maxConcurrent = 1, prefetch, agentType, labels, group } = overrides;
    this.apply({
      type: "AgentJoined",
      agent: agentId(id),
      incarnation: incarnation(`${id}-1`),
      kinds: kinds.map(kind),
      maxConcurrent,
      ...(role === undefined ? {} : { role }),
      ...(prefetch === undefined ? {} : { prefetch }),
      ...(agentType === undefined ? {} : { agentType }),
      ...(labels === undefined ? {} : { labels }),
      ...(group === undefined ? {} : { group: group as GroupId }),
    });
    return this.agent(id);
  }

  leave(id: string): void {
    this.apply({
      type: "AgentLeft",
      agent: agentId(id),
      incarnation: incarnation(`${id}-1`),
      reason: "left",
    });
  }

  drain(id: string): void {
    this.apply({ type: "AgentDrained", agent: agentId(id) });
  }

  stopAnswering(id: string): void {
    this.apply({ type: "AgentUnresponsive", agent: agentId(id) });
  }

  suspend(id: string, { kind: of = "k", until = this.at as number, step = 1 } = {}): void {
    this.apply({ type: "AgentSuspended", agent: agentId(id), kind: kind(of), until: instant(until), step });
  }

  hold(on: HoldScope, name: string, until = this.at + 60_000): void {
    this.apply({ type: "HoldPlaced", on, name, until: instant(until), by: "operator" });
  }

  submit(id: string, overrides: TaskOverrides = {}): void {
    const { project = "p", user = "u", kind: of = "k", role, priority = 100, weight = 1 } = overrides;
    const { maxAttempts = 3, tokens, affinity } = overrides;
    const needs = needsOf(overrides.needs);
    const spec: TaskSpec = {
      id: taskId(id),
      kind: kind(of),
      ...(role === undefined ? {} : { role }),
      ...(needs === undefined ? {} : { needs }),
      ...(affinity === undefined ? {} : { affinity }),
      project: projectId(project),
      user: userId(user),
      weight,
      priority,
      payload: "",
      maxAttempts,
      timeoutMs: 1_000_000,
      ...(tokens === undefined ? {} : { tokens }),
    };
    this.apply({ type: "TaskSubmitted", task: spec, hash: id });
  }

  /** Sets some of the policy; the rest is unchanged. */
  setPolicy(changes: Partial<Policy>): void {
    this.apply({ type: "PolicyChanged", policy: { ...this.state.policy, ...changes } });
  }

  setProject(project: string, settings: Partial<ProjectSettings>): void {
    const known = this.state.projectById.get(projectId(project))?.settings ?? defaultProjectSettings;
    this.apply({
      type: "ProjectConfigured",
      project: projectId(project),
      settings: { ...known, ...settings },
    });
  }

  setKind(of: string, settings: Partial<KindSettings>): void {
    const known = this.state.kindByName.get(kind(of))?.settings ?? defaultKindSettings;
    this.apply({ type: "KindConfigured", kind: kind(of), settings: { ...known, ...settings } });
  }

  setRate(agentType: string, tokensMax: number, sliding: boolean): void {
    this.apply({ type: "RateConfigured", agentType, settings: { window: "per_minute", tokensMax, sliding } });
  }

  pauseProject(project: string, isPaused: boolean): void {
    this.apply({ type: isPaused ? "ProjectPaused" : "ProjectResumed", project: projectId(project) });
  }

  pauseSwarm(isPaused: boolean): void {
    this.apply({ type: isPaused ? "SwarmPaused" : "SwarmResumed" });
  }

  cancel(task: string): void {
    this.apply({ type: "TaskCancelled", ...refIn(this.state, task), reason: "requested" });
  }

  /** Assigns without asking the planner. */
  assign(task: string, to: string, turn?: TurnBases): void {
    const row = liveTask(this.state, task);
    const agent = this.agent(to);
    const number = agent.lastNumber + 1;
    this.apply({
      type: "TaskAssigned",
      ...refIn(this.state, task),
      attempt: attemptNumber((row?.attempt ?? 0) + 1),
      agent: agent.id,
      incarnation: agent.incarnation,
      number: assignmentNumber(number),
      token: token(`7.${number}`),
      receipt: turn === undefined ? unexplained : { ...unexplained, turn },
    });
  }

  complete(task: string, latencyMs = 1, tokens?: number): void {
    const { attempt, agent } = this.openAttempt(task);
    this.apply({
      type: "TaskCompleted",
      ...refIn(this.state, task),
      attempt,
      agent,
      result: "",
      latencyMs,
      ...(tokens === undefined ? {} : { tokens }),
    });
  }

  /**
   * Queues the task again, at once unless `retryMs` is set. @param revoked the agent was asked to stop, and its
   * capacity stays occupied
   */
  fail(
    task: string,
    {
      failureClass = "failed" as FailureClass,
      revoked = false,
      retryMs = 0,
      latencyMs = 1,
      refusal = undefined as Refusal | undefined,
    } = {},
  ): void {
    const { attempt, agent } = this.openAttempt(task);
    this.apply({
      type: "AttemptFailed",
      ...refIn(this.state, task),
      attempt,
      agent,
      failure: { class: failureClass, error: "" },
      latencyMs,
      ...(retryMs === 0 ? {} : { retryAt: instant(this.at + retryMs) }),
      ...(refusal === undefined ? {} : { refusal }),
      ...(revoked ? { revoked: true } : {}),
    });
  }

  /** Tasks that the agent tries and ends. */
  teach(id: string, { successes = 0, failures = 0, kind: of = "k" }): void {
    for (let n = 0; n < successes + failures; n += 1) {
      const task = `lesson-${this.state.submissions}`;
      this.submit(task, { kind: of });
      this.assign(task, id);
      if (n < successes) this.complete(task);
      else {
        this.fail(task);
        this.cancel(task);
      }
    }
  }

  task(id: string): TaskRow {
    const row = liveTask(this.state, id);
    if (row === undefined) throw new Error(`no live task ${id}`);
    return row;
  }

  openAttempt(task: string): OpenAttempt {
    const open = liveTask(this.state, task)?.open;
    if (open === undefined) throw new Error(`no open attempt of ${task}`);
    return open;
  }

  /** One whole round, applied. */
  plan(policy?: Partial<Policy>, planner: Planner = this.planner): EventOf<"TaskAssigned">[] {
    if (policy !== undefined) this.setPolicy(policy);
    const round = planner.open(this.at);
    const assigned: EventOf<"TaskAssigned">[] = [];
    for (let event = round.next(); event !== undefined; event = round.next()) {
      this.apply(event);
      assigned.push(event);
    }
    return assigned;
  }
}

export const aKind: Kind = kind("k");

/** `t1→a1`: a round's assignments, to be read at a glance. */
export function pairsOf(assigned: readonly EventOf<"TaskAssigned">[]): string[] {
  return assigned.map(({ task, agent }) => `${task}→${agent}`);
}
