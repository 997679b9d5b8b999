// Agents in a snapshot, each followed by learned records, suspensions and open attempts. Reserved tokens are counted
// again from the attempts. A task finds its open attempt by the task's id.

import type { AgentId, Incarnation, Kind, ResourceName, TaskRef } from "../../ids.ts";
import { taskKey } from "../../ids.ts";
import { unchargedKey } from "../../state/budget-rows.ts";
import type { AgentRow, OpenAttempt, ProjectRow, SwarmState, TokenLedger } from "../../state/state.ts";
import { addNew, allOf, type Fields, known, refuse } from "./checked-fields.ts";
import type { Row } from "./line.ts";
import type { TimerReader } from "./timers.ts";
import { readRecord, readTimer, timerFields } from "./values.ts";

export function* agentRows(state: SwarmState): Generator<Row> {
  for (const agent of state.agentById.values()) {
    const { kinds, kindRows: _, open, recordByKind, suspensionByKind, forgetTimer, ...fields } = agent;
    yield ["agent", { ...fields, kinds: [...kinds], forgetTimer: timerFields(forgetTimer) }];
    for (const [kind, record] of recordByKind) yield ["agent-record", { kind, record }];
    for (const [kind, suspension] of suspensionByKind) yield ["suspension", { kind, ...suspension }];
    for (const attempt of open.values()) yield ["attempt", attemptFields(attempt)];
  }
}

/** Without agent and incarnation: both stand in the row above. */
function attemptFields({ agent: _, incarnation: __, timeoutTimer, clears, ...fields }: OpenAttempt): object {
  const cleared = clears.length === 0 ? {} : { clears }; // left out when empty
  return { ...fields, ...cleared, timeoutTimer: timerFields(timeoutTimer) };
}

const attemptStates = allOf<OpenAttempt["state"]>({ assigned: true, running: true, revoked: true });

export class AgentReader {
  readonly #state: SwarmState;
  readonly #timers: TimerReader;
  #current: AgentRow | undefined;
  /** The newest number among the current agent's attempts. */
  #newestNumber = 0;
  /** Assigned or running attempts, until their tasks are read. */
  readonly #openByTask = new Map<string, OpenAttempt>();
  readonly #openKeys = new Set<string>();

  constructor(state: SwarmState, timers: TimerReader) {
    this.#state = state;
    this.#timers = timers;
  }

  readAgent(fields: Fields): void {
    const { joins, assignments, kindByName } = this.#state;
    const kinds = fields.names<Kind>("kinds");
    const online = fields.flag("online");
    const row: AgentRow = {
      id: fields.text<AgentId>("id"),
      group: fields.text("group"),
      incarnation: fields.text("incarnation"),
      online,
      draining: fields.flag("draining"),
      unresponsive: fields.flag("unresponsive"),
      kinds: new Set(kinds),
      kindRows: online ? kinds.map((kind) => known(kindByName, kind, "kind")) : [],
      joinedOrder: fields.whole("joinedOrder", { min: 1, max: joins }),
      role: fields.optionalText("role"),
      agentType: fields.optionalText("agentType"),
      labels: fields.texts("labels"),
      maxConcurrent: fields.whole("maxConcurrent"),
      prefetch: fields.whole("prefetch"),
      open: new Map(),
      lastNumber: fields.whole("lastNumber"),
      confirmedNumber: fields.whole("confirmedNumber"),
      lastAssignedOrder: fields.whole("lastAssignedOrder", { max: assignments }),
      completed: fields.whole("completed"),
      joinedAt: fields.whole("joinedAt"),
      leftAt: fields.optionalWhole("leftAt"),
      fencedIncarnations: fields.names<Incarnation>("fencedIncarnations"),
      fencedAt: fields.optionalWhole("fencedAt"),
      recordByKind: new Map(),
      suspensionByKind: new Map(),
      forgetTimer: undefined,
    };
    if (row.confirmedNumber > row.lastNumber)
      refuse(`agent ${row.id} confirmed assignments that were never sent`);
    if ((row.fencedIncarnations.length === 0) !== (row.fencedAt === undefined))
      refuse(`agent ${row.id} has fenced sessions without an instant, or the reverse`);
    const forgetting = fields.optionalWithin("forgetTimer", readTimer);
    if ((forgetting === undefined) !== row.online) refuse(`agent ${row.id} is forgotten while it is online`);
    if (forgetting !== undefined)
      row.forgetTimer = this.#timers.start(forgetting, { kind: "forget", agent: row.id });
    addNew(this.#state.agentById, row.id, row, "agent");
    this.#current = row;
    this.#newestNumber = 0;
  }

  readRecord(fields: Fields): void {
    const { id, recordByKind, suspensionByKind, open } = this.#agent();
    if (suspensionByKind.size + open.size > 0) refuse(`a record of ${id} stands too late`);
    addNew(recordByKind, fields.text("kind"), fields.within("record", readRecord), `record of ${id} for`);
  }

  readSuspension(fields: Fields): void {
    const { id, suspensionByKind, open } = this.#agent();
    if (open.size > 0) refuse(`a suspension of ${id} stands too late`);
    const suspension = {
      until: fields.whole<OpenAttempt["assignedAt"]>("until"),
      step: fields.whole("step"),
    };
    addNew(suspensionByKind, fields.text("kind"), suspension, `suspension of ${id} for`);
  }

  readAttempt(fields: Fields): void {
    const agent = this.#agent();
    if (!agent.online) refuse(`agent ${agent.id} is offline and has an open attempt`);
    fields.optionalTrue("hasHeldSlots");
    const attempt: OpenAttempt = {
      task: fields.text("task"),
      project: fields.text("project"),
      kind: fields.text("kind"),
      weight: fields.amount("weight"),
      tokensReserved: fields.whole("tokensReserved"),
      tokensSaid: fields.optionalWhole("tokensSaid"),
      agentType: fields.optionalText("agentType"),
      charged: fields.whole("charged"),
      attempt: fields.whole("attempt", { min: 1 }),
      agent: agent.id,
      incarnation: agent.incarnation,
      number: fields.whole("number", { min: 1, max: agent.lastNumber }),
      token: fields.text("token"),
      assignedAt: fields.whole("assignedAt"),
      assignedTick: fields.whole("assignedTick"),
      state: fields.oneOf("state", attemptStates),
      clears: fields.optionalNames<ResourceName>("clears"),
      hasHeldSlots: fields.has("hasHeldSlots") || undefined,
      timeoutTimer: undefined,
    };
    this.#keep(agent, attempt);
    this.#count(attempt);
    const timeout = fields.optionalWithin("timeoutTimer", readTimer);
    if ((timeout === undefined) !== (attempt.state === "revoked"))
      refuse(`attempt ${attempt.task}#${attempt.attempt} is ${attempt.state} with a wrong timer`);
    if (timeout !== undefined)
      attempt.timeoutTimer = this.#timers.start(timeout, { kind: "timeout", attempt });
  }

  /** The open attempt of an assigned or running task. */
  take(ref: TaskRef): OpenAttempt {
    const task = taskKey(ref);
    const attempt = known(this.#openByTask, task, "open attempt of task");
    this.#openByTask.delete(task);
    return attempt;
  }

  /** Whether an attempt is open; by `unchargedKey`. */
  isOpen(key: string): boolean {
    return this.#openKeys.has(key);
  }

  /** After all tasks were read. */
  checkTaken(): void {
    for (const task of this.#openByTask.keys()) refuse(`task ${task} has an open attempt and is not live`);
  }

  #agent(): AgentRow {
    return this.#current ?? refuse("the row stands below no agent");
  }

  #keep(agent: AgentRow, attempt: OpenAttempt): void {
    const { number, state } = attempt;
    if (number <= this.#newestNumber)
      refuse(`the attempts of ${agent.id} are out of order at number ${number}`);
    const isConfirmed = number <= agent.confirmedNumber;
    if (state === (isConfirmed ? "assigned" : "running"))
      refuse(`number ${number} of ${agent.id} is ${state}, confirmed: ${isConfirmed}`);
    agent.open.set(number, attempt);
    this.#openKeys.add(unchargedKey(attempt));
    this.#newestNumber = number;
    if (state !== "revoked") addNew(this.#openByTask, taskKey(attempt), attempt, "open attempt of task");
  }

  #count({ project, agentType, tokensReserved }: OpenAttempt): void {
    const projectRow: ProjectRow = known(this.#state.projectById, project, "project");
    for (const owner of [this.#state, projectRow] as { openAttempts: number; ledger: TokenLedger }[]) {
      owner.openAttempts += 1;
      owner.ledger.reserved += tokensReserved;
    }
    if (agentType === undefined || tokensReserved === 0) return;
    const { reservedByType } = this.#state;
    reservedByType.set(
      agentType,
      known(reservedByType, agentType, "type with reserved tokens") + tokensReserved,
    );
  }
}
