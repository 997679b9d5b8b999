// Runs the scans of tasks that are asked for, one at a time and in slices: a scan of a million tasks takes longer than
// a turn may. Between two slices the loop is free for as long as the slice took. More than may wait are refused.

import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";
import type { SwarmState } from "../../state/state.ts";
import { scanTasks, type TaskPage, type TaskQuery } from "./task-scan.ts";

export class TaskScans {
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @returns undefined where as many wait as may */
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
