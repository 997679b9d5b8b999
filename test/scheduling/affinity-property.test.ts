// An affinity never starves a task: it changes which agent runs a task, and never when or in which order tasks start.
// Two swarms get the same tasks, and the same tasks end in both. One swarm's tasks have affinities.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { projectId, taskId, userId } from "../../src/ids.ts";
import type { TaskSpec } from "../../src/state/event.ts";
import { liveTask } from "../support/task-refs.ts";
import { join, submit, Turns } from "../support/turns.ts";

const AGENTS = ["a1", "a2", "a3"];

const step = fc.record({
  tasks: fc.array(
    fc.record({
      project: fc.nat(1),
      user: fc.nat(2),
      affinity: fc.option(fc.nat(2), { nil: undefined }),
      priority: fc.constantFrom(100, 100, 100, 1),
      weight: fc.constantFrom(1, 1, 5),
    }),
    { maxLength: 5 },
  ),
  /** Which of the running tasks end, in order of their start. */
  ends: fc.array(fc.nat(9), { maxLength: 4 }),
  passMs: fc.nat(500),
});
type Step = typeof step extends fc.Arbitrary<infer Of> ? Of : never;

class Side {
  readonly turns = new Turns();
  #submitted = 0;

  constructor(capacity: number) {
    this.turns.turn(...AGENTS.map((id) => join(id, { maxConcurrent: capacity })));
  }

  run({ tasks, ends, passMs }: Step, hasAffinities: boolean): void {
    const { turns } = this;
    const { running } = this;
    const ended = new Set(running.filter((_, at) => ends.includes(at)));
    const commands: Command[] = [...ended].map((id) => turns.report(id, { kind: "completed", result: "" }));
    for (const { project, user, affinity, ...rest } of tasks) {
      this.#submitted += 1;
      const spec: Partial<TaskSpec> = {
        ...rest,
        id: taskId(`t${this.#submitted}`),
        project: projectId(`p${project}`),
        user: userId(`u${user}`),
      };
      commands.push(
        submit(hasAffinities && affinity !== undefined ? { ...spec, affinity: `s${affinity}` } : spec),
      );
    }
    turns.pass(passMs);
    turns.turn(...commands);
  }

  /** In order of their start. */
  get running(): string[] {
    return this.started.filter((id) => liveTask(this.turns.state, id)?.open !== undefined);
  }

  get started(): string[] {
    return this.turns.events.flatMap((event) => (event.type === "TaskAssigned" ? [event.task] : []));
  }
}

it("starts every task in the turn in which it would start without affinities", () => {
  let moved = 0;
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      fc.array(step, { minLength: 4, maxLength: 25 }),
      (capacity, steps) => {
        const plain = new Side(capacity);
        const keyed = new Side(capacity);
        for (const each of steps) {
          plain.run(each, false);
          keyed.run(each, true);
          expect(keyed.started).toEqual(plain.started);
        }
        const agents = (side: Side) =>
          side.turns.events.map((event) => (event.type === "TaskAssigned" ? event.agent : undefined)).join();
        if (agents(keyed) !== agents(plain)) moved += 1;
      },
    ),
    { numRuns: 100 },
  );
  expect(moved, "affinities moved tasks to other agents").toBeGreaterThan(10);
});
