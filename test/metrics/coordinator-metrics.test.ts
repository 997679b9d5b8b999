// The metrics of a coordinator: what a leader counts and shows, and what a standby leaves out.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { kind, projectId, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { OTHER_NAMES } from "../../src/metrics/bounded-names.ts";
import { CoordinatorMetrics } from "../../src/metrics/coordinator-metrics.ts";
import type { EventOf } from "../../src/state/event.ts";
import { stopped, subjects } from "../support/swarm.ts";
import { live, type MeasuredSwarm, startMeasuredSwarm, version, waitedMs } from "./measured-swarm.ts";
import { sampleOf, samplesIn } from "./metrics-text.ts";

describe("a leader", () => {
  let measured: MeasuredSwarm;
  beforeEach(async () => {
    measured = await startMeasuredSwarm();
  });
  afterEach(() => stopped(measured.swarm, measured.clock));

  const value = (name: string, labels?: Record<string, string>) =>
    sampleOf(measured.metrics.text(), name, labels);

  it("gives every metric a value", async () => {
    await live(measured);
    const { metrics } = measured;
    const sampled = new Set(
      samplesIn(metrics.text()).map(({ name }) => name.replace(/_(bucket|sum|count)$/, "")),
    );
    const missing = metrics.described.map(({ name }) => name).filter((name) => !sampled.has(name));
    expect(missing).toEqual(["waggle_journal_limit_bytes"]); // a journal in memory has no limit
  });

  it("keeps Prometheus' own labels out of the descriptions, as promtool asks", () => {
    const labels = measured.metrics.described.flatMap((metric) => metric.labels);
    expect(labels.filter((label) => label === "quantile" || label === "le")).toEqual([]);
  });

  it("shows event loop and memory of its process", () => {
    expect(value("waggle_event_loop_lag_seconds", { statistic: "p99" })).toBe(0.0015);
    expect(value("waggle_event_loop_lag_seconds", { statistic: "max" })).toBe(0.25);
    expect(value("waggle_heap_used_bytes")).toBe(1e8);
  });

  it("counts tasks, attempts, tokens and refusals", async () => {
    await live(measured);
    expect(value("waggle_tasks_submitted_total", { kind: "count" })).toBe(1);
    expect(value("waggle_task_assignments_total", { kind: "count" })).toBe(1);
    expect(value("waggle_task_assignments_total", { kind: "hogged" })).toBe(
      limits.concentrationAssignmentsMin,
    );
    expect(value("waggle_project_assignments_total", { project: "acme" })).toBe(1);
    expect(value("waggle_tasks_ended_total", { outcome: "completed" })).toBe(1);
    expect(value("waggle_tasks_ended_total", { outcome: "dead-lettered" })).toBe(1);
    expect(value("waggle_tasks_ended_total", { outcome: "cancelled" })).toBe(1);
    expect(value("waggle_tasks_ended_total", { outcome: "expired" })).toBe(0);
    expect(value("waggle_attempts_ended_total", { kind: "review", outcome: "failed" })).toBe(1);
    expect(value("waggle_tokens_used_total", { project: "default" })).toBe(30);
    expect(value("waggle_tokens_used_total", { project: "acme" })).toBe(10);
    expect(value("waggle_tasks_refused_total", { reason: "project-queue-full" })).toBe(2);
    expect(value("waggle_messages_dropped_total", { reason: "invalid" })).toBe(1);
  });

  it("puts waits, runs and scores into buckets", async () => {
    await live(measured);
    const runOf = (le: string) => value("waggle_task_run_seconds_bucket", { kind: "review", le });
    expect([runOf("0.5"), runOf("1"), runOf("+Inf")]).toEqual([0, 1, 1]);
    expect(value("waggle_task_run_seconds_sum", { kind: "review" })).toBe(0.7);
    expect(value("waggle_task_wait_seconds_count", { kind: "count" })).toBe(1);
    const scores = value("waggle_assignment_score_count");
    expect(scores).toBe(2 + limits.concentrationAssignmentsMin);
    expect(value("waggle_assignment_score_sum")).toBeGreaterThan(0);
    expect(value("waggle_assignment_score_sum")).toBeLessThanOrEqual(scores as number);
  });

  it("shows queues, agents, projects, budgets and resources of the moment", async () => {
    await live(measured);
    expect(value("waggle_queue_tasks", { kind: "nobody" })).toBe(2);
    expect(value("waggle_queue_oldest_seconds", { kind: "nobody" })).toBe(waitedMs / 1000);
    expect(value("waggle_tasks", { state: "queued" })).toBe(2);
    expect(value("waggle_agents", { status: "ready" })).toBe(1);
    expect(value("waggle_agents", { status: "busy" })).toBe(2);
    expect(value("waggle_attempts_in_flight")).toBe(limits.concentrationAssignmentsMin);
    expect(value("waggle_agent_capacity")).toBe(2 + 1 + limits.maxConcurrentMax);
    const hog = (limits.concentrationAssignmentsMin - 1) / limits.maxConcurrentMax;
    expect(value("waggle_agent_load")).toBeCloseTo((0 + 1 + hog) / 3, 12);
    expect(value("waggle_project_share", { project: "default" })).toBe(0.75);
    expect(value("waggle_project_target_share", { project: "default" })).toBe(0.75);
    expect(value("waggle_project_target_share", { project: "small" })).toBe(0.25);
    expect(value("waggle_project_target_share", { project: "acme" })).toBeUndefined();
    expect(value("waggle_project_deficit", { project: "small" })).toBe(-0.25);
    expect(value("waggle_budget_spent_tokens", { project: "default" })).toBe(30);
    expect(value("waggle_budget_limit_tokens", { project: "default" })).toBe(1_000);
    expect(value("waggle_swarm_budget_spent_tokens")).toBe(40);
    expect(value("waggle_swarm_budget_limit_tokens")).toBe(5_000);
    expect(value("waggle_tokens_reserved", { project: "default" })).toBeGreaterThan(0);
    const gpu = { resource: "gpu" };
    expect(value("waggle_resource_slots", gpu)).toBe(1);
    expect(value("waggle_resource_slots_used", gpu)).toBe(1);
    expect(value("waggle_resource_waiters", gpu)).toBe(1);
    expect(value("waggle_resource_grants_total", gpu)).toBe(1);
    expect(value("waggle_resource_ticks_total", gpu)).toBe(0);
    expect(value("waggle_resource_alpha", gpu)).toBeGreaterThan(0);
  });

  it("shows a kind concentrated on one agent", async () => {
    await live(measured);
    const of = { kind: "hogged" };
    expect(value("waggle_concentration_share", of)).toBeGreaterThan(0.9);
    expect(value("waggle_concentration_alert", of)).toBe(1);
  });

  it("counts missed heartbeats of silent agents, and each only once", async () => {
    const { clock, agent } = measured;
    await clock.advance(1.4 * limits.heartbeatMs);
    expect(value("waggle_agent_missed_heartbeats_total")).toBe(0);
    await clock.advance(0.4 * limits.heartbeatMs);
    expect(value("waggle_agent_missed_heartbeats_total")).toBe(1);
    await agent.heartbeat([], 0, { status: "ready" });
    await clock.advance(2 * limits.heartbeatMs);
    expect(value("waggle_agent_missed_heartbeats_total")).toBe(2);
  });

  it("measures turns, appends and batches, and names its role and term", async () => {
    await live(measured);
    const batches = value("waggle_journal_append_seconds_count");
    expect(value("waggle_batch_events_count")).toBe(batches);
    expect(value("waggle_journal_idx")).toBe(batches);
    expect(value("waggle_decision_seconds_count")).toBeGreaterThanOrEqual(batches as number);
    expect(value("waggle_journal_appended_bytes_total")).toBeGreaterThan(1_000);
    expect(value("waggle_coordinator_role", { role: "leading" })).toBe(1);
    expect(value("waggle_coordinator_role", { role: "standing-by" })).toBe(0);
    expect(value("waggle_coordinator_term")).toBe(1);
    expect(value("waggle_journal_lag_batches")).toBe(0);
    expect(value("waggle_build_info", { version })).toBe(1);
  });

  it("has no series of agents unless asked for", async () => {
    await live(measured);
    expect(samplesIn(measured.metrics.text()).filter(({ labels }) => "agent" in labels)).toEqual([]);
  });
});

it("by agent, shows the load of each online agent", async () => {
  const measured = await startMeasuredSwarm({ byAgent: true });
  await live(measured);
  const text = measured.metrics.text();
  expect(sampleOf(text, "waggle_agent_load", { agent: "a1" })).toBe(0);
  expect(sampleOf(text, "waggle_agent_load", { agent: "small" })).toBe(1);
  await stopped(measured.swarm, measured.clock);
});

it("a standby shows role, term and lag, and nothing of the swarm", async () => {
  const { swarm, clock } = await startMeasuredSwarm();
  const metrics = new CoordinatorMetrics({ version });
  await swarm.startAnother("c2", undefined, { metrics });
  await swarm.submit("t1");
  await clock.advance(limits.leaderTimeoutMs);
  const text = metrics.text();
  expect(sampleOf(text, "waggle_coordinator_role", { role: "standing-by" })).toBe(1);
  expect(sampleOf(text, "waggle_coordinator_role", { role: "leading" })).toBe(0);
  expect(sampleOf(text, "waggle_coordinator_term")).toBe(1);
  expect(sampleOf(text, "waggle_journal_lag_batches")).toBe(0);
  expect(sampleOf(text, "waggle_journal_idx")).toBeGreaterThan(1);
  const swarmwide = samplesIn(text).filter(({ name }) =>
    /^waggle_(tasks|queue|agents|agent_load|project)$/.test(name),
  );
  expect(swarmwide).toEqual([]);
  await stopped(swarm, clock);
});

it("before a coordinator runs, only the process is shown", () => {
  const text = new CoordinatorMetrics({ version }).text();
  expect(sampleOf(text, "process_resident_memory_bytes")).toBeGreaterThan(1e6);
  expect(sampleOf(text, "waggle_coordinator_term")).toBeUndefined();
});

it("kinds beyond the bound share one series", () => {
  const metrics = new CoordinatorMetrics({ version });
  const more = 50;
  for (let n = 0; n < limits.metricNamesMax + more; n += 1) {
    const task = { id: taskId("t"), kind: kind(`k${n}`), project: projectId("p") };
    const event = { type: "TaskSubmitted", task, hash: "" } as unknown as EventOf<"TaskSubmitted">;
    metrics.committed([{ event, project: "p", kind: undefined }]);
  }
  const submitted = samplesIn(metrics.text()).filter(({ name }) => name === "waggle_tasks_submitted_total");
  expect(submitted).toHaveLength(limits.metricNamesMax + 1);
  expect(submitted.find(({ labels }) => labels["kind"] === OTHER_NAMES)?.value).toBe(more);
});

it("without metrics, status still has the times of turns and appends", async () => {
  const { swarm, clock } = await startMeasuredSwarm();
  await swarm.submit("t1", "t2");
  const { observed } = await swarm.client.ask(subjects.query("_", "status"), {});
  expect(observed.timings).toMatchObject({
    windowMs: limits.timingsWindowMs,
    decision: { count: expect.any(Number), p50: expect.any(Number), p99: expect.any(Number) },
    append: { count: expect.any(Number), max: expect.any(Number) },
  });
  await stopped(swarm, clock);
});
