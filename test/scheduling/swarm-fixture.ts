// A swarm's state for tests, built the only way there is: by applying events. Not a mock of anything; every
// method is one legal event, with what the test does not care about filled in.

import { apply } from "../../src/core/apply.ts";
import type { Event, EventOf, FailureClass, TaskSpec } from "../../src/core/event.ts";
import type { Receipt } from "../../src/core/receipt.ts";
import { type AgentRow, emptyState, type OpenAttempt, type SwarmState } from "../../src/core/state.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
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
import type { Policy } from "../../src/scheduling/policy.ts";

export interface AgentOverrides {
  readonly kinds?: readonly string[];
  readonly role?: string;
  readonly maxConcurrent?: number;
  readonly prefetch?: number;
}

export interface TaskOverrides {
  readonly kind?: string;
  readonly role?: string;
  readonly priority?: number;
  readonly weight?: number;
  readonly maxAttempts?: number;
}

const unexplained: Receipt = {
  feasible: 1,
  candidates: [],
  ineligible: {},
  decidedBy: "only",
  lane: "",
  waiting: 1,
  waitedMs: 0,
};

export class SwarmFixture {
  readonly state: SwarmState = emptyState();
  at = instant(1_000_000);
  #idx = 0;

  constructor() {
    this.apply({ type: "TermStarted", term: term(7), leader: "c1" });
  }

  apply(event: Event): void {
    this.#idx += 1;
    this.state.at = this.at;
    this.state.idx = batchIndex(this.#idx);
    apply(this.state, event, { at: this.at, idx: batchIndex(this.#idx) });
  }

  pass(ms: number): void {
    this.at = instant(this.at + ms);
  }

  agent(id: string): AgentRow {
    const row = this.state.agentById.get(agentId(id));
    if (row === undefined) throw new Error(`no agent ${id}`);
    return row;
  }

  join(id: string, { kinds = ["k"], role, maxConcurrent = 1, prefetch }: AgentOverrides = {}): AgentRow {
    this.apply({
      type: "AgentJoined",
      agent: agentId(id),
      incarnation: incarnation(`${id}-1`),
      kinds: kinds.map(kind),
      maxConcurrent,
      ...(role === undefined ? {} : { role }),
      ...(prefetch === undefined ? {} : { prefetch }),
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

  submit(id: string, overrides: TaskOverrides = {}): void {
    const { kind: of = "k", role, priority = 100, weight = 1, maxAttempts = 3 } = overrides;
    const spec: TaskSpec = {
      id: taskId(id),
      kind: kind(of),
      ...(role === undefined ? {} : { role }),
      project: projectId("p"),
      user: userId("u"),
      weight,
      priority,
      payload: "",
      maxAttempts,
      timeoutMs: 1_000_000,
    };
    this.apply({ type: "TaskSubmitted", task: spec, hash: id });
  }

  /** Assigns without asking the planner. */
  assign(task: string, to: string): void {
    const row = this.state.taskById.get(taskId(task));
    const agent = this.agent(to);
    const number = agent.lastNumber + 1;
    this.apply({
      type: "TaskAssigned",
      task: taskId(task),
      attempt: attemptNumber((row?.attempt ?? 0) + 1),
      agent: agent.id,
      incarnation: agent.incarnation,
      number: assignmentNumber(number),
      token: token(`7.${number}`),
      receipt: unexplained,
    });
  }

  complete(task: string, latencyMs = 1): void {
    const { attempt, agent } = this.openAttempt(task);
    this.apply({ type: "TaskCompleted", task: taskId(task), attempt, agent, result: "", latencyMs });
  }

  /** The task is queued again at once. @param revoked the agent was told to stop, and keeps the place */
  fail(task: string, { failureClass = "failed" as FailureClass, revoked = false } = {}): void {
    const { attempt, agent } = this.openAttempt(task);
    this.apply({
      type: "AttemptFailed",
      task: taskId(task),
      attempt,
      agent,
      failure: { class: failureClass, error: "" },
      latencyMs: 1,
      ...(revoked ? { revoked: true } : {}),
    });
  }

  /** So many tasks, each tried by the agent and ended. */
  teach(id: string, { successes = 0, failures = 0, kind: of = "k" }): void {
    for (let n = 0; n < successes + failures; n += 1) {
      const task = `lesson-${this.state.submissions}`;
      this.submit(task, { kind: of });
      this.assign(task, id);
      if (n < successes) this.complete(task);
      else {
        this.fail(task);
        this.apply({ type: "TaskCancelled", task: taskId(task), reason: "requested" });
      }
    }
  }

  openAttempt(task: string): OpenAttempt {
    const open = this.state.taskById.get(taskId(task))?.open;
    if (open === undefined) throw new Error(`no open attempt of ${task}`);
    return open;
  }

  /** One whole round, applied. */
  plan(policy?: Partial<Policy>): EventOf<"TaskAssigned">[] {
    if (policy !== undefined) this.state.policy = { ...this.state.policy, ...policy };
    const round = new Planner(this.state).open(this.at);
    const assigned: EventOf<"TaskAssigned">[] = [];
    for (let event = round.next(); event !== undefined; event = round.next()) {
      this.apply(event);
      assigned.push(event);
    }
    return assigned;
  }
}

export const aKind: Kind = kind("k");

/** `t1→a1`: what a round did, to be read at a glance. */
export function told(assigned: readonly EventOf<"TaskAssigned">[]): string[] {
  return assigned.map(({ task, agent }) => `${task}→${agent}`);
}
