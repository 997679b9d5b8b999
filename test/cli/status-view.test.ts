// The first screen of `waggle status`, and the rows of its tables.

import { describe, expect, it } from "vitest";
import { Output } from "../../src/cli/output.ts";
import { renderStatus } from "../../src/cli/status-view.ts";
import type { StatusResponse } from "../../src/protocol/schemas.ts";
import { aKind, anAgent, aStatus } from "../support/statuses.ts";
import { aShell } from "./shell.ts";

const { colors, asStarted } = new Output(aShell(), { json: false });

const shown = (more: Partial<StatusResponse>, options: { showsAll?: boolean; columns?: number } = {}) =>
  renderStatus(aStatus(more), {
    colors,
    asStarted,
    columns: options.columns,
    showsAll: options.showsAll === true,
  });

describe("the first screen", () => {
  it("counts the agents that are online before all else", () => {
    const agents = [
      anAgent("a1"),
      anAgent("a2"),
      anAgent("a3", { status: "busy" }),
      anAgent("a4", { status: "offline" }),
      anAgent("slots", { kinds: [] }),
    ];
    expect(shown({ agents })).toMatch(/^agents +3 agents online: 2 ready, 1 busy; 1 offline$/m);
    expect(shown({})).toMatch(/^agents +0 agents online$/m);
  });

  it("says why tasks wait, kinds without agents first", () => {
    const text = shown({
      tasks: { queued: 9 },
      agents: [anAgent("a1", { status: "busy", inFlight: 4, load: 1 })],
      queues: [
        { kind: "count", waiting: 5, oldestMs: 60_000, agents: 1 },
        { kind: "reveiw", waiting: 4, oldestMs: 2_000, agents: 0 },
      ],
    });
    expect(text).toMatch(
      /^ +reveiw: 4 waiting for up to 2 s, no agent online serves it\n +count: 5 waiting for up to 1 min, 1 agent serves it: 1 full\n +why a task waits: `waggle explain ID`$/m,
    );
  });

  it("names paused projects and used up budgets", () => {
    const budget = { spent: 90, reserved: 10, tokens: 100, windowMs: 60_000, mode: "reject" as const };
    const text = shown({
      paused: true,
      tasks: { queued: 1 },
      projects: [
        { project: "red", tasks: { queued: 1 }, budget, users: [] },
        { project: "blue", paused: true, tasks: {}, users: [] },
      ],
    });
    expect(text).toContain("paused: nothing is assigned until `waggle resume`");
    expect(text).toMatch(/paused projects: blue/);
    expect(text).toMatch(/budget used up: red/);
  });

  it("fits 60 columns", () => {
    const queues = Array.from({ length: 30 }, (_, n) => ({
      kind: `a-kind-with-a-rather-long-name-${n}`,
      waiting: 1_000,
      oldestMs: 3_600_000 + n,
      agents: n % 2,
    }));
    const text = shown({ tasks: { queued: 30_000 }, queues }, { columns: 60 });
    expect(text.split("\n").filter((line) => line.length > 60)).toEqual([]);
  });
});

describe("a swarm of 3 agents, 3 projects and 2,000 kinds, at 60 columns", () => {
  const kindName = (n: number) => `acme.team-${n % 40}.document-processing-step-${n}`;
  const agents = ["claude-reviewer-eu-west-1a", "gpt-summariser-7", "a3"].map((id, at) =>
    anAgent(id, {
      status: "busy",
      inFlight: 4,
      kinds: Array.from({ length: 255 }, (_, n) =>
        aKind(kindName(n + 200 * at), { attempts: n, completed: n, latencyMs: 187 }),
      ),
    }),
  );
  const text = shown(
    {
      agents,
      queues: Array.from({ length: 2_000 }, (_, n) => ({
        kind: kindName(n),
        waiting: 2,
        oldestMs: 1_000 * n,
        agents: 0,
      })),
      projects: ["red", "green", "blue-long-project-name"].map((project) => ({
        project,
        tasks: {},
        users: Array.from({ length: 7 }, (_, n) => ({
          user: `user${n}`,
          tasks: { queued: 138, delayed: 14, completed: 66, expired: 15, "dead-lettered": 6 },
          started: 1,
          waitMsMean: 30_500,
          waitMsMax: 990_000,
        })),
      })),
      metrics: {
        totalAgents: 1_003,
        idleAgents: 0,
        busyAgents: 1_003,
        offlineAgents: 1_000,
        totalInFlight: 12_000,
        avgSuccessRate: 1,
        avgLoad: 1,
      },
      observed: {
        windowMs: 600_000,
        bottlenecks: agents.map(({ id }) => ({ agent: id, share: 1, observedMs: 600_000 })),
        concentration: [
          { kind: kindName(7), agent: "a3", share: 0.99, threshold: 0.87, assignments: 1_000, since: 0 },
        ],
        soleAgents: [1, 2, 3].map((n) => ({ kind: kindName(n), agent: "gpt-summariser-7" })),
      },
    },
    { columns: 60 },
  );
  const lines = text.split("\n");

  it("has no line that the terminal breaks", () => {
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
  });

  it("shows agents with their kinds, and users with their tasks, below their rows where they do not fit", () => {
    const from = lines.indexOf("agents") + 1;
    expect(lines.slice(from, from + 4)).toEqual([
      "agent                       state  in flight  done",
      "a3                          busy         4/4     0",
      "    acme.team-14.document-processing-step-654 (80 %, 254 of",
      "    254, 187 ms), acme.team-13.document-processing-step-653",
    ]);
    const user = lines.findIndex((line) => line.startsWith("red "));
    expect(lines.slice(user + 1, user + 3)).toEqual([
      "    138 queued · 14 delayed · 66 completed · 15 expired ·",
      "    6 dead-lettered",
    ]);
  });

  it("shortens only kinds, in their middle", () => {
    const cut = lines.filter((line) => line.includes("…"));
    expect(cut.length).toBeGreaterThan(0);
    for (const line of cut) expect(line).toMatch(/^acme\.team-\S*…\S*-step-\d+ +any +2 /);
    expect(text).toMatch(/^agents +idle +busy +offline +in flight +success +load$/m);
  });
});

describe("an agent's kinds", () => {
  it("show successes beside the rate, and nothing where it never ran", () => {
    const kinds = [
      aKind("idle"),
      aKind("count", { attempts: 20, completed: 19, successRate: 0.93, latencyMs: 12 }),
    ];
    const text = shown({ agents: [anAgent("a1", { kinds })] });
    expect(text).toMatch(/ count \(93 %, 19 of 20, 12 ms\), idle$/m);
  });

  it("are the three it did most of, a suspended one first", () => {
    const kinds = Array.from({ length: 2_000 }, (_, n) => aKind(`k${n}`, { attempts: n }));
    kinds[7] = aKind("k7", { suspendedUntil: 5_000 });
    const text = shown({ agents: [anAgent("a1", { kinds })] });
    expect(text).toMatch(/ k7 suspended for 5 s, k1999 \(.*\), k1998 \(.*\), \+1,997$/m);
  });
});

describe("of 2,000 rows", () => {
  const many = <Row>(row: (n: number) => Row) => Array.from({ length: 2_000 }, (_, n) => row(n));
  const tables: Partial<StatusResponse> = {
    agents: many((n) => anAgent(`agent-${n}`, { load: n / 2_000, unresponsive: n === 3 })),
    queues: many((n) => ({ kind: `kind-${n}`, waiting: 1, oldestMs: n, agents: n === 5 ? 0 : 1 })),
    projects: many((n) => ({
      project: `project-${n}`,
      tasks: {},
      users: [{ user: `user-${n}`, tasks: { queued: 1 }, waitMsMean: 0, waitMsMax: n }],
    })),
  };

  it("20 of each table are listed, the most important first, and the rest is counted", () => {
    const text = shown(tables);
    expect(text.split("\n").length).toBeLessThan(100);
    expect(text.match(/^and 1,980 more \(--all lists them\)$/gm)).toHaveLength(3);
    const order = (word: string) =>
      [...text.matchAll(new RegExp(`^(?:\\S+ +)?(${word}-\\d+) `, "gm"))].map(([, id]) => id);
    expect(order("agent").slice(0, 3)).toEqual(["agent-3", "agent-1999", "agent-1998"]);
    expect(order("kind").slice(0, 3)).toEqual(["kind-5", "kind-1999", "kind-1998"]);
    expect(order("user").slice(0, 2)).toEqual(["user-1999", "user-1998"]);
  });

  it("--all lists all", () => {
    const text = shown(tables, { showsAll: true });
    for (const word of ["agent", "kind", "user"])
      expect(text.match(new RegExp(`\\b${word}-\\d+ `, "g"))?.length).toBeGreaterThanOrEqual(2_000);
    expect(text).not.toContain("--all");
  });
});
