// Where queued tasks stand, members of the levels and their waits, and the charge of a grant.

import { describe, expect, it } from "vitest";
import { projectId, userId } from "../../src/ids.ts";
import type { QueueProject, QueueUser, TaskPartition, TaskQueue, TaskRow } from "../../src/state/state.ts";
import { aRandomSwarm } from "../scheduling/random-swarm.ts";
import { SwarmFixture } from "../scheduling/swarm-fixture.ts";

function queueIn({ state }: SwarmFixture, key: string): TaskQueue {
  const queue = state.queueByKey.get(key);
  if (queue === undefined) throw new Error(`no queue ${key}`);
  return queue;
}

function memberIn(swarm: SwarmFixture, key: string, project: string): QueueProject {
  const member = queueIn(swarm, key).memberByProject.get(projectId(project));
  if (member === undefined) throw new Error(`${project} is no member of queue ${key}`);
  return member;
}

function userIn(swarm: SwarmFixture, key: string, project: string, user: string): QueueUser {
  const member = memberIn(swarm, key, project).memberByUser.get(userId(user));
  if (member === undefined) throw new Error(`${user} is no member of queue ${key}`);
  return member;
}

/** From the oldest to the newest. */
function listed(partition: TaskPartition): TaskRow[] {
  const rows: TaskRow[] = [];
  for (let row = partition.oldest; row !== undefined; row = row.newer) rows.push(row);
  expect(rows.at(-1)).toBe(partition.newest);
  for (const [at, row] of rows.entries()) expect(row.older).toBe(rows[at - 1]);
  return rows;
}

function idsOf(rows: readonly TaskRow[]): string[] {
  return rows.map(({ spec }) => spec.id);
}

describe("queues", () => {
  it("are one per kind and role, from their first task to their last", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { kinds: ["k"], role: "x", maxConcurrent: 9 });
    swarm.submit("t1");
    swarm.submit("t2", { role: "x" });
    swarm.submit("t3", { role: "x", project: "q" });
    expect([...swarm.state.queueByKey.keys()]).toEqual(["k", "k x"]);
    expect(queueIn(swarm, "k x")).toMatchObject({ kind: "k", role: "x", size: 2 });
    expect(queueIn(swarm, "k").kindRow.queues).toBe(2);
    for (const id of ["t1", "t2"]) swarm.assign(id, "a");
    expect([...swarm.state.queueByKey.keys()]).toEqual(["k x"]);
    swarm.cancel("t3");
    expect(swarm.state.queueByKey.size).toBe(0);
    expect(swarm.state.kindByName.get(swarm.agent("a").kindRows[0]?.kind as never)?.queues).toBe(0);
  });

  it("partition tasks by the agents that failed them, each partition in queueing order", () => {
    const swarm = new SwarmFixture();
    for (const id of ["b", "a"]) swarm.join(id, { maxConcurrent: 9 });
    for (const id of ["t1", "t2", "t3", "t4"]) swarm.submit(id, { priority: id === "t4" ? 1 : 100 });
    for (const agent of ["b", "a"]) {
      swarm.assign("t2", agent);
      swarm.fail("t2");
    }
    for (const agent of ["a", "b"]) {
      swarm.assign("t1", agent);
      swarm.fail("t1");
    }
    const { partitions, size, cost } = userIn(swarm, "k", "p", "u");
    expect({ size, cost }).toEqual({ size: 4, cost: 4_000 });
    expect(partitions.map((partition) => [partition.avoid, idsOf(listed(partition))])).toEqual([
      [[], ["t3", "t4"]],
      [
        ["a", "b"],
        ["t2", "t1"],
      ],
    ]);
    expect(partitions[0]?.tasks.peek()?.spec.id).toBe("t4");
    swarm.cancel("t1");
    swarm.cancel("t2");
    expect(userIn(swarm, "k", "p", "u").partitions).toHaveLength(1);
  });

  it("count a member's wait from the entry or the last grant, whichever is later", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { kinds: ["k", "l"], maxConcurrent: 9 });
    swarm.submit("k1");
    const entered = memberIn(swarm, "k", "p").sinceOrder;
    expect(entered).toBe(swarm.state.orders);
    swarm.submit("k2");
    swarm.submit("l1", { kind: "l" });
    expect(memberIn(swarm, "k", "p").sinceOrder).toBe(entered);
    // A grant in another queue leaves this wait unchanged; both queues share the account.
    swarm.assign("l1", "a");
    swarm.complete("l1");
    expect(memberIn(swarm, "k", "p")).toMatchObject({ sinceOrder: entered, sinceTick: 0 });
    expect(memberIn(swarm, "k", "p").account.servedOrder).toBe(swarm.state.orders);
    swarm.assign("k1", "a");
    for (const member of [memberIn(swarm, "k", "p"), userIn(swarm, "k", "p", "u")]) {
      expect(member).toMatchObject({ sinceOrder: swarm.state.orders, sinceTick: 1 });
    }
    // Out of the queue and in again: a new member.
    swarm.assign("k2", "a");
    swarm.submit("k3");
    expect(memberIn(swarm, "k", "p").sinceOrder).toBe(swarm.state.orders);
  });

  it("advance the tick of each kind that the agent serves, and of no other", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { kinds: ["k", "l"] });
    swarm.join("b", { kinds: ["m"] });
    for (const kind of ["k", "l", "m"]) swarm.submit(`${kind}1`, { kind });
    swarm.assign("k1", "a");
    swarm.fail("k1", { failureClass: "infrastructure" });
    expect([...swarm.state.kindByName.values()].map(({ kind, tick }) => [kind, tick])).toEqual([
      ["k", 1],
      ["l", 1],
      ["m", 0],
    ]);
    expect(swarm.task("k1")).toMatchObject({ queuedTick: 1, queuedOrder: swarm.state.orders });
  });

  it("note when a project or user last went from no queued task to one, in any queue", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { kinds: ["k", "l"], maxConcurrent: 9 });
    swarm.submit("k1");
    const { account } = memberIn(swarm, "k", "p");
    expect(account.arrivedOrder).toBe(1);
    swarm.submit("l1", { kind: "l", user: "other" });
    expect(account.arrivedOrder).toBe(1);
    expect(userIn(swarm, "l", "p", "other").account.arrivedOrder).toBe(2);
    for (const id of ["k1", "l1"]) swarm.assign(id, "a");
    swarm.fail("k1");
    expect(account.arrivedOrder).toBe(swarm.state.orders);
  });
});

describe("a grant", () => {
  function aSwarm(): SwarmFixture {
    const swarm = new SwarmFixture();
    swarm.join("a", { maxConcurrent: 99 });
    swarm.setProject("p", { creditWeight: 2 });
    swarm.setKind("k", { importance: 4 });
    return swarm;
  }

  it("charges cost over credit weight to the project and over importance to the user", () => {
    const swarm = aSwarm();
    swarm.submit("t1", { weight: 1.5 });
    swarm.submit("t2");
    swarm.assign("t1", "a");
    expect(memberIn(swarm, "k", "p").account).toMatchObject({ clock: 750, servedAt: swarm.at });
    expect(userIn(swarm, "k", "p", "u").account).toMatchObject({ clock: 375, servedAt: swarm.at });
  });

  it("raises virtual time to its start when the turn came by the rule, and not otherwise", () => {
    const swarm = aSwarm();
    for (const id of ["t1", "t2", "t3", "t4"]) swarm.submit(id, { weight: 8 });
    swarm.assign("t1", "a");
    expect(swarm.state.virtualTime).toBe(0);
    swarm.assign("t2", "a", { project: "starvation-limit", user: "rule" });
    const { row } = memberIn(swarm, "k", "p");
    expect([swarm.state.virtualTime, row.virtualTime]).toEqual([0, 2_000]);
    swarm.assign("t3", "a", { project: "rule", user: "starvation-limit" });
    expect([swarm.state.virtualTime, row.virtualTime]).toEqual([8_000, 2_000]);
  });

  it("costs nothing in the end when infrastructure refused the attempt, or it was lost", () => {
    const swarm = aSwarm();
    swarm.submit("t1", { weight: 3 });
    for (const failureClass of ["infrastructure", "lost"] as const) {
      swarm.assign("t1", "a");
      const { clock } = swarm.task("t1").projectRow.account;
      swarm.fail("t1", { failureClass });
      expect(swarm.task("t1").projectRow.account).toMatchObject({ clock, carried: -3_000 });
    }
    const before = swarm.task("t1").userRow.account.clock;
    swarm.assign("t1", "a");
    expect(swarm.task("t1").userRow.account).toMatchObject({ clock: before, carried: 0 });
    swarm.fail("t1");
    expect(swarm.task("t1").userRow.account.carried).toBe(0);
  });
});

describe("after any history", () => {
  it("queues hold exactly the queued tasks, and their counts equal a recount", () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const { state } = aRandomSwarm(seed);
      const found: TaskRow[] = [];
      for (const [key, queue] of state.queueByKey) {
        const inQueue: TaskRow[] = [];
        for (const [project, member] of queue.memberByProject) {
          const inProject: TaskRow[] = [];
          for (const [user, { partitions, size, cost }] of member.memberByUser) {
            const rows = partitions.flatMap(listed);
            for (const partition of partitions) {
              const orders = listed(partition).map(({ queuedOrder }) => queuedOrder);
              expect(orders).toEqual([...orders].sort((a, b) => a - b));
              expect(new Set(partition.tasks.values())).toEqual(new Set(listed(partition)));
              for (const { failedBy } of listed(partition)) expect(failedBy).toEqual(partition.avoid);
            }
            expect([size, cost]).toEqual([rows.length, rows.reduce((sum, row) => sum + row.cost, 0)]);
            expect(rows.length).toBeGreaterThan(0);
            for (const { spec } of rows) expect([spec.project, spec.user]).toEqual([project, user]);
            inProject.push(...rows);
          }
          expect(member.size).toBe(inProject.length);
          expect(member.cost).toBe(inProject.reduce((sum, row) => sum + row.cost, 0));
          expect(member.users.size).toBe(member.memberByUser.size);
          inQueue.push(...inProject);
        }
        expect([queue.size, queue.projects.size]).toEqual([inQueue.length, queue.memberByProject.size]);
        for (const { spec } of inQueue) {
          const ofRole = spec.role === undefined ? spec.kind : `${spec.kind} ${spec.role}`;
          const needs = Object.entries(spec.needs ?? {}).map(([name, accepted]) => `${name}=${accepted}`);
          expect(key).toBe(needs.length === 0 ? ofRole : `${ofRole} needs ${needs.join(" ")}`);
        }
        found.push(...inQueue);
      }
      const queued = [...state.taskById.values()].filter((row) => row.state === "queued");
      expect(idsOf(found).sort()).toEqual(idsOf(queued).sort());
    }
  });
});
