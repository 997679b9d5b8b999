// Who waits for which task: remembered within bounds, told once, forgotten then.

import { describe, expect, it } from "vitest";
import { Awaiting } from "../../src/coordinator/awaiting.ts";
import { taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";

const [t1, t2] = [taskId("t1"), taskId("t2")];

describe("those who wait", () => {
  it("are told once each, and forgotten", () => {
    const awaiting = new Awaiting();
    for (const token of ["a", "b", "a"]) expect(awaiting.add(t1, token)).toBe(true);
    expect(awaiting.of(t1)).toEqual(["a", "b"]);
    expect(awaiting.take(t1)).toEqual(["a", "b"]);
    expect([awaiting.take(t1), awaiting.of(t1), awaiting.of(t2)]).toEqual([[], [], []]);
  });

  it("for one task are bounded; whoever is noted stays", () => {
    const awaiting = new Awaiting();
    for (let n = 0; n < limits.awaitersPerTaskMax; n += 1) expect(awaiting.add(t1, `inbox${n}`)).toBe(true);
    expect(awaiting.add(t1, "one more")).toBe(false);
    expect(awaiting.add(t1, "inbox0")).toBe(true);
    expect(awaiting.add(t2, "one more")).toBe(true);
  });

  it("are for no more tasks than there may be", () => {
    const awaiting = new Awaiting();
    for (let n = 0; n < limits.awaitedTasksMax; n += 1) awaiting.add(taskId(`${n}`), "a");
    expect(awaiting.add(t1, "a")).toBe(false);
    expect(awaiting.add(taskId("0"), "b")).toBe(true);
    awaiting.take(taskId("0"));
    expect(awaiting.add(t1, "a")).toBe(true);
  });
});
