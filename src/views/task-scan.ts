// One page of the tasks that match a filter, live or ended within the horizon, in order, with their total. A scan
// looks at every task: a million rows in some 100 ms, in slices, so that turns run in between.
//
// The one thing to know: the state goes on between two slices. A page shows each task as of the moment when the scan
// reached it. A task that ends meanwhile may be met twice, and is listed once, or may be missed. The walk of live
// tasks runs over a `Map`, which allows changes. The walk of ended tasks goes from the newest to the oldest
// (state/ended-tasks.ts).

import type { Clock } from "../clock.ts";
import type { Instant } from "../ids.ts";
import { limits } from "../limits.ts";
import type { ListedTask, TaskFilter, TaskSort } from "../protocol/task-list-schemas.ts";
import { EndedView } from "../state/ended-page.ts";
import type { EndedTask } from "../state/ended-task.ts";
import type { SwarmState, TaskRow, TaskState } from "../state/state.ts";
import { rowsWithin } from "./fitting.ts";

/** Position in an order: by rank, then by key, then by sequence, which is unique. */
interface Place {
  readonly rank: number;
  readonly key: number;
  readonly sequence: number;
}

/** Changed in place when a better task replaces the worst in the heap: a scan of a million tasks allocates little,
 *  and seldom makes the collector run. */
interface Match {
  rank: number;
  key: number;
  sequence: number;
  task: TaskRow | EndedTask;
}

export interface TaskQuery {
  readonly filter: TaskFilter;
  readonly project: string | undefined;
  readonly sort: TaskSort;
  readonly limit: number;
  /** The cursor of the page before. */
  readonly after: string | undefined;
  /** Journal time, for ages. */
  readonly now: Instant;
  /** Maximum size of a page's rows as JSON. */
  readonly bytesMax: number;
}

export interface TaskPage {
  readonly tasks: ListedTask[];
  /** All tasks that match the filter. */
  readonly total: number;
  /** Matching tasks behind this page. */
  readonly more: number;
  /** Absent on the last page. */
  readonly next?: string;
}

/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 256;

/** @yields now and then, for the caller to look at the clock, and to continue in a later turn if need be */
export function* scanTasks(state: SwarmState, query: TaskQuery): Generator<undefined, TaskPage> {
  const page = new Page(query);
  let looked = 0;
  for (const row of state.taskById.values()) {
    page.take(row);
    looked += 1;
    if (looked % ROWS_PER_LOOK === 0) yield;
  }
  for (const ended of state.endedById.fromNewest()) {
    page.take(ended);
    looked += 1;
    if (looked % ROWS_PER_LOOK === 0) yield;
  }
  return page.end();
}

/** The best rows so far, as many as fit the page: a heap with the worst row on top. A row costs at most one walk
 *  down the heap, so all steps have similar costs. */
class Page {
  readonly #query: TaskQuery;
  readonly #takes: (task: TaskRow | EndedTask) => boolean;
  readonly #order: Order;
  readonly #after: Place | undefined;
  readonly #heap: Match[] = [];
  readonly #held = new Set<number>();
  #total = 0;
  #behind = 0;

  constructor(query: TaskQuery) {
    this.#query = query;
    this.#takes = taking(query);
    this.#order = orders[query.sort];
    this.#after = query.after === undefined ? undefined : placeIn(query.after, query.sort);
  }

  take(task: TaskRow | EndedTask): void {
    if (!this.#takes(task) || this.#held.has(task.sequence)) return;
    this.#total += 1;
    const rank = this.#order.rank(task);
    const key = this.#order.key(task);
    const sequence = this.#order.sequence(task);
    if (this.#after !== undefined && compare(rank, key, sequence, this.#after) <= 0) return;
    this.#behind += 1;
    const [worst] = this.#heap;
    if (worst === undefined || this.#heap.length < this.#query.limit)
      this.#add({ rank, key, sequence, task: kept(task) });
    else if (compare(rank, key, sequence, worst) < 0) this.#replace(worst, rank, key, sequence, kept(task));
  }

  end(): TaskPage {
    const { now, bytesMax } = this.#query;
    const best = this.#heap.sort(comparePlaces);
    const { rows: tasks } = rowsWithin(
      best.map(({ task }) => listed(task, now)),
      bytesMax,
    );
    const last = best[tasks.length - 1];
    const more = this.#behind - tasks.length;
    return {
      tasks,
      total: this.#total,
      more,
      ...(last === undefined || more === 0 ? {} : { next: cursorOf(last, this.#query.sort) }),
    };
  }

  #add(match: Match): void {
    this.#held.add(match.task.sequence);
    let at = this.#heap.length;
    for (let above = (at - 1) >> 1; at > 0; above = (at - 1) >> 1) {
      const parent = this.#heap[above];
      if (parent === undefined || comparePlaces(parent, match) >= 0) break;
      this.#heap[at] = parent;
      at = above;
    }
    this.#heap[at] = match;
  }

  #replace(match: Match, rank: number, key: number, sequence: number, task: TaskRow | EndedTask): void {
    this.#held.delete(match.task.sequence);
    this.#held.add(task.sequence);
    match.rank = rank;
    match.key = key;
    match.sequence = sequence;
    match.task = task;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const [left, right] = [this.#heap[below], this.#heap[below + 1]];
      if (left === undefined) break;
      if (right !== undefined && comparePlaces(right, left) > 0) below += 1;
      const child = right !== undefined && below === 2 * at + 2 ? right : left;
      if (comparePlaces(child, match) <= 0) break;
      this.#heap[at] = child;
      at = below;
    }
    this.#heap[at] = match;
  }
}

/** The view of an ended task is valid until the next step. */
function kept(task: TaskRow | EndedTask): TaskRow | EndedTask {
  return task instanceof EndedView ? task.copy() : task;
}

function comparePlaces(a: Place, b: Place): number {
  return compare(a.rank, a.key, a.sequence, b);
}

function compare(rank: number, key: number, sequence: number, than: Place): number {
  return rank - than.rank || key - than.key || sequence - than.sequence;
}

/** Start of a task's age: its end, or the beginning of its round while it lives. */
function sinceOf(task: TaskRow | EndedTask): Instant {
  return "endedAt" in task ? task.endedAt : task.roundAt;
}

/** The parts of a task's position, as separate functions: a scan allocates no object per task. */
interface Order {
  rank(task: TaskRow | EndedTask): number;
  key(task: TaskRow | EndedTask): number;
  sequence(task: TaskRow | EndedTask): number;
}

const zero = () => 0;
const sequenceOf = ({ sequence }: TaskRow | EndedTask) => sequence;

const orders: Readonly<Record<TaskSort, Order>> = {
  // Live tasks before ended tasks; among live tasks, running before waiting.
  newest: { rank: rankOf, key: (task) => -sinceOf(task), sequence: (task) => -task.sequence },
  oldest: { rank: zero, key: sinceOf, sequence: sequenceOf },
  submitted: { rank: zero, key: zero, sequence: sequenceOf },
  attempts: { rank: zero, key: (task) => -attemptsOf(task), sequence: sequenceOf },
};

const ranks: Readonly<Partial<Record<TaskState, number>>> = {
  running: 0,
  assigned: 1,
  queued: 2,
  delayed: 2,
};

function rankOf({ state }: TaskRow | EndedTask): number {
  return ranks[state] ?? 3;
}

function attemptsOf(task: TaskRow | EndedTask): number {
  return "endedAt" in task ? task.attempts : task.attempt;
}

function cursorOf({ rank, key, sequence }: Place, sort: TaskSort): string {
  return [sort, rank, key, sequence].join(".");
}

/** Undefined for a cursor that no page of this order gave. */
export function placeIn(cursor: string, sort: TaskSort): Place | undefined {
  const [of, ...numbers] = cursor.split(".");
  const [rank, key, sequence] = numbers.map((text) =>
    /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN,
  );
  if (of !== sort || numbers.length !== 3) return undefined;
  if (rank === undefined || key === undefined || sequence === undefined) return undefined;
  return [rank, key, sequence].every(Number.isSafeInteger) ? { rank, key, sequence } : undefined;
}

/** The filter as one function: absent criteria cost nothing. */
function taking({ filter, project, now }: TaskQuery): (task: TaskRow | EndedTask) => boolean {
  const states = setOf(filter.states);
  const kinds = setOf(filter.kinds);
  const users = setOf(filter.users);
  const agents = setOf(filter.agents);
  const attributes = Object.entries(filter.attributes ?? {});
  const words = attributes.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  const before = filter.olderThanMs === undefined ? undefined : now - filter.olderThanMs;
  return (task) => {
    if (states !== undefined && !states.has(task.state)) return false;
    if (before !== undefined && sinceOf(task) > before) return false;
    const of = "endedAt" in task ? task : task.spec;
    if (project !== undefined && of.project !== project) return false;
    if (kinds !== undefined && !kinds.has(of.kind)) return false;
    if (users !== undefined && !users.has(of.user)) return false;
    if (agents !== undefined && !agents.has(agentOf(task) ?? "")) return false;
    if (attributes.length === 0) return true;
    if (!("endedAt" in task))
      return attributes.every(([name, value]) => task.spec.attributes?.[name] === value);
    // Within a JSON text of names and values, an unescaped quote begins or ends one of them.
    return words.every((word) => task.attributes?.includes(word) === true);
  };
}

function setOf(names: readonly string[] | undefined): ReadonlySet<string> | undefined {
  return names === undefined ? undefined : new Set(names);
}

/** Agent of the last attempt. */
function agentOf(task: TaskRow | EndedTask): string | undefined {
  return "endedAt" in task ? task.agent : task.lastAgent;
}

function listed(task: TaskRow | EndedTask, now: Instant): ListedTask {
  const { id, project, user, kind } = "endedAt" in task ? task : task.spec;
  const agent = agentOf(task);
  const since = sinceOf(task);
  return {
    task: id,
    project,
    user,
    kind,
    state: task.state,
    round: task.round,
    attempts: attemptsOf(task),
    ...(agent === undefined ? {} : { agent }),
    since,
    ageMs: Math.max(0, now - since),
    submittedIdx: task.submittedIdx,
    ...("endedAt" in task ? { endedIdx: task.endedIdx } : {}),
    ...attributesIn(task),
  };
}

export function attributesIn(task: TaskRow | EndedTask): Pick<ListedTask, "attributes"> {
  if (!("endedAt" in task))
    return task.spec.attributes === undefined ? {} : { attributes: { ...task.spec.attributes } };
  return task.attributes === undefined ? {} : { attributes: JSON.parse(task.attributes) };
}

/** Runs scans one at a time, in slices. The loop is free between two slices for as long as the slice took. Refuses
 *  a scan when too many wait. */
export class TaskScans {
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns undefined when too many scans wait */
  run(state: () => SwarmState, query: TaskQuery): Promise<TaskPage> | undefined {
    if (this.#waiting >= limits.taskScansMax) return undefined;
    this.#waiting += 1;
    const page = this.#last.then(() => this.#scan(state(), query));
    this.#last = page.then(
      () => this.#ended(),
      () => this.#ended(),
    );
    return page;
  }

  #ended(): void {
    this.#waiting -= 1;
  }

  async #scan(state: SwarmState, query: TaskQuery): Promise<TaskPage> {
    const scan = scanTasks(state, query);
    for (;;) {
      const startedMs = this.#clock.monotonicMs();
      while (this.#clock.monotonicMs() - startedMs < limits.taskScanSliceMs) {
        const step = scan.next();
        if (step.done) return step.value;
      }
      await new Promise<void>((resolve) => void this.#clock.after(limits.taskScanSliceMs, resolve));
    }
  }
}
