// The production state and planner as a dispatcher of a simulation: the production step (core/step.ts) with
// commands in and assignments out, in virtual time. Repeats no decision. Omits the parts around the step:
// journal, heartbeats, confirmations of assignments.

import { assert } from "../../assert.ts";
import { apply } from "../../core/apply.ts";
import type { Command } from "../../core/command.ts";
import { Turn } from "../../core/step.ts";
import {
  type AttemptNumber,
  agentId,
  assignmentNumber,
  batchIndex,
  incarnation,
  instant,
  kind,
  projectId,
  type Token,
  taskId,
  term,
  userId,
} from "../../ids.ts";
import { limits } from "../../limits.ts";
import { Planner } from "../../scheduling/planner.ts";
import { Wake } from "../../scheduling/wake.ts";
import type { Event } from "../../state/event.ts";
import { defaultPolicy, type Policy } from "../../state/policy.ts";
import { emptyState, type SwarmState } from "../../state/state.ts";
import type { SeededRandom } from "../random.ts";
import type { Assignment, AttemptEnd, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";

export interface ProductionOptions {
  readonly agents: readonly SimAgent[];
  readonly attemptsMax: number;
  readonly policy?: Partial<Policy>;
  /** Settings that an operator made before the first task. */
  readonly settings?: readonly Event[];
  /** Spreads retries. The only random source. */
  readonly jitter: SeededRandom;
}

interface OpenAssignment extends Assignment {
  readonly attempt: AttemptNumber;
  readonly token: Token;
}

/** Longer than any simulation: a timeout would be an error of the simulation. */
const NEVER_MS = 1e13;

export class Production implements Dispatcher {
  readonly state: SwarmState = emptyState();
  readonly #planner = new Planner(this.state);
  readonly #wake = new Wake(this.state);
  readonly #options: ProductionOptions;
  readonly #taskById = new Map<string, SimTask>();
  readonly #agentById = new Map<string, SimAgent>();
  readonly #openByTask = new Map<string, OpenAssignment>();
  #commands: Command[] = [];
  #idx = 0;
  #at = instant(0);

  constructor(options: ProductionOptions) {
    this.#options = options;
    this.#turn(
      [
        {
          type: "StartTerm",
          term: term(1),
          leader: "simulation",
          opened: "simulation",
          timeoutMs: limits.leaderTimeoutMs,
        },
      ],
      0,
    );
    const policy: Policy = { ...defaultPolicy, ...options.policy };
    for (const event of [{ type: "PolicyChanged", policy } as const, ...(options.settings ?? [])]) {
      apply(this.state, event, { at: instant(0), idx: batchIndex(this.#idx) });
    }
    this.#turn(
      options.agents.filter(({ joinsAt }) => joinsAt === undefined).map((agent) => this.#join(agent)),
      0,
    );
  }

  submitted(task: SimTask): void {
    const id = idOf(task);
    this.#taskById.set(id, task);
    this.#commands.push({
      type: "SubmitTask",
      hash: id,
      task: {
        id: taskId(id),
        kind: kind(task.kind),
        project: projectId(task.project),
        user: userId(task.user),
        weight: task.weight,
        priority: 100,
        payload: "",
        ...(task.tokens === undefined ? {} : { tokens: task.tokens }),
        maxAttempts: this.#options.attemptsMax,
        timeoutMs: NEVER_MS,
      },
    });
  }

  ended({ task, agent, succeeds, tokens }: AttemptEnd): void {
    const id = idOf(task);
    const open = this.#openByTask.get(id);
    assert(open !== undefined && open.agent === agent, `${id} ends where it was assigned`);
    this.#openByTask.delete(id);
    this.#commands.push({
      type: "ReportResult",
      agent: agentId(nameOf(agent)),
      incarnation: incarnation(nameOf(agent)),
      project: projectId(task.project),
      task: taskId(id),
      attempt: open.attempt,
      token: open.token,
      outcome: {
        ...(succeeds
          ? ({ kind: "completed", result: "" } as const)
          : ({ kind: "failed", error: "failed" } as const)),
        ...(tokens === undefined ? {} : { tokens }),
      },
      jitter: this.#options.jitter.fraction(),
    });
  }

  joined(agent: SimAgent): void {
    this.#commands.push(this.#join(agent));
  }

  died(agent: SimAgent): void {
    const name = nameOf(agent);
    this.#commands.push({ type: "LapseAgent", agent: agentId(name), incarnation: incarnation(name) });
  }

  plan(at: number): readonly Assignment[] {
    const commands = this.#commands;
    this.#commands = [];
    return this.#turn(commands, at);
  }

  dueAt(): number | undefined {
    return this.#wake.nextAt(this.#at);
  }

  /** Runs turns until nothing more can be done at this instant. */
  #turn(commands: readonly Command[], at: number): Assignment[] {
    const assignments: Assignment[] = [];
    let taken = 0;
    this.#at = instant(at);
    for (let isDone = false; !isDone; ) {
      this.#idx += 1;
      const turn = new Turn(this.state, this.#at, batchIndex(this.#idx), this.#planner);
      for (; taken < commands.length && !turn.isFull; taken += 1) {
        const reply = turn.take(commands[taken] as Command);
        assert(isFine(reply.kind), `the simulation's ${commands[taken]?.type} is answered ${reply.kind}`);
      }
      isDone =
        taken === commands.length && turn.takeDue(() => this.#options.jitter.fraction()) && turn.plan();
      this.#wake.touch(turn.touchedAgents);
      for (const { event } of turn.recorded) {
        if (event.type === "TaskAssigned") assignments.push(this.#open(event));
      }
    }
    return assignments;
  }

  #open(event: Extract<Event, { type: "TaskAssigned" }>): Assignment {
    const task = this.#taskById.get(event.task);
    const agent = this.#agentById.get(event.agent);
    assert(
      task !== undefined && agent !== undefined,
      "the simulation knows the task and the agent of an event",
    );
    const open = { task, agent, attempt: event.attempt, token: event.token };
    this.#openByTask.set(event.task, open);
    return open;
  }

  #join(agent: SimAgent): Command {
    this.#agentById.set(nameOf(agent), agent);
    return {
      type: "JoinAgent",
      agent: agentId(nameOf(agent)),
      incarnation: incarnation(nameOf(agent)),
      kinds: agent.kinds.map(kind),
      maxConcurrent: agent.maxConcurrent,
      held: [],
      seen: assignmentNumber(0),
    };
  }
}

function isFine(reply: string): boolean {
  return ["ok", "accepted", "joined", "none"].includes(reply);
}

function idOf(task: SimTask): string {
  return `t${task.index}`;
}

/** Sorts like the index: ids break ties. */
function nameOf(agent: SimAgent): string {
  return `a${String(agent.index).padStart(3, "0")}`;
}
