// A swarm's core run turn by turn without a coordinator around it: commands in, batches out. Every turn is
// checked against the invariants; `replayed` folds the batches anew.

import { hash } from "node:crypto";
import { apply } from "../../src/core/apply.ts";
import type { Command, Reply } from "../../src/core/command.ts";
import type { Effect } from "../../src/core/effect.ts";
import type { Violation } from "../../src/core/invariant.ts";
import { checkAfterTurn, checkInvariants } from "../../src/core/invariants.ts";
import { afterNewest } from "../../src/core/recorded-inputs.ts";
import { Roll } from "../../src/core/roll.ts";
import { Turn } from "../../src/core/step.ts";
import { Succession } from "../../src/core/succession.ts";
import {
  agentId,
  assignmentNumber,
  batchIndex,
  type Instant,
  incarnation,
  instant,
  kind,
  projectId,
  taskId,
  term,
  token,
  userId,
} from "../../src/ids.ts";
import type { SegmentRecord } from "../../src/journal/journal.ts";
import { encodeBatch, hashOf } from "../../src/journal/records.ts";
import { emptyTail, type LiveSegment, Replay } from "../../src/journal/replay.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import { slotReactions } from "../../src/scheduling/slot-planner.ts";
import type { EndedTask } from "../../src/state/ended-task.ts";
import type { Event, EventOf, EventType, TaskSpec } from "../../src/state/event.ts";
import { passTo } from "../../src/state/journal-time.ts";
import { type AgentRow, emptyState, type SwarmState, type TaskRow } from "../../src/state/state.ts";
import { endedTask, liveTask } from "./task-refs.ts";

type CommandOf<Type extends Command["type"]> = Extract<Command, { type: Type }>;

export function aTask(overrides: Partial<TaskSpec> = {}): TaskSpec {
  return {
    id: taskId("t1"),
    kind: kind("k"),
    project: projectId("p"),
    user: userId("u"),
    weight: 1,
    priority: 100,
    payload: "",
    maxAttempts: 3,
    timeoutMs: 60_000,
    ...overrides,
  };
}

export function submit(overrides: Partial<TaskSpec> = {}): CommandOf<"SubmitTask"> {
  const task = aTask(overrides);
  return { type: "SubmitTask", task, hash: hash("sha256", JSON.stringify(task)) };
}

export function join(id: string, overrides: Partial<CommandOf<"JoinAgent">> = {}): CommandOf<"JoinAgent"> {
  return {
    type: "JoinAgent",
    agent: agentId(id),
    incarnation: incarnation(`${id}-1`),
    kinds: [kind("k")],
    maxConcurrent: 1,
    held: [],
    seen: assignmentNumber(0),
    ...overrides,
  };
}

const session = "a-session";
const journal = "j";

/** The segment of a history's batches: each follows the segment's `Opened` at its index. */
export const segmentOfTurns: LiveSegment = {
  number: 1,
  opened: {
    kind: "opened",
    segment: 1,
    session,
    journal,
    term: term(1),
    leader: "c1",
    tail: { ...emptyTail, journal },
    previous: undefined,
    base: undefined,
    recent: [],
  },
  openedHash: "o1",
  position: 0,
};

/** The inputs of a history, with their times. */
type Input =
  | { readonly at: Instant; readonly commands: readonly Command[] }
  | { readonly at: Instant; readonly event: Event };

/** State at which a history continues an earlier history. */
export interface Beginning {
  readonly state: SwarmState;
  readonly records: readonly SegmentRecord[];
  readonly at: Instant;
}

export class Turns {
  readonly state: SwarmState;
  readonly records: SegmentRecord[] = [];
  readonly events: Event[] = [];
  readonly effects: Effect[] = [];
  readonly inputs: Input[] = [];
  at = instant(1_000_000);
  #prev = "";
  /** Kept from turn to turn, as a leader does. */
  readonly #planner: Planner;
  readonly #succession = new Succession();
  /** Kept from turn to turn: a new roll would read all ended tasks at each turn. */
  readonly #roll = new Roll();

  /** @param from absent for a new history */
  constructor(from?: Beginning) {
    this.state = from?.state ?? emptyState();
    this.#planner = new Planner(this.state);
    if (from === undefined) {
      this.turn({ type: "StartTerm", term: term(1), leader: "c1", opened: "o1", timeoutMs: 3_000 });
      return;
    }
    this.records.push(...from.records);
    this.at = from.at;
    const last = from.records.at(-1);
    if (last !== undefined) this.#prev = hashOf(last.bytes);
    // The state at the beginning comes from the earlier history.
    this.#succession.check(this.state);
  }

  /** Repeats an input of another history. */
  repeat(input: Input): void {
    this.at = input.at;
    if ("event" in input) this.configure(input.event);
    else this.turn(...input.commands);
  }

  /** One turn of these commands, of due timers and of possible assignments. @returns the replies
   *  @throws Error if an invariant is broken afterwards */
  turn(...commands: readonly Command[]): Reply[] {
    this.inputs.push({ at: this.at, commands });
    return this.#turn(commands);
  }

  #turn(commands: readonly Command[]): Reply[] {
    const turn = new Turn(this.state, this.at, batchIndex(this.records.length + 1), this.#planner);
    const replies = commands.map((command) => turn.take(this.#asAsked(command)));
    const isDecided = replies.every(({ kind }) => kind !== "again");
    const isComplete = [turn.takeDue(() => 0), turn.plan(), isDecided].every((done) => done);
    this.#append(turn);
    if (isComplete) this.#check(checkAfterTurn(this.state, this.#roll));
    this.#check(this.#succession.check(this.state));
    return replies;
  }

  /** A join without `after` names the newest session, as after a refusal. */
  #asAsked(command: Command): Command {
    if (command.type !== "JoinAgent" || "after" in command) return command;
    return { ...command, ...afterNewest(this.state.agentById.get(command.agent)) };
  }

  /** A setting, and its effects on slots. */
  configure(event: Event): void {
    this.inputs.push({ at: this.at, event });
    const context = { at: this.at, idx: batchIndex(this.records.length + 1) };
    const happened: Event[] = [];
    const happen = (each: Event) => {
      passTo(this.state, this.at, each);
      apply(this.state, each, context);
      happened.push(each);
      if ("agent" in each) this.#planner.touch(each.agent);
      for (const reaction of slotReactions(this.state, each, this.at)) happen(reaction);
    };
    happen(event);
    this.#record(happened.map((each) => JSON.stringify(each)));
    this.events.push(...happened);
    this.#turn([]);
  }

  /** Journal time passes; a turn may follow. */
  pass(ms: number): void {
    this.at = instant(this.at + ms);
  }

  /** Time passes until the next timer, and a turn follows. */
  passToDue(): void {
    const next = this.state.timers.peek();
    if (next === undefined) throw new Error("nothing is due");
    this.at = next.dueAt;
    this.turn();
  }

  task(id: string): TaskRow {
    const row = liveTask(this.state, id);
    if (row === undefined) throw new Error(`${id} is not live: ${endedTask(this.state, id)?.state}`);
    return row;
  }

  ended(id: string): EndedTask {
    const ended = endedTask(this.state, id);
    if (ended === undefined) throw new Error(`${id} has not ended`);
    return ended;
  }

  agent(id: string): AgentRow {
    const row = this.state.agentById.get(agentId(id));
    if (row === undefined) throw new Error(`no agent ${id}`);
    return row;
  }

  /** The newest spec of a task, from the events. */
  specOf(id: string, project?: string): TaskSpec | undefined {
    for (const event of this.events.toReversed())
      if (
        (event.type === "TaskSubmitted" || event.type === "TaskRetried") &&
        event.task.id === id &&
        (project === undefined || event.task.project === project)
      )
        return event.task;
    return undefined;
  }

  /** The command that opens the next round of an ended task, unless overridden. */
  retry(id: string, overrides: Partial<CommandOf<"RetryTask">> = {}): CommandOf<"RetryTask"> {
    const { deadline: _, notBefore: __, ...spec } = this.specOf(id) ?? aTask({ id: taskId(id) });
    const round = (endedTask(this.state, id)?.round ?? 1) + 1;
    return { type: "RetryTask", project: spec.project, task: taskId(id), round, spec, ...overrides };
  }

  /** The report of a task's open attempt by its agent, unless overridden. */
  report(
    id: string,
    outcome: CommandOf<"ReportResult">["outcome"],
    overrides: Partial<CommandOf<"ReportResult">> = {},
  ): CommandOf<"ReportResult"> {
    const { open } = this.task(id);
    if (open === undefined) throw new Error(`${id} has no open attempt`);
    const { agent, incarnation: session, project, task, attempt, token: granted } = open;
    return {
      type: "ReportResult",
      agent,
      incarnation: session,
      project,
      task,
      attempt,
      token: token(granted),
      outcome,
      jitter: 0,
      ...overrides,
    };
  }

  /** Events of one type so far, oldest first. */
  all<Type extends EventType>(type: Type): EventOf<Type>[] {
    return this.events.filter((event): event is EventOf<Type> => event.type === type);
  }

  last<Type extends EventType>(type: Type): EventOf<Type> {
    const found = this.all(type).at(-1);
    if (found === undefined) throw new Error(`no ${type} was recorded`);
    return found;
  }

  /** The batches folded anew. @throws Error if an invariant is broken, for a reader that remembers no turn */
  replayed(): Replay {
    this.#check(checkInvariants(this.state));
    const replay = new Replay();
    replay.enter(segmentOfTurns, 0);
    for (const record of this.records) {
      const { kind: verdict } = replay.take(record);
      if (verdict !== "applied") throw new Error(`our own batch ${record.position} is ${verdict}`);
    }
    return replay;
  }

  #append(turn: Turn): void {
    if (turn.recorded.length === 0) return;
    this.#record(turn.eventsJson);
    for (const { event } of turn.recorded) this.events.push(event);
    this.effects.push(...turn.effects);
  }

  #record(events: readonly string[] | Uint8Array): void {
    const position = this.records.length + 1;
    const header = {
      journal,
      session,
      term: term(1),
      idx: batchIndex(position),
      prev: this.#prev,
      at: this.at,
    };
    this.state.idx = header.idx;
    const bytes = encodeBatch(header, events);
    this.#prev = hashOf(bytes);
    this.records.push({ position, bytes });
  }

  #check(violations: readonly Violation[]): void {
    if (violations.length === 0) return;
    const lines = violations.map(({ number, name, sentence }) => `  ${number} ${name}: ${sentence}`);
    throw new Error(`after batch ${this.records.length}:\n${lines.join("\n")}`);
  }
}
