// Reads a swarm's state from the lines of a snapshot (docs/base.md). Lines are not trusted: any deviation from the
// output of `encodeState` is refused with the line's number, and no state results. Derived values (counters, heaps,
// lists by kind) are built again.

import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { SwarmState } from "../../state/state.ts";
import { AffinityReader } from "./affinities.ts";
import { AgentReader } from "./agents.ts";
import { type Fields, refuse } from "./checked-fields.ts";
import { readGrant } from "./grants.ts";
import { HoldReader } from "./holds.ts";
import { KindReader } from "./kinds.ts";
import { groupByName, openedLine, parsedLines, type RowName } from "./line.ts";
import { ProjectReader } from "./projects.ts";
import { QueueReader } from "./queues.ts";
import { RateReader } from "./rates.ts";
import { SlotLeaseReader } from "./slot-leases.ts";
import { readHeader } from "./swarm.ts";
import { TaskReader } from "./tasks.ts";
import { TimerReader } from "./timers.ts";

/** @throws JournalDamagedError that names the damaged line */
export function decodeState(lines: Iterable<string>): SwarmState {
  const decoder = new StateDecoder();
  let some: string[] = [];
  for (const line of lines) {
    some.push(line);
    if (some.length < limits.baseStepRows) continue;
    finished(decoder.take(some));
    some = [];
  }
  finished(decoder.take(some));
  return finished(decoder.end());
}

/** For lines that arrive in portions. */
export class StateDecoder {
  #number = 0;
  #group = 0;
  #parts: Parts | undefined;
  #isWhole = false;

  /**
   * Reads the next lines, with a step after each line: other work may run between two steps.
   * @throws JournalDamagedError; the decoder is useless afterwards
   */
  *take(lines: readonly string[]): Generator<undefined, void> {
    const rows = parsedLines(lines);
    for (const [at, line] of lines.entries()) {
      this.#number += 1;
      try {
        this.#read(line, rows?.[at]);
      } catch (error) {
        throw this.#named(error);
      }
      yield;
    }
  }

  /**
   * Builds the derived values, in steps of about a millisecond at most: other work may run between two steps.
   * @throws JournalDamagedError when lines are missing, or rows contradict each other
   */
  *end(): Generator<undefined, SwarmState> {
    try {
      if (this.#parts === undefined || !this.#isWhole) refuse("is the last one there is, more should follow");
      yield* this.#parts.complete();
      return this.#parts.state;
    } catch (error) {
      throw this.#named(error);
    }
  }

  #read(line: string, row: unknown): void {
    if (this.#isWhole) refuse("follows the last one");
    const { name, fields } = openedLine(line, this.#number, row);
    this.#enterGroup(name);
    if (name === "snapshot") this.#parts = new Parts(readHeader(fields));
    else (this.#parts ?? refuse("stands before the header")).read(name, fields);
    fields.end();
    this.#isWhole = name === "end";
  }

  /** Rows refer to rows above them, so their order matters. */
  #enterGroup(name: RowName): void {
    const group = groupByName.get(name) ?? 0;
    const isSecondHeader = name === "snapshot" && this.#number > 1;
    if (group < this.#group || isSecondHeader) refuse(`is a row that stands too late: ${name}`);
    this.#group = group;
  }

  #named(error: unknown): unknown {
    if (!(error instanceof JournalDamagedError)) return error;
    const { message, field } = error;
    const options = field === undefined ? { cause: error } : { cause: error, field };
    return new JournalDamagedError(`snapshot line ${this.#number}: ${message}`, options);
  }
}

/** Takes all steps at once. */
export function finished<Result>(steps: Generator<undefined, Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

class Parts {
  readonly state: SwarmState;
  readonly #kinds: KindReader;
  readonly #rates: RateReader;
  readonly #projects: ProjectReader;
  readonly #agents: AgentReader;
  readonly #slotLeases: SlotLeaseReader;
  readonly #queues: QueueReader;
  readonly #tasks: TaskReader;
  readonly #readers: Readonly<Record<Exclude<RowName, "snapshot">, (fields: Fields) => void>>;

  constructor(state: SwarmState) {
    this.state = state;
    const timers = new TimerReader(state);
    const kinds = new KindReader(state);
    const rates = new RateReader(state);
    const projects = new ProjectReader(state);
    const agents = new AgentReader(state, timers);
    const slotLeases = new SlotLeaseReader(state, timers);
    const holds = new HoldReader(state, timers);
    const affinities = new AffinityReader(state);
    const queues = new QueueReader(state);
    const tasks = new TaskReader(state, timers, agents, queues);
    this.#kinds = kinds;
    this.#rates = rates;
    this.#projects = projects;
    this.#agents = agents;
    this.#slotLeases = slotLeases;
    this.#queues = queues;
    this.#tasks = tasks;
    this.#readers = {
      kind: (fields) => kinds.readKind(fields),
      record: (fields) => kinds.readRecord(fields),
      resource: (fields) => slotLeases.readResource(fields),
      rate: (fields) => rates.readRate(fields),
      "removed-rate": (fields) => rates.readRemoved(fields),
      grant: (fields) => readGrant(state, fields),
      project: (fields) => projects.readProject(fields),
      user: (fields) => projects.readUser(fields),
      "reserved-type": (fields) => rates.readReservedType(fields),
      agent: (fields) => agents.readAgent(fields),
      "agent-record": (fields) => agents.readRecord(fields),
      suspension: (fields) => agents.readSuspension(fields),
      attempt: (fields) => agents.readAttempt(fields),
      "slot-lease": (fields) => slotLeases.readSlotLease(fields),
      "ended-slot-lease": (fields) => slotLeases.readEnded(fields),
      "uncharged-slot-lease": (fields) => slotLeases.readUncharged(fields),
      hold: (fields) => holds.readHold(fields),
      refusal: (fields) => holds.readRefusal(fields),
      affinity: (fields) => affinities.readAffinity(fields),
      queue: (fields) => queues.readQueue(fields),
      "queue-project": (fields) => queues.readProject(fields),
      "queue-user": (fields) => queues.readUser(fields),
      partition: (fields) => queues.readPartition(fields),
      task: (fields) => tasks.readTask(fields),
      "ended-task": (fields) => tasks.readEnded(fields),
      uncharged: (fields) => tasks.readUncharged(fields),
      end: () => undefined,
    };
  }

  read(name: Exclude<RowName, "snapshot">, fields: Fields): void {
    this.#readers[name](fields);
  }

  /** Builds the derived values, and checks for missing rows. */
  *complete(): Generator<undefined, void> {
    this.#agents.checkTaken();
    this.#rates.checkReserved();
    this.#tasks.checkCounts();
    this.#slotLeases.list();
    yield* this.#queues.build();
    yield* this.#kinds.listOnline();
    this.#kinds.listIdle();
    yield* this.#projects.listIdle();
  }
}
