// A swarm with assignments by the test itself, like a planner that asks every gate. Events are applied one by one, with
// their reactions, and every state in between is checked.

import { apply } from "../../src/core/apply.ts";
import type { Command, Reply, ReportedOutcome } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import { kindClosedBy, reactTo } from "../../src/core/decide-attempt.ts";
import { checkInvariants } from "../../src/core/invariants.ts";
import { afterNewest } from "../../src/core/recorded-inputs.ts";
import { Succession } from "../../src/core/succession.ts";
import {
  agentId,
  assignmentNumber,
  attemptNumber,
  batchIndex,
  instant,
  kind,
  projectId,
  taskId,
  term,
  token,
} from "../../src/ids.ts";
import { budgetVerdict, projectGate, rateGate, swarmGate } from "../../src/scheduling/gates.ts";
import type { Event, EventOf, EventType, TaskSpec } from "../../src/state/event.ts";
import { passTo } from "../../src/state/journal-time.ts";
import type { Policy } from "../../src/state/policy.ts";
import type {
  BudgetSettings,
  KindSettings,
  ProjectSettings,
  RateSettings,
} from "../../src/state/settings.ts";
import {
  defaultProjectSettings,
  emptyState,
  type ProjectRow,
  type SwarmState,
} from "../../src/state/state.ts";
import { aReceipt } from "../audit/event-factory.ts";
import { liveTask } from "../support/task-refs.ts";
import { join, submit } from "../support/turns.ts";

export class LedgerSwarm {
  readonly state: SwarmState = emptyState();
  readonly events: Event[] = [];
  at = instant(1_000_000_000);
  readonly #succession = new Succession();

  constructor() {
    this.record({ type: "TermStarted", term: term(1), leader: "c1", opened: "o1", timeoutMs: 3_000 });
  }

  /** @throws Error when an invariant does not hold afterwards */
  record(event: Event): void {
    const ranAs = kindClosedBy(this.state, event);
    passTo(this.state, this.at, event);
    this.state.idx = batchIndex(this.state.idx + 1);
    apply(this.state, event, { at: this.at, idx: this.state.idx });
    this.events.push(event);
    const [broken] = [...checkInvariants(this.state), ...this.#succession.check(this.state)];
    if (broken !== undefined) throw new Error(`${broken.number} after ${event.type}: ${broken.sentence}`);
    for (const reaction of reactTo(this.state, event, { at: this.at, ranAs })) this.record(reaction);
  }

  ask(command: Command): Reply {
    const { events, reply } = decide(this.state, command, this.at);
    for (const event of events) this.record(event);
    return reply;
  }

  pass(ms: number): void {
    this.at = instant(this.at + ms);
    while ((this.state.timers.peek()?.dueAt ?? Number.POSITIVE_INFINITY) <= this.at)
      this.ask({ type: "Tick", jitter: 0 });
  }

  /** The join names the newest session of the agent, as after a refusal. */
  join(id: string, overrides: Parameters<typeof join>[1] = {}): void {
    const newest = afterNewest(this.state.agentById.get(agentId(id)));
    this.ask(join(id, { maxConcurrent: 10, kinds: [kind("k"), kind("cheap")], ...newest, ...overrides }));
  }

  submit(id: string, overrides: Partial<TaskSpec> = {}): Reply {
    return this.ask(submit({ id: taskId(id), ...overrides }));
  }

  /** Assigns a queued task if every gate lets it pass. @returns the gate that held it, or `assigned` */
  assign(id: string, agent: string): string {
    const row = liveTask(this.state, id);
    const agentRow = this.state.agentById.get(agentId(agent));
    if (row?.state !== "queued" || agentRow?.online !== true) return "not there";
    if (agentRow.open.size >= agentRow.maxConcurrent) return "full";
    if (rateGate(this.state, agentRow.agentType, this.at)) return "rate-limited";
    const closed = swarmGate(this.state) ?? projectGate(row.projectRow);
    if (closed !== undefined) return closed;
    const verdict = budgetVerdict(this.state, row.projectRow, row.spec, this.at);
    if (verdict.kind === "waits") return verdict.reason;
    const { runsAs, cheaperType } = verdict;
    if (cheaperType !== undefined && agentRow.agentType !== cheaperType) return "wrong-type";
    const number = assignmentNumber(agentRow.lastNumber + 1);
    this.record({
      type: "TaskAssigned",
      project: row.spec.project,
      task: row.spec.id,
      attempt: attemptNumber(row.attempt + 1),
      agent: agentRow.id,
      incarnation: agentRow.incarnation,
      number,
      token: token(`1.${number}`),
      ...(runsAs === undefined ? {} : { runsAs }),
      ...(cheaperType === undefined ? {} : { cheaperType }),
      tokensReserved: verdict.tokens,
      receipt: aReceipt(),
    });
    return "assigned";
  }

  /** The report of a past assignment, late or not. */
  report(assigned: EventOf<"TaskAssigned">, outcome: ReportedOutcome): Reply {
    const { agent, incarnation, project, task, attempt, token: granted } = assigned;
    return this.ask({
      type: "ReportResult",
      agent,
      incarnation,
      project,
      task,
      attempt,
      token: granted,
      outcome,
      jitter: 0,
    });
  }

  project(id = "p"): ProjectRow {
    const row = this.state.projectById.get(projectId(id));
    if (row === undefined) throw new Error(`no project ${id}`);
    return row;
  }

  setProject(settings: Partial<ProjectSettings>, id = "p"): void {
    const project = projectId(id);
    this.record({
      type: "ProjectConfigured",
      project,
      settings: { ...defaultProjectSettings, ...settings },
    });
  }

  setBudget(budget: Partial<BudgetSettings> = {}, id = "p"): void {
    this.setProject({ budget: { tokens: 1_000, windowMs: 60_000, mode: "wait", ...budget } }, id);
  }

  setPolicy(policy: Partial<Policy>): void {
    this.record({ type: "PolicyChanged", policy: { ...this.state.policy, ...policy } });
  }

  setKind(name: string, settings: Partial<KindSettings>): void {
    this.record({ type: "KindConfigured", kind: kind(name), settings: { importance: 1, ...settings } });
  }

  setRate(agentType: string, settings: Partial<RateSettings> = {}): void {
    this.record({
      type: "RateConfigured",
      agentType,
      settings: { window: "per_minute", tokensMax: 1_000, sliding: true, ...settings },
    });
  }

  all<Type extends EventType>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type);
  }

  last<Type extends EventType>(type: Type): EventOf<Type> {
    const found = this.all(type).at(-1);
    if (found === undefined) throw new Error(`no ${type} was recorded`);
    return found;
  }
}
