// Answers from before a field was added remain valid: later fields are optional or have a default. The test names a
// field that is required instead.

import { expect, it } from "vitest";
import { check } from "../../src/protocol/codec.ts";
import { obstacleSchema } from "../../src/protocol/explain-schemas.ts";
import { statusResponseSchema } from "../../src/protocol/schemas.ts";

const firstStatus = {
  ...{ term: 1, idx: 2, at: 3, swarm: "s", leader: "c1", tasks: { queued: 1 } },
  agents: [],
  queues: [{ kind: "k", waiting: 1, oldestMs: 5, agents: 0 }],
  projects: [{ project: "p", tasks: {}, users: [{ user: "u", tasks: {}, waitMsMean: 0, waitMsMax: 0 }] }],
  journal: { id: "j", durability: "file", sentence: "It is safe", bytes: 10 },
  counters: {},
};

it("status, as it was first answered", () => {
  const checked = check(firstStatus, statusResponseSchema);
  expect(checked).toMatchObject({ ok: true, value: { resources: [] } });
  expect(checked).not.toHaveProperty("value.metrics");
});

it("status with a rate without reserved tokens, and without counts of omitted rows", () => {
  const rate = { type: "claude", window: "per_day", sliding: true, tokensMax: 5, used: 1 };
  const omitted = { agents: 1, queues: 0, projects: 0, users: 0 };
  const checked = check({ ...firstStatus, rates: [rate], omitted }, statusResponseSchema);
  expect(checked).toMatchObject({
    ok: true,
    value: { rates: [rate], omitted: { ...omitted, resources: 0, rates: 0 } },
  });
});

it("why a task waits, before what is away or reserved was counted", () => {
  const role = { reason: "no-agent-has-role", kind: "k", role: "r", nearMisses: [], agents: 1 };
  expect(check(role, obstacleSchema)).toMatchObject({ ok: true, value: { offline: 0, draining: 0 } });
  const rate = { type: "t", used: 1, tokensMax: 1, window: "per_day", agents: 1 };
  const limited = check({ reason: "rate-limited", ...rate }, obstacleSchema);
  expect(limited).toMatchObject({ ok: true, value: { reserved: 0 } });
});
