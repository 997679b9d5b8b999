// The answer of the MCP tool `status`: what a model decides by comes first, and offline agents do not fill it.

import { expect, it } from "vitest";
import { boundedLines } from "../../src/adapters/mcp/answer.ts";
import { statusLines } from "../../src/adapters/mcp/status-lines.ts";
import { limits } from "../../src/limits.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { anAgent, aStatus } from "../support/statuses.ts";

const read = (status: Partial<StatusResponse>) =>
  statusLines(aStatus(status)).map((line): Record<string, unknown> => JSON.parse(line));
const holdOn = (name: string) =>
  ({ on: "agent", name, until: 9_000, since: 0, phase: "held", by: "agent", reason: "429" }) as const;

it("begins with totals, holds of agents online, and queues; then come the agents online", () => {
  const lines = read({
    tasks: { queued: 3 },
    agents: [
      ...Array.from({ length: 60 }, (_, at) => anAgent(`gone${at}`, { status: "offline" })),
      anAgent("here"),
    ],
    holds: [...Array.from({ length: 60 }, (_, at) => holdOn(`gone${at}`)), holdOn("here")],
    queues: [{ kind: "count", waiting: 3, oldestMs: 5, agents: 1 }],
    projects: [{ project: "p", tasks: {}, users: [] }],
  });
  expect(lines).toMatchObject([
    { tasks: { queued: 3 }, agents: { online: 1, offline: 60 } },
    { onHold: "here", is: "agent" },
    { queue: "count", waiting: 3 },
    { project: "p", users: 0 },
    { agent: "here" },
  ]);
});

it("bounds each table, so that a long one leaves room for the others", () => {
  const many = 200;
  const lines = read({
    queues: Array.from({ length: many }, (_, at) => ({ kind: `k${at}`, waiting: 1, oldestMs: 5, agents: 1 })),
    agents: Array.from({ length: many }, (_, at) => anAgent(`a${at}`)),
  });
  const notShown = many - limits.mcpStatusRowsMax;
  expect(lines).toContainEqual({ notShown, of: "queues" });
  expect(lines.at(-1)).toEqual({ notShown, of: "agents" });
  const text = lines.map((line) => JSON.stringify(line));
  expect(boundedLines(text, { hint: "none" })).toBe(text.join("\n"));
});
