// The scan of tasks by itself: the work of one step, counted, and the contents of a page.

import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { instant, projectId, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { taskSorts } from "../../src/protocol/task-list-schemas.ts";
import { AgedMap } from "../../src/state/aged-map.ts";
import type { EndedTask } from "../../src/state/ended-task.ts";
import type { SwarmState } from "../../src/state/state.ts";
import { scanTasks, type TaskQuery, TaskScans } from "../../src/views/task-scan.ts";
import { submit, Turns } from "../support/turns.ts";

/** Ended tasks that count reads of their position in the order. */
function endedTasks(count: number, reads: { n: number }): SwarmState {
  const endedById = new AgedMap<string, EndedTask>();
  for (let n = 0; n < count; n += 1) {
    const row = {
      ...{ id: `t${n}`, project: "default", user: "ann", kind: "count", hash: "h", state: "failed" },
      ...{ round: 1, attempts: n % 5, submittedIdx: n, roundIdx: n, endedIdx: n, endedAt: 1_000 + n },
      get sequence() {
        reads.n += 1;
        return n + 1;
      },
    };
    endedById.set(row.id, row as unknown as EndedTask);
  }
  return { taskById: new Map(), endedById } as unknown as SwarmState;
}

function aQuery(more: Partial<TaskQuery> = {}): TaskQuery {
  return {
    filter: {},
    project: undefined,
    sort: "newest",
    limit: limits.tasksPageMax,
    after: undefined,
    now: instant(100_000),
    bytesMax: 1_000_000,
    ...more,
  };
}

describe("a scan of tasks", () => {
  it.each(taskSorts)("does little in each step, in the order %s", (sort) => {
    const reads = { n: 0 };
    const scan = scanTasks(endedTasks(8_000, reads), aQuery({ sort }));
    let most = 0;
    let steps = 0;
    for (;;) {
      const before = reads.n;
      const step = scan.next();
      most = Math.max(most, reads.n - before);
      steps += 1;
      if (!step.done) continue;
      expect(step.value).toMatchObject({ total: 8_000, more: 8_000 - limits.tasksPageMax });
      break;
    }
    expect(steps).toBeGreaterThanOrEqual(Math.floor(8_000 / 256));
    expect(most, "reads per step of at most 256 tasks").toBeLessThanOrEqual(4 * 256);
  });

  it.each(taskSorts)("goes through all tasks once, page by page, in the order %s", (sort) => {
    const state = endedTasks(1_000, { n: 0 });
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const scan = scanTasks(state, aQuery({ sort, limit: 70, after }));
      let step = scan.next();
      while (!step.done) step = scan.next();
      seen.push(...step.value.tasks.map(({ task }) => task));
      after = step.value.next;
    } while (after !== undefined);
    const all = Array.from({ length: 1_000 }, (_, n) => n);
    const best = {
      newest: all.toReversed(),
      oldest: all,
      submitted: all,
      attempts: all.toSorted((a, b) => (b % 5) - (a % 5) || a - b),
    }[sort];
    expect(seen).toEqual(best.map((n) => `t${n}`));
  });
});

it("finds live and ended tasks by equal attributes, whatever the values hold", () => {
  const turns = new Turns();
  const attributes = [
    { ticket: "OPS-1", team: "a" },
    { ticket: "OPS-1" },
    { ticket: "OPS-10" },
    { note: '"ticket":"OPS-1"', other: "ticket" },
    { team: "a\\", ticket: 'say "hi"\n' },
  ];
  const ids = attributes.flatMap((_, n) => [`live${n}`, `ended${n}`]);
  turns.turn(
    ...ids.map((id, at) => {
      const own = attributes[Math.floor(at / 2)];
      return submit({ id: taskId(id), ...(own === undefined ? {} : { attributes: own }) });
    }),
    submit({ id: taskId("without") }),
  );
  turns.turn(
    ...ids
      .filter((id) => id.startsWith("ended"))
      .map((id) => ({ type: "CancelTask", project: projectId("p"), task: taskId(id), round: 1 }) as const),
  );
  const found = (wanted: Record<string, string>) => {
    const scan = scanTasks(turns.state, aQuery({ filter: { attributes: wanted }, sort: "submitted" }));
    let step = scan.next();
    while (!step.done) step = scan.next();
    expect(step.value.total).toBe(step.value.tasks.length);
    return step.value.tasks;
  };
  const idsOf = (wanted: Record<string, string>) => found(wanted).map(({ task }) => task);
  expect(idsOf({ ticket: "OPS-1" })).toEqual(["live0", "ended0", "live1", "ended1"]);
  expect(idsOf({ ticket: "OPS-1", team: "a" })).toEqual(["live0", "ended0"]);
  expect(idsOf({ other: "ticket" })).toEqual(["live3", "ended3"]);
  expect(idsOf({ ticket: 'say "hi"\n' })).toEqual(["live4", "ended4"]);
  expect(idsOf({ constructor: "x" })).toEqual([]);
  expect(found({ ticket: "OPS-10" }).map((row) => row.attributes)).toEqual([
    { ticket: "OPS-10" },
    { ticket: "OPS-10" },
  ]);
});

describe("the scans of a coordinator", () => {
  it("leave the loop free after every slice, one scan at a time", async () => {
    const reads = { n: 0 };
    let nowMs = 0;
    const sliceReads: number[] = [];
    let before = 0;
    const clock = {
      monotonicMs: () => nowMs++, // each step takes 1 ms
      after(_: number, run: () => void) {
        sliceReads.push(reads.n - before);
        before = reads.n;
        void setImmediate().then(run);
        return () => undefined;
      },
    };
    const state = endedTasks(10_000, reads);
    const scans = new TaskScans(clock as unknown as Clock);
    const [first, second] = [scans.run(() => state, aQuery()), scans.run(() => state, aQuery())];
    expect((await first)?.total).toBe(10_000);
    const slicesOfOne = sliceReads.length;
    expect(slicesOfOne).toBeGreaterThanOrEqual(Math.floor(10_000 / 256 / limits.taskScanSliceMs));
    expect(Math.max(...sliceReads)).toBeLessThanOrEqual(4 * 256 * limits.taskScanSliceMs);
    expect((await second)?.total).toBe(10_000);
    expect(sliceReads.length).toBe(2 * slicesOfOne);
  });
});
