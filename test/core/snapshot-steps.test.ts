// Building a state from a snapshot's rows takes steps, however much of it belongs to one user: a standby that restores
// has other work on its loop.

import fc from "fast-check";
import { expect, it } from "vitest";
import { apply } from "../../src/core/apply.ts";
import { finished, StateDecoder } from "../../src/core/snapshot/decode.ts";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { sortInSteps } from "../../src/core/snapshot/sort-in-steps.ts";
import { batchIndex, instant, taskId, term } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { emptyState, type SwarmState } from "../../src/state/state.ts";
import { aTask } from "../support/turns.ts";

const rows = limits.baseStepRows;

/** Waiting tasks of one user, each with a deadline. */
function aLongQueue(tasks: number): SwarmState {
  const state = emptyState();
  const at = { at: instant(1_000), idx: batchIndex(1) };
  state.at = at.at;
  state.idx = at.idx;
  apply(state, { type: "TermStarted", term: term(1), leader: "c1", opened: "o1", timeoutMs: 3_000 }, at);
  for (let n = 0; n < tasks; n += 1) {
    const task = aTask({ id: taskId(`t${n}`), deadline: instant(10_000_000 - n) });
    apply(state, { type: "TaskSubmitted", task, hash: "h" }, at);
  }
  return state;
}

function stepsOf<Result>(steps: Generator<undefined, Result>): { count: number; result: Result } {
  for (let count = 0; ; count += 1) {
    const step = steps.next();
    if (step.done) return { count, result: step.value };
  }
}

it("a state's one long queue is built piece by piece", () => {
  const tasks = 8 * rows;
  const state = aLongQueue(tasks);
  const decoder = new StateDecoder();
  const lines = [...encodeState(state)];
  finished(decoder.take(lines));
  const { count, result } = stepsOf(decoder.end());
  expect(count).toBeGreaterThanOrEqual((2 * tasks) / rows); // sorted, then placed
  expect([...encodeState(result)]).toEqual(lines);
});

it("a list is sorted as in one go, and no step is long", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50), { maxLength: 200 }), fc.nat(30), (keys, repeats) => {
      const items = Array.from({ length: keys.length * (repeats + 1) }, (_, at) => ({
        key: keys[at % keys.length] ?? 0,
        at,
      }));
      const { count, result } = stepsOf(sortInSteps(items, ({ key }) => key));
      expect(result).toEqual(items.toSorted((a, b) => a.key - b.key || a.at - b.at));
      expect(count).toBeGreaterThanOrEqual(Math.floor(items.length / rows));
    }),
  );
});
