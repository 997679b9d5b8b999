// The leader's observations of the load: first the monitor by itself, then in a swarm, in status and log.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Monitor } from "../../src/coordinator/leader/monitor.ts";
import { agentId, type Instant, instant, kind, projectId, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { EventOf } from "../../src/state/event.ts";
import type { IneligibleReason } from "../../src/state/receipt.ts";
import { emptyState } from "../../src/state/state.ts";
import { swarmMetricsOf } from "../../src/views/status-rows.ts";
import { keptLog, type LogLine } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger, startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { join, submit, Turns } from "../support/turns.ts";

const enough = limits.concentrationAssignments;
const fewest = limits.concentrationAssignmentsMin;
const begins = "one agent gets most tasks of a kind";
const ends = "tasks of a kind are spread over its agents again";

describe("alerts", () => {
  let lines: LogLine[];
  let monitor: Monitor;
  let at: Instant;

  beforeEach(() => {
    const kept = keptLog();
    lines = kept.lines;
    monitor = new Monitor(emptyState(), kept.logger);
    at = instant(0);
  });

  type Ineligible = Partial<Record<IneligibleReason, number>>;

  /** So many assignments of a kind, to each of the agents in turn. */
  function assign(
    count: number,
    agents: string[],
    { of = "k", feasible = 10, ineligible = {} as Ineligible } = {},
  ) {
    for (let n = 0; n < count; n += 1) {
      const agent = agentId(agents[n % agents.length] ?? "nobody");
      const receipt = { feasible, ineligible } as EventOf<"TaskAssigned">["receipt"];
      const event = { type: "TaskAssigned", task: taskId("t"), runsAs: kind(of), agent, receipt } as const;
      monitor.committed([
        {
          event: event as EventOf<"TaskAssigned">,
          project: "p",
          kind: event.runsAs,
          from: 0,
          to: 0,
          contentsFrom: 0,
          contentsTo: 0,
        },
      ]);
    }
  }

  function pass(ms: number): void {
    for (let left = ms; left > 0; left -= limits.pulseMs) {
      at = instant(at + Math.min(left, limits.pulseMs));
      monitor.pulse(at);
    }
  }

  const spread = ["a1", "a2", "a3", "a4"];

  it("begin once and end once in the log, and stand in between", () => {
    assign(enough, ["a1"]);
    pass(5_000);
    expect(monitor.alerts()).toEqual([
      { kind: "k", agent: "a1", share: 1, threshold: 0.4, assignments: enough, since: limits.pulseMs },
    ]);
    expect(lines).toEqual([{ level: "warn", kind: "k", agent: "a1", share: 1, threshold: 0.4, msg: begins }]);
    assign(enough, spread);
    pass(limits.concentrationQuietMs - limits.pulseMs);
    expect(monitor.alerts()).toEqual([]);
    expect(lines).toHaveLength(1);
    pass(limits.pulseMs);
    pass(10 * limits.concentrationQuietMs);
    expect(lines.slice(1)).toEqual([{ level: "info", kind: "k", msg: ends }]);
  });

  it("that come and go fill one line of the log", () => {
    for (let n = 0; n < 20; n += 1) {
      assign(enough, n % 2 === 0 ? ["a1"] : spread);
      pass(limits.concentrationQuietMs / 2);
      expect(monitor.alerts()).toHaveLength(n % 2 === 0 ? 1 : 0);
    }
    expect(lines.map(({ msg }) => msg)).toEqual([begins]);
  });

  it("are of each kind by itself, the highest share first", () => {
    assign(enough, ["a1", "a1", "a1", "a2"], { of: "one" });
    assign(enough, ["a2"], { of: "other" });
    assign(enough, spread, { of: "even" });
    assign(fewest - 1, ["a1"], { of: "few" });
    pass(limits.pulseMs);
    expect(monitor.alerts()).toMatchObject([
      { kind: "other", agent: "a2" },
      { kind: "one", agent: "a1", share: 0.75 },
    ]);
  });

  it("count agents of the kind, free or not, and no other agents", () => {
    const busy = { full: 3, suspended: 2, unresponsive: 2, "rate-limited": 1, "failed-this-task": 1 };
    assign(enough, ["a1"], { of: "served", feasible: 1, ineligible: busy });
    const others = { offline: 9, draining: 9, "wrong-kind": 9, "wrong-role": 9 };
    assign(enough, ["a1"], { of: "alone", feasible: 1, ineligible: others });
    pass(limits.pulseMs);
    expect(monitor.alerts()).toMatchObject([{ kind: "served", threshold: 0.4 }]);
    expect(monitor.soleAgents()).toEqual([{ kind: "alone", agent: "a1" }]);
  });

  it("watch a limited number of kinds, the last assigned, and let go of the others", () => {
    assign(enough, ["a1"], { of: "old" });
    pass(limits.pulseMs);
    for (let n = 0; n < limits.concentrationKindsMax - 1; n += 1) assign(1, ["a1"], { of: `k${n}` });
    pass(limits.pulseMs);
    expect(monitor.alerts()).toHaveLength(1);
    assign(1, ["a1"], { of: "one-more" });
    pass(limits.pulseMs);
    expect(monitor.alerts()).toEqual([]);
    assign(fewest - 1, ["a1"], { of: "old" });
    pass(limits.pulseMs);
    expect(monitor.alerts()).toEqual([]);
  });
});

describe("a bottleneck", () => {
  /** Sole agents, over a second of states between turns. */
  function bottlenecksOf(turns: Turns): string[] {
    const monitor = new Monitor(turns.state, silentLogger);
    monitor.pulse(turns.at);
    monitor.pulse(instant(turns.at + 1_000));
    return monitor.bottlenecks().map(({ agent }) => agent);
  }

  const waiting = (count: number, overrides: Parameters<typeof submit>[0] = {}) =>
    Array.from({ length: count }, (_, n) =>
      submit({ id: taskId(`t${n}-${overrides.kind ?? "k"}-${overrides.role ?? ""}`), ...overrides }),
    );

  it("is full while a task it could run waits", () => {
    const turns = new Turns();
    turns.turn(
      join("full"),
      join("idle", { kinds: [kind("other")] }),
      join("unasked", { kinds: [kind("third")] }),
    );
    turns.turn(...waiting(2), ...waiting(1, { kind: kind("third") }));
    expect(bottlenecksOf(turns)).toEqual(["full"]);
  });

  it("is no agent with free capacity, or that only lacks the role", () => {
    const turns = new Turns();
    turns.turn(join("a", { role: "reader" }), join("b", { role: "writer" }));
    turns.turn(...waiting(2), ...waiting(1, { role: "writer" }));
    expect(bottlenecksOf(turns)).toEqual(["b"]);
  });

  it("is no agent while an operator holds the tasks back", () => {
    const turns = new Turns();
    turns.turn(join("a"));
    turns.turn(...waiting(2));
    expect(bottlenecksOf(turns)).toEqual(["a"]);
    turns.turn({ type: "Pause", project: projectId("p") });
    expect(bottlenecksOf(turns)).toEqual([]);
    turns.turn(...waiting(1, { project: projectId("q"), id: taskId("q1") }));
    expect(bottlenecksOf(turns)).toEqual(["a"]);
    turns.turn({ type: "Pause" });
    expect(bottlenecksOf(turns)).toEqual([]);
    turns.turn({ type: "Resume" }, { type: "DrainAgent", agent: agentId("a") });
    expect(bottlenecksOf(turns)).toEqual([]);
  });
});

describe("the metrics", () => {
  it("are 0 for an empty swarm", () => {
    expect(swarmMetricsOf(emptyState())).toEqual({
      totalAgents: 0,
      idleAgents: 0,
      busyAgents: 0,
      offlineAgents: 0,
      totalInFlight: 0,
      avgSuccessRate: 0,
      avgLoad: 0,
    });
  });

  it("count offline agents as idle too, as their document does, and learn from outcomes", () => {
    const turns = new Turns();
    turns.turn(join("a", { maxConcurrent: 2 }), join("b"), join("holder", { kinds: [] }));
    turns.turn(submit());
    const fresh = swarmMetricsOf(turns.state);
    expect(fresh).toEqual({
      totalAgents: 2,
      idleAgents: 1,
      busyAgents: 1,
      offlineAgents: 0,
      totalInFlight: 1,
      avgSuccessRate: expect.closeTo(limits.priorSuccessRate, 12),
      avgLoad: expect.any(Number),
    });
    turns.turn(turns.report("t1", { kind: "completed", result: "" }));
    turns.turn({ type: "LeaveAgent", agent: agentId("b"), incarnation: turns.agent("b").incarnation });
    const later = swarmMetricsOf(turns.state);
    expect(later).toMatchObject({
      totalAgents: 2,
      idleAgents: 2,
      offlineAgents: 1,
      totalInFlight: 0,
      avgLoad: 0,
    });
    expect(later.avgSuccessRate).toBeGreaterThan(fresh.avgSuccessRate);
  });

  it("leave out agents that hold only slots, online or gone", () => {
    const turns = new Turns();
    turns.turn(join("a"));
    const alone = swarmMetricsOf(turns.state);
    for (let n = 0; n < 40; n += 1) {
      const of = join(`holder-${n}`, { kinds: [] });
      turns.turn(of);
      if (n > 0) turns.turn({ type: "LeaveAgent", agent: of.agent, incarnation: of.incarnation });
    }
    expect(turns.state.agentById.size).toBe(41);
    expect(swarmMetricsOf(turns.state)).toEqual(alone);
  });
});

describe("in a swarm", () => {
  let clock: ManualClock;
  let swarm: TestSwarm;
  let lines: LogLine[];

  beforeEach(async () => {
    clock = new ManualClock();
    const kept = keptLog();
    lines = kept.lines;
    swarm = await startTestSwarm({ clock, logger: kept.logger });
  });
  afterEach(() => swarm.stop());

  it("a full agent with waiting tasks of the kind shows as a bottleneck, with the share of the time", async () => {
    const slow = await swarm.agent("slow", { kinds: ["review"], maxConcurrent: 1 });
    await swarm.agent("quick", { kinds: ["count"], maxConcurrent: 1 });
    await clock.advance(limits.pulseMs); // seen for the first time
    expect(await swarm.client.status()).toMatchObject({
      metrics: { totalAgents: 2, idleAgents: 2, totalInFlight: 0, avgLoad: 0 },
      observed: { windowMs: limits.bottleneckWindowMs, bottlenecks: [], concentration: [], soleAgents: [] },
    });
    await swarm.client.submit([{ kind: "review" }, { kind: "review" }, { kind: "count" }]);
    const first = await slow.assignment();
    await clock.advance(2 * limits.pulseMs); // found full at the first pulse
    const { metrics, observed } = await swarm.client.status();
    expect(metrics).toMatchObject({
      totalAgents: 2,
      idleAgents: 0,
      busyAgents: 2,
      totalInFlight: 2,
      avgLoad: 1,
    });
    expect(observed.bottlenecks).toEqual([{ agent: "slow", share: 0.5, observedMs: 2 * limits.pulseMs }]);
    await slow.complete(first);
    await clock.advance(2 * limits.pulseMs);
    expect((await swarm.client.status()).observed.bottlenecks).toEqual([
      { agent: "slow", share: 0.5, observedMs: 4 * limits.pulseMs },
    ]);
  });

  it("an alert begins when one agent gets most, is warned of once, and ends when it is spread again", async () => {
    for (const id of ["b1", "b2", "b3"]) await swarm.agent(id, { maxConcurrent: 1 });
    await swarm.agent("hog", { maxConcurrent: limits.maxConcurrentMax });
    const ids = (from: number, count: number) => Array.from({ length: count }, (_, n) => `t${from + n}`);
    await swarm.submit(...ids(0, enough));
    await clock.advance(4 * limits.pulseMs);
    const found = { share: 0.997, threshold: 0.7, assignments: enough, since: expect.any(Number) };
    const alert = { kind: "count", agent: "hog", ...found };
    expect((await swarm.client.status()).observed.concentration).toEqual([alert]);
    const said = () => lines.filter(({ msg }) => [begins, ends].includes(msg));
    expect(said()).toEqual([expect.objectContaining({ level: "warn", kind: "count", agent: "hog" })]);

    await swarm.client.ask(subjects.operator("drain"), { agent: "hog" });
    for (const id of ["c1", "c2", "c3"]) await swarm.agent(id, { maxConcurrent: limits.maxConcurrentMax });
    await swarm.submit(...ids(enough, enough));
    await clock.advance(limits.pulseMs);
    expect((await swarm.client.status()).observed.concentration).toEqual([]);
    expect(said()).toHaveLength(1);
    for (const from of [0, enough])
      await swarm.client.ask(subjects.project("default", "cancel"), {
        tasks: ids(from, enough).map((task) => ({ task, round: 1 })),
      });
    await clock.advance(limits.concentrationQuietMs);
    expect(said().slice(1)).toEqual([expect.objectContaining({ level: "info", kind: "count", msg: ends })]);
  });

  it("an agent that serves a kind alone is a note, no alert", async () => {
    await swarm.agent("lone", { maxConcurrent: limits.maxConcurrentMax });
    await swarm.submit(...Array.from({ length: fewest }, (_, n) => `t${n}`));
    await clock.advance(4 * limits.pulseMs);
    const { observed } = await swarm.client.status();
    expect(observed).toMatchObject({ concentration: [], soleAgents: [{ kind: "count", agent: "lone" }] });
    expect(lines.filter(({ msg }) => msg === begins)).toEqual([]);
  });
});
