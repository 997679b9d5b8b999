// The rule of a project's queue for any order of submissions, starts and cancellations. Nothing exceeds the bound.
// Beyond half of the bound, only users above the mean of the other users are held back.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { decide } from "../../src/core/decide.ts";
import { projectId, taskId, userId } from "../../src/ids.ts";
import { submit, Turns } from "../support/turns.ts";

const runs = { numRuns: 300 };
const p = projectId("p");

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("submit" as const), user: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), user: fc.nat(30) }) },
);
const queueMax = fc.integer({ min: 1, max: 12 });

/** A queue beside a plain model: the waiting tasks of each user. */
class Queue {
  readonly turns = new Turns();
  readonly waitingByUser = new Map<string, string[]>();
  readonly max: number;
  #made = 0;

  constructor(max: number) {
    this.max = max;
    this.turns.turn({ type: "SetProject", project: p, patch: { queueMax: max } });
  }

  get total(): number {
    return [...this.waitingByUser.values()].reduce((sum, tasks) => sum + tasks.length, 0);
  }

  has(user: string): number {
    return this.waitingByUser.get(user)?.length ?? 0;
  }

  /** The mean of the other waiting users; undefined without waiting rivals. */
  meanOfOthers(user: string): number | undefined {
    const others = [...this.waitingByUser].filter(([name, tasks]) => name !== user && tasks.length > 0);
    return others.length === 0 ? undefined : (this.total - this.has(user)) / others.length;
  }

  submit(user: string): string {
    this.#made += 1;
    const id = `t${this.#made}`;
    const command: Command = submit({ id: taskId(id), user: userId(user) });
    const { reply } = decide(this.turns.state, command, this.turns.at);
    if (reply.kind !== "accepted") return reply.kind === "refused" ? reply.reason : reply.kind;
    this.turns.turn(command);
    this.waitingByUser.set(user, [...(this.waitingByUser.get(user) ?? []), id]);
    return "accepted";
  }

  cancel(which: number): void {
    const [user, tasks] = [...this.waitingByUser][which % Math.max(1, this.waitingByUser.size)] ?? [];
    const id = tasks?.pop();
    if (user === undefined || id === undefined) return;
    this.turns.turn({ type: "CancelTask", project: p, task: taskId(id), round: 1 });
  }
}

it("a submission is refused only at the bound, or beyond half to a user above the mean of the others", () => {
  fc.assert(
    fc.property(queueMax, fc.array(step, { maxLength: 60 }), (max, steps) => {
      const queue = new Queue(max);
      for (const each of steps) {
        if (each.do === "cancel") {
          queue.cancel(each.user);
          continue;
        }
        const user = `u${each.user}`;
        const [total, own, mean] = [queue.total, queue.has(user), queue.meanOfOthers(user)];
        const isBeyondHalf = 2 * (total + 1) > max;
        const isHeavy = mean !== undefined && own > mean && own > 0;
        const expected =
          total >= max ? "project-queue-full" : isBeyondHalf && isHeavy ? "user-queue-full" : "accepted";
        expect(queue.submit(user)).toBe(expected);
      }
    }),
    runs,
  );
});

it("a heavy user takes nothing of the last half while lighter users wait, whatever it tries", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 40 }),
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.boolean(), { maxLength: 120 }),
      (max, lights, order) => {
        const queue = new Queue(max);
        for (let light = 0; light < lights; light += 1) queue.submit(`light${light}`);
        let next = 0;
        for (const isHeavy of order) {
          if (!isHeavy) {
            next += 1;
            const light = `light${next % lights}`;
            const isFull = queue.total >= max;
            const isLight = queue.has(light) <= (queue.meanOfOthers(light) ?? 0);
            if (isLight && !isFull) expect(queue.submit(light)).toBe("accepted");
            continue;
          }
          queue.submit("heavy");
          const mean = queue.meanOfOthers("heavy") ?? 0;
          expect(queue.has("heavy")).toBeLessThanOrEqual(Math.max(max / 2, mean + 1));
        }
      },
    ),
    runs,
  );
});

it("equal users that take turns fill the queue up to its bound, from the first to the last place", () => {
  fc.assert(
    fc.property(queueMax, fc.integer({ min: 1, max: 6 }), (max, users) => {
      const queue = new Queue(max);
      for (let place = 0; place < max; place += 1) expect(queue.submit(`u${place % users}`)).toBe("accepted");
      expect(queue.submit("u0")).toBe("project-queue-full");
      expect(queue.submit("new")).toBe("project-queue-full");
    }),
    runs,
  );
});

it("users in turn, each with as many tasks as the previous user, fill the queue as well", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 8 }), fc.integer({ min: 1, max: 8 }), (users, each) => {
      const queue = new Queue(users * each);
      for (let user = 0; user < users; user += 1)
        for (let task = 0; task < each; task += 1) expect(queue.submit(`u${user}`)).toBe("accepted");
    }),
    runs,
  );
});
