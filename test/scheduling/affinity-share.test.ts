// How often a task runs at the agent of its affinity: 4 agents, 8 keys, exponential service. The figures of
// docs/adr/0030-needs-make-queues.md. In a saturated swarm one agent is free at a time, so hits are chance, 1 of 4.

import { expect, it } from "vitest";
import { taskId } from "../../src/ids.ts";
import { SeededRandom } from "../../src/sim/random.ts";
import { join, submit, Turns } from "../support/turns.ts";

const AGENTS = 4;
const KEYS = 8;
const TASKS = 1_000;

/** @param waiting tasks beside those that run; negative: so many places are free
 *  @returns the share of tasks that run where their key ran last */
function hits({ capacity, waiting, seed }: { capacity: number; waiting: number; seed: string }): number {
  const random = new SeededRandom(seed);
  const turns = new Turns();
  const agents = Array.from({ length: AGENTS }, (_, at) => join(`a${at}`, { maxConcurrent: capacity }));
  turns.turn(...agents);
  let submitted = 0;
  const next = () => {
    submitted += 1;
    return submit({ id: taskId(`t${submitted}`), affinity: `session-${random.below(KEYS)}` });
  };
  turns.turn(...Array.from({ length: AGENTS * capacity + waiting }, next));
  while (submitted < TASKS) {
    turns.pass(1 + Math.round(random.exponential(50)));
    const running = [...turns.state.taskById.values()].filter(({ open }) => open !== undefined);
    turns.turn(turns.report(random.pick(running).spec.id, { kind: "completed", result: "" }), next());
  }
  const lastByKey = new Map<string, string>();
  const counted = { tasks: 0, hits: 0 };
  const keyById = new Map<string, string | undefined>();
  for (const event of turns.events) {
    if (event.type === "TaskSubmitted") keyById.set(event.task.id, event.task.affinity);
    if (event.type !== "TaskAssigned") continue;
    const key = keyById.get(event.task) ?? "";
    const last = lastByKey.get(key);
    if (last !== undefined) counted.tasks += 1;
    if (last === event.agent) counted.hits += 1;
    lastByKey.set(key, event.agent);
  }
  return counted.hits / counted.tasks;
}

it.each([
  { capacity: 1, waiting: 40, from: 0.18, to: 0.33 },
  { capacity: 8, waiting: 40, from: 0.18, to: 0.33 },
  { capacity: 1, waiting: -1, from: 0.4, to: 0.6 },
  { capacity: 8, waiting: -4, from: 0.7, to: 0.85 },
  { capacity: 8, waiting: -16, from: 0.95, to: 1 },
])("with $capacity at a time and $waiting waiting, from $from to $to", ({ from, to, ...swarm }) => {
  for (const seed of ["0", "1", "2"]) {
    const share = hits({ ...swarm, seed });
    expect(share).toBeGreaterThan(from);
    expect(share).toBeLessThan(to);
  }
});
