// Packed ended tasks: equal to a plain map after any history, with any text, with equal hashes, and small.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agentId, batchIndex, instant, kind, projectId, taskId, userId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { recordsPerPage } from "../../src/state/ended-page.ts";
import type { EndedTask } from "../../src/state/ended-task.ts";
import { EndedTasks } from "../../src/state/ended-tasks.ts";
import { HashIndex, hashOfPair, probesPerSearch } from "../../src/state/hash-index.ts";
import { refOf } from "../../src/state/task-rows.ts";
import { anEndedTask, aRef } from "../support/task-refs.ts";

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const keyOf = ({ project, id }: EndedTask) => `${project}/${id}`;

/** The ended tasks of a test, beside a plain map with the same contents. */
class Both {
  readonly ended = new EndedTasks();
  readonly map = new Map<string, EndedTask>();

  // Looks for the task before and after each change: the last find must not outlive the change.

  add(task: EndedTask): void {
    this.checkOne(task);
    this.ended.add(task);
    this.map.set(keyOf(task), task);
    this.checkOne(task);
  }

  delete(task: EndedTask): void {
    this.checkOne(task);
    expect(this.ended.delete(refOf(task))).toBe(this.map.delete(keyOf(task)));
    this.checkOne(task);
  }

  forgetOldest(): void {
    const [oldest] = this.map.values();
    if (oldest !== undefined) this.checkOne(oldest);
    this.ended.forgetOldest();
    if (oldest === undefined) return;
    this.map.delete(keyOf(oldest));
    this.checkOne(oldest);
  }

  checkOne(task: EndedTask): void {
    const found = this.ended.get(refOf(task));
    const wanted = this.map.get(keyOf(task));
    if (found?.sequence !== wanted?.sequence || found?.round !== wanted?.round) expect(found).toEqual(wanted);
  }

  check(): void {
    const { ended, map } = this;
    const tasks = [...map.values()];
    expect([...ended.values()]).toEqual(tasks);
    expect([...ended.fromNewest()].length).toBe(tasks.length);
    expect(Array.from(ended.fromNewest(), (view) => view.copy())).toEqual(tasks.toReversed());
    expect(ended.size).toBe(map.size);
    expect(ended.oldestEndedAt).toBe(tasks[0]?.endedAt);
    expect(tasks.map((task) => ended.get(refOf(task)))).toEqual(tasks);
  }
}

const aText = fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 });
const aTask: fc.Arbitrary<EndedTask> = fc.record({
  id: aText.map(taskId),
  project: fc.constantFrom("red", "blue").map(projectId),
  user: aText.map(userId),
  kind: aText.map(kind),
  hash: aText,
  state: fc.constantFrom("completed", "failed", "cancelled", "expired", "dead-lettered"),
  sequence: fc.maxSafeNat(),
  round: fc.maxSafeNat(),
  attempts: fc.maxSafeNat(),
  agent: fc.option(aText.map(agentId), { nil: undefined }),
  submittedIdx: fc.maxSafeNat().map(batchIndex),
  roundIdx: fc.maxSafeNat().map(batchIndex),
  endedAt: fc.maxSafeInteger().map(instant),
  endedIdx: fc.maxSafeNat().map(batchIndex),
  attributes: fc.option(aText, { nil: undefined }),
});

describe("ended tasks", () => {
  it("are the tasks that were added, with any text and number, in order of ending", () => {
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ does: fc.constant("add" as const), task: aTask }) },
      { weight: 1, arbitrary: fc.record({ does: fc.constant("delete" as const), at: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ does: fc.constant("forget" as const) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const both = new Both();
        for (const each of steps) {
          const tasks = [...both.map.values()];
          if (each.does === "add" && !both.map.has(keyOf(each.task))) both.add(each.task);
          const picked = each.does === "delete" ? tasks[each.at % Math.max(1, tasks.length)] : undefined;
          if (picked !== undefined) both.delete(picked);
          if (each.does === "forget" && tasks.length > 0) both.forgetOldest();
        }
        both.check();
      }),
    );
  });

  it("keep the attributes of the tasks that ended last, in a bounded size", () => {
    const ended = new EndedTasks();
    const attributes = JSON.stringify({ note: "x".repeat(limits.attributesBytesMax - 11) });
    const most = Math.floor(limits.rememberedAttributesMax / (attributes.length + limits.attributesOverhead));
    for (let n = 0; n < most + 5; n += 1) ended.add(anEndedTask({ id: taskId(`t${n}`), attributes }));
    const withAttributes = [...ended.values()].filter((task) => task.attributes !== undefined);
    expect(withAttributes).toHaveLength(most);
    expect(withAttributes[0]?.id).toBe("t5");
    expect(ended.attributesSize).toBeLessThanOrEqual(limits.rememberedAttributesMax);
    for (const { id } of withAttributes) ended.delete(aRef(id));
    expect(ended.attributesSize).toBe(0);
    expect(ended.size).toBe(5);
  });

  it("keep their places and order over many pages, gaps, and rounds", () => {
    const both = new Both();
    let sequence = 0;
    const add = (count: number) => {
      for (let n = 0; n < count; n += 1) {
        sequence += 1;
        both.add(anEndedTask({ id: taskId(`t${sequence}`), sequence, endedAt: instant(sequence) }));
      }
    };
    const placeOf = new Map<string, number>();
    const seen = new Set<number>();
    const checkPlaces = () => {
      const moved: string[] = [];
      for (const place of both.ended.places()) {
        const key = keyOf(both.ended.at(place));
        const known = placeOf.get(key);
        if (known === undefined ? seen.has(place) : place !== known) moved.push(key);
        placeOf.set(key, place);
        seen.add(place);
      }
      expect(moved).toEqual([]);
    };
    add(5 * recordsPerPage + 10);
    checkPlaces();
    const all = [...both.map.values()];
    // Leaves every ninth task of the second page, no task of the third page, and gaps in the newest page.
    for (const [at, task] of all.entries()) {
      const page = Math.floor(at / recordsPerPage);
      if ((page === 1 && at % 9 !== 0) || page === 2 || (page === 5 && at % 2 === 0)) both.delete(task);
    }
    both.check();
    checkPlaces();
    const again = all[recordsPerPage + 1] as EndedTask;
    both.add({ ...again, round: 2 });
    placeOf.delete(keyOf(again));
    for (let n = 0; n < recordsPerPage + 40; n += 1) both.forgetOldest();
    add(recordsPerPage);
    both.check();
    checkPlaces();
    while (both.map.size > 0) both.forgetOldest();
    both.check();
    add(3);
    both.check();
    checkPlaces();
  });

  it.each<[string, Partial<EndedTask>]>([
    ["close together", {}],
    ["2³² − 1 apart", { endedAt: instant(2 ** 32 - 1) }],
    ["2³² apart", { submittedIdx: batchIndex(2 ** 32) }],
    ["as large as they may be", { sequence: Number.MAX_SAFE_INTEGER, round: Number.MAX_SAFE_INTEGER - 1 }],
    ["fractions", { endedAt: instant(0.5) }],
  ])("keep the numbers of a full page: %s", (_, more) => {
    const ended = new EndedTasks();
    const tasks = Array.from({ length: recordsPerPage }, (_each, at) =>
      anEndedTask({
        id: taskId(`t${at}`),
        attempts: at % 3,
        endedIdx: batchIndex(1 + at),
        ...(at === 7 ? more : {}),
      }),
    );
    for (const task of tasks) ended.add(task);
    expect([...ended.values()]).toEqual(tasks);
  });

  it("continue a walk from the newest when tasks were retried, forgotten and added meanwhile", () => {
    const ended = new EndedTasks();
    const count = 2 * recordsPerPage + 5;
    for (let n = 0; n < count; n += 1) ended.add(anEndedTask({ id: taskId(`t${n}`), sequence: n }));
    const walk = ended.fromNewest();
    const next = () => walk.next().value?.sequence;
    expect([next(), next()]).toEqual([count - 1, count - 2]);
    ended.add(anEndedTask({ id: taskId("later"), sequence: count }));
    for (let n = 0; n < 3; n += 1) ended.forgetOldest();
    // Most tasks of the second page: it is shrunk under the walk.
    for (let n = recordsPerPage; n < 2 * recordsPerPage; n += 1) if (n % 4 !== 0) ended.delete(aRef(`t${n}`));
    const rest = Array.from(walk, ({ sequence }) => sequence);
    const left = [...ended.values()].map(({ sequence }) => sequence).filter((n) => n < count - 2);
    expect(rest).toEqual(left.toReversed());
  });

  it("are found and forgotten where the low bits of places begin anew", () => {
    const ended = new EndedTasks(2 ** 32 / recordsPerPage - 2);
    const tasks = Array.from({ length: 4 * recordsPerPage }, (_, at) =>
      anEndedTask({ id: taskId(`t${at}`), sequence: at }),
    );
    for (const task of tasks) ended.add(task);
    expect(tasks.map((task) => ended.get(refOf(task))?.sequence)).toEqual(tasks.map((_, at) => at));
    expect(tasks.filter((_, at) => at % 2 === 1).every((task) => ended.delete(refOf(task)))).toBe(true);
    for (let left = ended.size; left > 0; left -= 1) {
      expect(ended.size).toBe(left);
      ended.forgetOldest();
    }
    expect(tasks.filter((task) => ended.has(refOf(task)))).toEqual([]);
  });

  it("know the projects with a task of an id, and forget a project without tasks", () => {
    const ended = new EndedTasks();
    for (const project of ["red", "blue"]) ended.add(anEndedTask({ project: projectId(project) }));
    ended.add(anEndedTask({ project: projectId("red"), id: taskId("t2") }));
    expect([...ended.projectsWith(taskId("t1"))].sort()).toEqual(["blue", "red"]);
    ended.delete(aRef("t1", "blue"));
    expect(ended.delete(aRef("t1", "blue"))).toBe(false);
    expect([[...ended.projectsWith(taskId("t1"))], ended.size]).toEqual([["red"], 2]);
    expect([...ended.projectsWith(taskId("t3"))]).toEqual([]);
  });

  it("are found, and deleted, among ids with equal hashes", () => {
    const ids = idsWithEqualHash(3 * probesPerSearch);
    const both = new Both();
    for (const id of ids) both.add(anEndedTask({ id: taskId(id) }));
    both.check();
    for (const id of ids.filter((_, at) => at % 3 === 0)) both.delete(anEndedTask({ id: taskId(id) }));
    both.check();
    for (const id of ids) expect(both.ended.has(aRef(id))).toBe(both.map.has(`p/${id}`));
  });

  it("take at most 170 bytes each", () => {
    const before = bytesInUse();
    const ended = new EndedTasks();
    const count = 100_000;
    for (let n = 0; n < count; n += 1)
      ended.add(
        anEndedTask({
          id: taskId(`${n}-0123456789-0123456789-0123456789`.slice(0, 36)),
          hash: "h".repeat(22),
        }),
      );
    expect((bytesInUse() - before) / count).toBeLessThan(170);
    expect(ended.size).toBe(count);
  });
});

describe("an index of hashes", () => {
  it("finds what was added, after any removals", () => {
    const step = fc.record({
      hash: fc.integer({ min: 2, max: 9 }),
      number: fc.nat(99),
      isDeleted: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: probesPerSearch }), (steps) => {
        const index = new HashIndex();
        const added = new Set<string>();
        const refused: number[] = [];
        for (const { hash, number, isDeleted } of steps) {
          const key = `${hash}-${number}`;
          if (isDeleted) expect(index.delete(hash, number)).toBe(added.delete(key));
          else if (!added.has(key)) {
            expect(index.add(hash, number, refused)).toBe(true);
            added.add(key);
          }
        }
        expect(refused).toEqual([]);
        for (let hash = 2; hash <= 9; hash += 1) {
          const found: string[] = [];
          for (let probes = index.next(hash, 0); probes !== -1; probes = index.next(hash, probes + 1))
            found.push(`${hash}-${index.numberAt(hash, probes)}`);
          expect(found.sort()).toEqual([...added].filter((key) => key.startsWith(`${hash}-`)).sort());
        }
      }),
    );
  });
});

/**
 * Different ids whose hashes in project `p` are equal, as an attacker builds them. Pairs of texts lead to one state of
 * the hash, one pair after another. Each pair doubles the number of ids.
 */
function idsWithEqualHash(count: number): string[] {
  const next = (state: number, unit: number) => Math.imul(state ^ unit, 0x01000193);
  let state = next(next(0x811c9dc5, "p".charCodeAt(0)), 0xffff);
  let ids = [""];
  while (ids.length < count) {
    const unitsByState = new Map<number, readonly number[]>();
    for (let n = 1; ; n += 1) {
      const units = [19_997, 19_993, 19_991].map((prime, at) => 0x4e00 + ((n * (7919 + at)) % prime));
      const reached = units.reduce(next, state);
      const other = unitsByState.get(reached);
      unitsByState.set(reached, units);
      if (other === undefined) continue;
      const pair = [String.fromCharCode(...units), String.fromCharCode(...other)];
      ids = ids.flatMap((id) => pair.map((text) => id + text));
      state = reached;
      break;
    }
  }
  expect(new Set(ids.map((id) => hashOfPair("p", id))).size).toBe(1);
  return ids.slice(0, count);
}

function bytesInUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
