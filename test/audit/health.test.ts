// The rules of health, one by one, on answers of `status`.

import { describe, expect, it } from "vitest";
import { type HealthRule, healthOf } from "../../src/audit/health.ts";
import { limits } from "../../src/limits.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { aKind, anAgent, aStatus } from "../support/statuses.ts";

const rulesOf = (more: Partial<StatusResponse>) => healthOf(aStatus(more)).findings.map(({ rule }) => rule);
const queue = (more: Partial<StatusResponse["queues"][number]> = {}) => ({
  kind: "count",
  waiting: 3,
  oldestMs: limits.healthWaitMs,
  agents: 1,
  ...more,
});
const full = anAgent("a1", { saturated: true, inFlight: 4, status: "busy" });
const budget = { spent: 90, reserved: 10, tokens: 100, windowMs: 1_000, mode: "wait" as const };
const waitingTasks = { queued: 3 };
const observed = { windowMs: 1_000, bottlenecks: [], concentration: [], soleAgents: [] };
const timings = (p50: number, count: number = limits.healthAppendsMin) => ({
  windowMs: limits.timingsWindowMs,
  append: { count, p50, p99: 900, max: 900 },
});
const bytesMax = 1_000;
const journal = { ...aStatus().journal, bytesMax };

describe("a healthy swarm", () => {
  it("has its work as the verdict, and nothing to do next", () => {
    const tasks = { queued: 2, running: 1 };
    const queues = [queue({ waiting: 2, oldestMs: 2_000 })];
    const found = healthOf(aStatus({ tasks, queues, agents: [full] }));
    expect(found).toEqual({
      level: "ok",
      verdict: "1 task runs, 2 wait, the oldest for 2 s",
      next: undefined,
      areas: { flow: "ok", execution: "ok", liveness: "ok" },
      findings: [],
    });
    expect(healthOf(aStatus({ tasks: { completed: 1 } }))).toMatchObject({
      verdict: "no task waits or runs",
      next: undefined,
    });
  });

  it("names the first step in a new swarm: an agent, then a task", () => {
    const next = "waggle agent --kind count --exec 'wc -w'";
    const text = "the swarm is new: no agent has joined, and no task was submitted yet";
    expect(healthOf(aStatus())).toMatchObject({ level: "ok", verdict: text, next });
    expect(healthOf(aStatus({ agents: [anAgent("a1", { kinds: [aKind("ocr")] })] }))).toMatchObject({
      level: "ok",
      verdict: "1 agent joined, and no task was submitted yet",
      next: "waggle submit --kind ocr --text 'hello' --wait",
    });
  });

  it.each<[string, Partial<StatusResponse>]>([
    ["whose agents left", { agents: [anAgent("a1", { status: "offline" })] }],
    ["whose only task was cancelled", { tasks: { cancelled: 1 } }],
  ])("has no first step in a swarm %s", (_name, more) => {
    expect(healthOf(aStatus(more)).next).toBeUndefined();
  });

  it("is healthy without a standby, which is a note", () => {
    const found = healthOf(aStatus({ standbys: [], journal: { ...journal, durability: "page-cache" } }));
    expect(found).toMatchObject({ level: "note", findings: [{ rule: "no-standby" }] });
  });
});

it.each<[HealthRule, string, Partial<StatusResponse>, RegExp, string]>([
  [
    "paused",
    "critical",
    { paused: true, tasks: waitingTasks },
    /^the swarm is paused, and 3 tasks wait$/,
    "waggle resume",
  ],
  [
    "paused",
    "attention",
    { projects: [{ project: "p", paused: true, tasks: { queued: 1 }, users: [] }] },
    /^the project p is paused, and 1 task waits$/,
    "waggle resume p",
  ],
  [
    "nobody-capable",
    "critical",
    { queues: [queue({ agents: 0, oldestMs: 0 })] },
    /^3 tasks of kind count wait, and no agent online serves it$/,
    "waggle agent --kind count --exec COMMAND",
  ],
  [
    "nobody-capable",
    "critical",
    { queues: [queue({ agents: 0, oldestMs: 0, needs: { gpu: ["a100", "h100"] } })] },
    /^3 tasks of kind count with gpu=a100 or gpu=h100 wait, and no agent online that serves it has these labels$/,
    "waggle agent --kind count --label gpu=a100 --exec COMMAND",
  ],
  [
    "overloaded",
    "attention",
    {
      agents: [{ ...full, labels: { gpu: "a100" } }, anAgent("a2", {})],
      queues: [queue({ needs: { gpu: ["a100"] } })],
    },
    /^3 tasks of kind count with gpu=a100 wait for up to 30 s, and every agent for it is full$/,
    "waggle agent --kind count --label gpu=a100 --exec COMMAND",
  ],
  [
    "nobody-free",
    "critical",
    { queues: [queue()], agents: [anAgent("a1", { draining: true })] },
    /its agents drain, are silent, suspended or on hold$/,
    "waggle status",
  ],
  [
    "overloaded",
    "attention",
    { queues: [queue()], agents: [full] },
    /^3 tasks of kind count wait for up to 30 s, and every agent for it is full$/,
    "waggle agent --kind count --exec COMMAND",
  ],
  [
    "held-back",
    "attention",
    { queues: [queue({ oldestMs: 120_000 })], agents: [anAgent("a1")] },
    /^3 tasks of kind count wait for up to 2(\.0)? min beside free agents/,
    "waggle tasks --state queued --kind count --sort oldest",
  ],
  [
    "budget-used-up",
    "attention",
    { projects: [{ project: "p", budget, tasks: waitingTasks, users: [] }] },
    /^the budget of the project p is used up, and 3 tasks may wait for it$/,
    "waggle project show p",
  ],
  [
    "budget-used-up",
    "attention",
    { budget, tasks: waitingTasks },
    /^the budget of the swarm/,
    "waggle policy show",
  ],
  [
    "rate-limit",
    "attention",
    {
      tasks: waitingTasks,
      at: 1_000,
      rates: [
        { type: "claude", window: "per_minute", sliding: false, tokensMax: 10, used: 10, opensAt: 31_000 },
      ],
    },
    /^agents of type claude used up their rate per minute, and get tasks again in 30 s$/,
    "waggle rate show claude",
  ],
  [
    "failing-kind",
    "critical",
    {
      agents: [anAgent("a1", { kinds: [aKind("count", { attempts: 20, completed: 4, successRate: 0.2 })] })],
    },
    /^attempts of kind count fail: 80 % of the recent ones$/,
    "waggle tasks --kind count --state dead-lettered",
  ],
  [
    "on-hold",
    "attention",
    {
      holds: [
        { on: "type", name: "claude", until: 70_000, since: 0, phase: "held", by: "agent", reason: "429" },
      ],
      at: 10_000,
    },
    /^all claude agents are on hold for 1 min more \(ends by itself at 1970-01-01T00:01:10.000Z\): 429$/,
    "waggle status",
  ],
  [
    "on-hold",
    "attention",
    {
      holds: [
        { on: "type", name: "claude", until: 70_000, since: 0, phase: "held", by: "refusals", reason: "no" },
      ],
      agents: [anAgent("a1", { type: "claude" }), anAgent("a2", { type: "claude", status: "offline" })],
      at: 10_000,
    },
    /^all claude agents are on hold for 1 min more: refusals in a row without a time, the last: no$/,
    "waggle unhold type claude",
  ],
  [
    "suspended",
    "attention",
    { agents: [anAgent("a1", { kinds: [aKind("count", { suspendedUntil: 9 })] })] },
    /^the agent a1 is suspended for count/,
    "waggle events --agent a1 --type AttemptFailed --tail 20",
  ],
  ["no-leader", "critical", { stale: true }, /a standby answered$/, "waggle doctor"],
  [
    "agents-silent",
    "attention",
    { agents: [anAgent("a1", { unresponsive: true, silentMs: 7_000 })] },
    /^1 agent is silent: a1$/,
    "waggle status --all",
  ],
  [
    "two-processes",
    "attention",
    { agents: [anAgent("a1", { outlivedMs: 5 })] },
    /^two processes run as the agent a1/,
    "waggle events --agent a1 --tail 20",
  ],
  [
    "journal-nearly-full",
    "critical",
    { journal: { ...journal, bytes: 0.9 * bytesMax } },
    /^the journal is 90 % full/,
    "waggle doctor",
  ],
  [
    "journal-not-compacted",
    "attention",
    { journal: { ...journal, baseFailure: "no room" } },
    /cannot be compacted: no room$/,
    "waggle doctor",
  ],
  [
    "journal-changed",
    "critical",
    {
      journal: {
        ...journal,
        verified: { idx: 4, fault: { segment: 1, idx: 5, text: "batch 5 was changed" } },
      },
    },
    /not as it was written: batch 5 was changed$/,
    "waggle verify",
  ],
  [
    "foreign-records",
    "attention",
    { journal: { ...journal, foreignRecords: { count: 2, lastAt: 0 } } },
    /another program writes into the journal: 2 records$/,
    "waggle doctor",
  ],
  [
    "journal-slow",
    "attention",
    { observed: { ...observed, timings: timings(limits.healthAppendMs) } },
    /^the journal is slow: half of its recent appends took 200 ms or longer/,
    "waggle doctor",
  ],
])("%s is found (%s)", (rule, level, status, text, next) => {
  const { findings, ...found } = healthOf(aStatus(status));
  expect(findings).toEqual([
    expect.objectContaining({ rule, level, next, text: expect.stringMatching(text) }),
  ]);
  expect(found).toMatchObject({ level, next, verdict: findings[0]?.text });
});

describe("no finding", () => {
  it.each<[string, Partial<StatusResponse>]>([
    ["of a queue that waits for a moment", { queues: [queue({ oldestMs: 5_000 })], agents: [full] }],
    ["of a queue whose agents have room", { queues: [queue()], agents: [full, anAgent("a2")] }],
    [
      "of a kind with few attempts",
      {
        agents: [anAgent("a1", { kinds: [aKind("count", { attempts: 3, successRate: 0.1 })] })],
      },
    ],
    [
      "of holds on agents that are offline",
      {
        holds: [
          { on: "agent", name: "a1", until: 70_000, since: 0, phase: "held", by: "agent", reason: "429" },
          { on: "type", name: "claude", until: 70_000, since: 0, phase: "held", by: "agent", reason: "429" },
        ],
        agents: [anAgent("a1", { type: "claude", status: "offline" })],
      },
    ],
    ["of agents that are offline", { agents: [anAgent("a1", { status: "offline", unresponsive: true })] }],
    ["of a missing standby on a journal for one coordinator", { standbys: [] }],
    [
      "of a paused project without tasks",
      { projects: [{ project: "p", paused: true, tasks: {}, users: [] }] },
    ],
    [
      "of a journal with a few slow appends",
      { observed: { ...observed, timings: timings(limits.healthAppendMs - 1) } },
    ],
    [
      "of a journal with hardly any appends",
      { observed: { ...observed, timings: timings(5_000, limits.healthAppendsMin - 1) } },
    ],
    [
      "of foreign records of long ago",
      {
        at: 10 * limits.foreignRecordShownMs,
        journal: { ...journal, foreignRecords: { count: 2, lastAt: 0 } },
      },
    ],
  ])("%s", (_, status) => {
    expect(rulesOf(status)).toEqual([]);
  });
});

it("puts the worst first", () => {
  const found = healthOf(
    aStatus({
      queues: [queue({ agents: 0 })],
      agents: [anAgent("a1", { unresponsive: true, kinds: [aKind("other")] })],
      standbys: [],
      journal: { ...journal, durability: "replicated" },
    }),
  );
  expect(found.findings.map(({ rule }) => rule)).toEqual(["nobody-capable", "agents-silent", "no-standby"]);
  expect(found).toMatchObject({
    level: "critical",
    areas: { flow: "critical", execution: "ok", liveness: "attention" },
  });
});
