// Tasks by project and id, in one order.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { taskId } from "../../src/ids.ts";
import { TaskMap } from "../../src/state/task-map.ts";
import { aRef } from "../support/task-refs.ts";

describe("a map of tasks", () => {
  it("finds a task by any object with a project and a task id", () => {
    const map = new TaskMap<string>();
    map.set(aRef("t1", "red"), "of red").set(aRef("t1", "blue"), "of blue");
    expect(map.get({ ...aRef("t1", "red"), attempt: 3 } as never)).toBe("of red");
    expect(map.get(aRef("t1", "blue"))).toBe("of blue");
    expect([map.has(aRef("t2", "red")), map.has(aRef("t1", "green")), map.size]).toEqual([false, false, 2]);
  });

  it("keeps the order of insertion over all projects, after any deletions", () => {
    const map = new TaskMap<number>();
    const names = [aRef("a", "red"), aRef("b", "blue"), aRef("c", "red"), aRef("d", "blue")];
    for (const [at, name] of names.entries()) map.set(name, at);
    map.delete(aRef("b", "blue"));
    map.set(aRef("b", "blue"), 9);
    expect([...map.values()]).toEqual([0, 2, 3, 9]);
    expect([...map].map(([{ project, task }]) => `${project}/${task}`)).toEqual([
      "red/a",
      "red/c",
      "blue/d",
      "blue/b",
    ]);
    expect([...map.fromNewest()]).toEqual([9, 3, 2, 0]);
    expect([map.oldest, map.oldestKey]).toEqual([0, aRef("a", "red")]);
  });

  it("finds the present value of a task, however often the task comes and goes", () => {
    const map = new TaskMap<number>();
    const plain = new Map<string, number>();
    const aName = fc.record({ task: fc.constantFrom("a", "b"), project: fc.constantFrom("red", "blue") });
    const step = fc.record({ name: aName, value: fc.option(fc.nat()) });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        for (const { name, value } of steps) {
          const ref = aRef(name.task, name.project);
          const key = `${name.project}/${name.task}`;
          if (value === null) expect(map.delete(ref)).toBe(plain.delete(key));
          else {
            map.set(ref, value);
            plain.set(key, value);
          }
          expect([map.get(ref), map.size]).toEqual([plain.get(key), plain.size]);
        }
      }),
    );
  });

  it("keeps only the pair of a name", () => {
    const map = new TaskMap<number>();
    map.set({ ...aRef("t1"), result: "a long one" } as never, 1);
    expect(map.oldestKey).toEqual(aRef("t1"));
  });

  it("knows the projects with a task of an id, and forgets a project without tasks", () => {
    const map = new TaskMap<number>();
    for (const project of ["red", "blue"]) map.set(aRef("t1", project), 1);
    map.set(aRef("t2", "red"), 1);
    expect([...map.projectsWith(taskId("t1"))]).toEqual(["red", "blue"]);
    map.delete(aRef("t1", "blue"));
    map.delete(aRef("t1", "blue"));
    expect([[...map.projectsWith(taskId("t1"))], map.size]).toEqual([["red"], 2]);
    expect([...map.projectsWith(taskId("t3"))]).toEqual([]);
  });
});
