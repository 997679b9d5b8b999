// Promises of virtual clocks beyond the starvation limit. A newcomer is served within a round of the waiting members.
// Shares follow credit weights by cost. No member saves up turns without tasks, or with tasks that no agent serves.

import { describe, expect, it } from "vitest";
import { Dice } from "./random-swarm.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

type Level = "projects" | "users";

/** One agent with a capacity of one, busy: each tick its attempt ends and the next begins. */
class Queue {
  readonly swarm = new SwarmFixture();
  readonly #level: Level;
  #tasks = 0;

  constructor(level: Level, { starvationLimit = 0 } = {}) {
    this.#level = level;
    this.swarm.setPolicy({ starvationLimit });
    this.swarm.join("a", { kinds: ["k"] });
  }

  submit(name: string, count: number, { of = "k", weight = 1 } = {}): void {
    for (let n = 0; n < count; n += 1) {
      this.#tasks += 1;
      const owner = this.#level === "projects" ? { project: name, user: "u" } : { project: "p", user: name };
      this.swarm.submit(`t${this.#tasks}`, { ...owner, kind: of, weight });
    }
  }

  setWeight(project: string, creditWeight: number): void {
    this.swarm.setProject(project, { creditWeight });
  }

  /** The winners, tick by tick. */
  run(ticks: number): string[] {
    return Array.from({ length: ticks }, () => this.#tick()).flat();
  }

  #tick(): string[] {
    const [open] = this.swarm.agent("a").open.values();
    if (open !== undefined) this.swarm.complete(open.task);
    this.swarm.pass(1_000);
    return this.swarm.plan().map(({ task }) => {
      const { project, user } = this.swarm.task(task).spec;
      return this.#level === "projects" ? project : user;
    });
  }
}

/** The most turns in a row of any member. */
function longestRun(owners: readonly string[]): number {
  let longest = 0;
  let length = 0;
  for (const [at, owner] of owners.entries()) {
    length = owner === owners[at - 1] ? length + 1 : 1;
    longest = Math.max(longest, length);
  }
  return longest;
}

describe.each(["projects", "users"] as const)("among %s", (level) => {
  it("a newcomer and a member that worked alone before alternate from the newcomer's first tick on", () => {
    const queue = new Queue(level);
    queue.submit("old", 1_300);
    queue.run(1_000);
    queue.submit("new", 300);
    const owners = queue.run(400);
    expect(owners[0]).toBe("new");
    expect(longestRun(owners)).toBe(1);
  });

  it("a newcomer is served within a round of the waiting members, whatever these run", () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const dice = new Dice(seed);
      const queue = new Queue(level);
      const others = 2 + dice.below(12);
      for (let n = 0; n < others; n += 1) queue.submit(`o${n}`, 200, { weight: 1 + dice.below(9) });
      queue.run(100 + dice.below(100));
      queue.submit("new", 1, { weight: 1 + dice.below(9) });
      expect(queue.run(others + 1)).toContain("new");
    }
  });

  it("no member saves up turns with a task that no agent serves", () => {
    const queue = new Queue(level);
    queue.submit("saver", 1, { of: "nobody-serves-this" });
    for (const other of ["x", "y", "z"]) queue.submit(other, 400);
    queue.run(300);
    queue.submit("saver", 100);
    const owners = queue.run(200);
    expect(owners.slice(0, 4)).toContain("saver");
    expect(longestRun(owners)).toBeLessThanOrEqual(2);
    expect(owners.filter((owner) => owner === "saver")).toHaveLength(50);
  });

  it("no member saves up turns without tasks", () => {
    const queue = new Queue(level);
    queue.submit("saver", 1);
    queue.submit("x", 400);
    queue.run(300);
    queue.submit("saver", 60);
    expect(longestRun(queue.run(80))).toBe(1);
  });

  it("turns are by cost: tasks of eight times the weight have an eighth of the turns", () => {
    const queue = new Queue(level);
    queue.submit("heavy", 200, { weight: 8 });
    queue.submit("light", 1_000);
    const owners = queue.run(900);
    expect(Math.abs(owners.filter((owner) => owner === "heavy").length - 100)).toBeLessThanOrEqual(1);
  });
});

describe("credit weights", () => {
  it("share contended capacity 3 to 1, and all of it without rivals", () => {
    const queue = new Queue("projects");
    queue.setWeight("gold", 3);
    queue.submit("gold", 300);
    queue.submit("tin", 300);
    const owners = queue.run(200);
    expect(Math.abs(owners.filter((owner) => owner === "gold").length - 150)).toBeLessThanOrEqual(1);
    queue.run(200);
    // Gold has run all its tasks; the rest goes to the remaining member.
    expect(new Set(queue.run(200))).toEqual(new Set(["tin"]));
  });

  it("a project without a grant for its window goes first, once", () => {
    const queue = new Queue("projects");
    queue.swarm.setPolicy({ guaranteeMs: 50_000 });
    queue.setWeight("big", 1_000);
    queue.submit("big", 1_000);
    queue.submit("small", 20, { weight: 100 });
    const owners = queue.run(400);
    const turns = owners.flatMap((owner, at) => (owner === "small" ? [at] : []));
    expect(turns.length).toBeGreaterThanOrEqual(8);
    for (const [at, turn] of turns.entries()) if (at > 1) expect(turn - (turns[at - 1] ?? 0)).toBe(50);
  });
});
