// Answers of `status` for tests of what is made of them.

import type { StatusResponse } from "../../src/protocol/schemas.ts";

export type AgentRow = StatusResponse["agents"][number];

export const aKind = (
  kind: string,
  more: Partial<AgentRow["kinds"][number]> = {},
): AgentRow["kinds"][number] => ({
  kind,
  completed: 0,
  attempts: 0,
  successRate: 0.8,
  latencyMs: 0,
  ...more,
});

export const anAgent = (id: string, more: Partial<AgentRow> = {}): AgentRow => ({
  id,
  status: "ready",
  saturated: false,
  draining: false,
  unresponsive: false,
  kinds: [aKind("count")],
  labels: {},
  inFlight: 0,
  maxConcurrent: 4,
  prefetch: 0,
  load: 0,
  completed: 0,
  ...more,
});

export const aStatus = (more: Partial<StatusResponse> = {}): StatusResponse => ({
  term: 1,
  idx: 1,
  at: 0,
  swarm: "s",
  leader: "c1",
  tasks: {},
  agents: [],
  queues: [],
  projects: [],
  resources: [],
  journal: { id: "j", durability: "file", sentence: "", bytes: 0, auditFirstIdx: 1 },
  counters: {},
  ...more,
});
