// When a rival decides. Late binding keeps tasks in one queue until an agent is free. Early binding puts each
// task into an agent's own queue on arrival. Both retry failures in the same way.

import type { AgentChoice, AgentView } from "./agent-choices.ts";
import type { Assignment, AttemptEnd, Dispatcher, SimAgent, SimTask } from "./dispatcher.ts";
import { FifoTurns, type TurnRule } from "./turn-rules.ts";

export interface BindingOptions {
  readonly agents: readonly SimAgent[];
  readonly attemptsMax: number;
  readonly choose: AgentChoice;
  /** Pause before attempt n + 1 after n failures; absent: no pause. */
  readonly backOffMs?: (failures: number) => number;
}

interface Retry {
  readonly task: SimTask;
  readonly dueAt: number;
}

/** Common state of both bindings: the tasks that each agent holds, and the tasks that wait for their next
 *  attempt. */
abstract class Binding implements Dispatcher {
  /** Agents that have joined, in order of joining. */
  protected readonly views: AgentView[] = [];
  readonly #viewByIndex = new Map<number, AgentView>();
  readonly #options: BindingOptions;
  readonly #failures = new Map<SimTask, number>();
  #retries: Retry[] = [];

  constructor(options: BindingOptions) {
    this.#options = options;
    for (const agent of options.agents) if (agent.joinsAt === undefined) this.joined(agent);
  }

  joined(agent: SimAgent): void {
    const view: AgentView = { agent, inFlight: 0, attempts: 0, successes: 0 };
    this.views.push(view);
    this.#viewByIndex.set(agent.index, view);
  }

  abstract submitted(task: SimTask, at: number): void;

  ended({ task, agent, succeeds }: AttemptEnd, at: number): void {
    const view = this.#viewByIndex.get(agent.index) as AgentView;
    view.inFlight -= 1;
    view.attempts += 1;
    if (succeeds) view.successes += 1;
    else this.#retry(task, at);
  }

  plan(at: number): readonly Assignment[] {
    const due = this.#retries.filter(({ dueAt }) => dueAt <= at);
    if (due.length > 0) this.#retries = this.#retries.filter(({ dueAt }) => dueAt > at);
    for (const { task } of due) this.submitted(task, at);
    return this.bind(at);
  }

  dueAt(): number | undefined {
    if (this.#retries.length === 0) return undefined;
    return this.#retries.reduce((earliest, { dueAt }) => Math.min(earliest, dueAt), Number.POSITIVE_INFINITY);
  }

  protected abstract bind(at: number): Assignment[];

  /** @param candidates not empty */
  protected assign(task: SimTask, candidates: readonly AgentView[]): Assignment {
    const view = this.#options.choose(candidates);
    view.inFlight += 1;
    return { task, agent: view.agent };
  }

  #retry(task: SimTask, at: number): void {
    const failures = (this.#failures.get(task) ?? 0) + 1;
    this.#failures.set(task, failures);
    if (failures >= this.#options.attemptsMax) return;
    const pauseMs = this.#options.backOffMs?.(failures) ?? 0;
    this.#retries.push({ task, dueAt: at + Math.round(pauseMs) });
  }
}

export class EarlyBinding extends Binding {
  #bound: Assignment[] = [];

  override submitted(task: SimTask): void {
    const candidates = this.views.filter(({ agent }) => agent.kinds.includes(task.kind));
    if (candidates.length > 0) this.#bound.push(this.assign(task, candidates));
  }

  protected override bind(): Assignment[] {
    const bound = this.#bound;
    this.#bound = [];
    return bound;
  }
}

export interface LateBindingOptions extends BindingOptions {
  /** Default: first in, first out. */
  readonly turns?: TurnRule;
}

export class LateBinding extends Binding {
  readonly #turns: TurnRule;

  constructor(options: LateBindingOptions) {
    super(options);
    this.#turns = options.turns ?? new FifoTurns();
  }

  override submitted(task: SimTask, at: number): void {
    this.#turns.submitted(task, at);
  }

  override ended(end: AttemptEnd, at: number): void {
    super.ended(end, at);
    this.#turns.ended();
  }

  protected override bind(at: number): Assignment[] {
    const assignments: Assignment[] = [];
    for (;;) {
      const free = this.views.filter(({ agent, inFlight }) => inFlight < agent.maxConcurrent);
      if (free.length === 0) return assignments;
      const task = this.#turns.take(at, (kind) => free.some(({ agent }) => agent.kinds.includes(kind)));
      if (task === undefined) return assignments;
      assignments.push(
        this.assign(
          task,
          free.filter(({ agent }) => agent.kinds.includes(task.kind)),
        ),
      );
    }
  }
}
