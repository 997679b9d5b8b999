// The rows of the list of tasks, page by page. A list of one page is read again while visible. The rows of a longer
// list keep their places until the reader asks for the present rows.

import { type ReadonlySignal, signal } from "@preact/signals";
import type { TaskPage, TaskRow } from "../wire.ts";
import { type Api, messageOf } from "./api.ts";
import { LIST_MS, TASKS_MAX } from "./bounds.ts";
import type { Filters } from "./router.ts";

export interface TaskListState {
  readonly rows: readonly TaskRow[];
  readonly total?: number;
  readonly next?: string;
  readonly command?: string;
  readonly at: number;
  /** The swarm has changed since the rows were read. */
  readonly isOld: boolean;
  readonly isLoading: boolean;
  readonly error?: string;
}

const FIRST = 60;
const PAGE = 200;
const nothing: TaskListState = { rows: [], at: 0, isOld: false, isLoading: true };

export class TaskList {
  readonly #api: Api;
  readonly #query: Filters;
  readonly #state = signal<TaskListState>(nothing);
  readonly #abort = new AbortController();
  #isAsking = false;
  #askedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Api, query: Filters) {
    this.#api = api;
    this.#query = query;
    void this.reload();
  }

  get state(): ReadonlySignal<TaskListState> {
    return this.#state;
  }

  /** The swarm changed. The first page is read anew, at most every two seconds; a longer list only says so. */
  changed(): void {
    if (this.#state.peek().isLoading) return;
    if (this.#state.peek().rows.length > FIRST) {
      if (!this.#state.peek().isOld) this.#state.value = { ...this.#state.peek(), isOld: true };
      return;
    }
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        void this.reload();
      },
      Math.max(0, this.#askedAt + LIST_MS - Date.now()),
    );
  }

  async reload(): Promise<void> {
    await this.#ask({ limit: String(FIRST) }, (page) => page.rows);
  }

  /** The next page, after the present rows. */
  async more(): Promise<void> {
    const { next, rows, isLoading } = this.#state.peek();
    if (next === undefined || isLoading || rows.length >= TASKS_MAX) return;
    await this.#ask({ limit: String(PAGE), after: next }, (page) => joined(rows, page.rows));
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  async #ask(more: Filters, rowsOf: (page: TaskPage) => readonly TaskRow[]): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#askedAt = Date.now();
    if (more["after"] !== undefined) this.#state.value = { ...this.#state.peek(), isLoading: true };
    try {
      const page = await this.#api.tasks({ ...this.#query, ...more }, this.#abort.signal);
      this.#state.value = {
        rows: rowsOf(page),
        at: Date.now(),
        isOld: false,
        isLoading: false,
        ...(page.total === undefined ? {} : { total: page.total }),
        ...(page.next === undefined ? {} : { next: page.next }),
        ...(page.command === undefined ? {} : { command: page.command }),
      };
    } catch (error) {
      if (!this.#abort.signal.aborted)
        this.#state.value = { ...this.#state.peek(), isLoading: false, error: messageOf(error) };
    } finally {
      this.#isAsking = false;
    }
    // A search reads a part of the tasks at a time, and may find nothing in a part.
    const { next, rows } = this.#state.peek();
    if (next !== undefined && rows.length < FIRST && !this.#abort.signal.aborted) await this.more();
  }
}

/** A task is listed once, although tasks move between pages. */
function joined(rows: readonly TaskRow[], more: readonly TaskRow[]): readonly TaskRow[] {
  const known = new Set(rows.map(keyOf));
  return [...rows, ...more.filter((row) => !known.has(keyOf(row)))];
}

export function keyOf({ project, task }: { readonly project: string; readonly task: string }): string {
  return `${project}/${task}`;
}
