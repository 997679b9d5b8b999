// The agent's chart: every edge, what the heartbeat says of each state, and which signals a change of load is.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createActor } from "xstate";
import {
  type AgentSignal,
  agentMachine,
  agentStatus,
  describeAgent,
  isDraining,
  loadSignals,
} from "../../machines/agent.ts";
import { type SignalTable, snapshotIn, walkEveryEdge } from "./walk.ts";

const types = [
  "JOINED",
  "FIRST_TASK",
  "FULL",
  "FREED",
  "IDLE",
  "DRAIN",
  "UNDRAIN",
  "LEFT",
  "LAPSED",
  "FENCED",
] as const;
const signals: SignalTable<typeof agentMachine> = Object.fromEntries(types.map((type) => [type, { type }]));

const gone = { LEFT: "offline", LAPSED: "offline", FENCED: "offline" };

describe("the agent's chart", () => {
  it("goes where the table says and nowhere else", () => {
    walkEveryEdge(agentMachine, signals, {
      offline: { JOINED: "ready" },
      ready: { FIRST_TASK: "busy.available", DRAIN: "draining.idle", ...gone },
      "busy.available": { FULL: "busy.saturated", IDLE: "ready", DRAIN: "draining.available", ...gone },
      "busy.saturated": { FREED: "busy.available", IDLE: "ready", DRAIN: "draining.saturated", ...gone },
      "draining.idle": { FIRST_TASK: "draining.available", UNDRAIN: "ready", ...gone },
      "draining.available": {
        FULL: "draining.saturated",
        IDLE: "draining.idle",
        UNDRAIN: "busy.available",
        ...gone,
      },
      "draining.saturated": {
        FREED: "draining.available",
        IDLE: "draining.idle",
        UNDRAIN: "busy.saturated",
        ...gone,
      },
    });
  });

  it.each([
    ["offline", "offline", false],
    ["ready", "ready", false],
    ["busy.available", "busy", false],
    ["busy.saturated", "busy", false],
    ["draining.idle", "ready", true],
    ["draining.available", "busy", true],
    ["draining.saturated", "busy", true],
  ] as const)("says of %s that it is %s", (path, status, draining) => {
    const snapshot = snapshotIn(agentMachine, path);
    expect(agentStatus(snapshot)).toBe(status);
    expect(isDraining(snapshot)).toBe(draining);
    expect(describeAgent(snapshot)).toBe(path);
  });
});

describe("the signals of a change of load", () => {
  const typesOf = (change: Parameters<typeof loadSignals>[0]) => loadSignals(change).map(({ type }) => type);

  it.each([
    [{ before: 0, after: 1, places: 4 }, ["FIRST_TASK"]],
    [{ before: 0, after: 1, places: 1 }, ["FIRST_TASK", "FULL"]],
    [{ before: 0, after: 4, places: 4 }, ["FIRST_TASK", "FULL"]],
    [{ before: 1, after: 3, places: 4 }, []],
    [{ before: 3, after: 4, places: 4 }, ["FULL"]],
    [{ before: 4, after: 3, places: 4 }, ["FREED"]],
    [{ before: 4, after: 0, places: 4 }, ["IDLE"]],
    [{ before: 1, after: 0, places: 1 }, ["IDLE"]],
    [{ before: 5, after: 4, places: 4 }, []],
    [{ before: 0, after: 0, places: 1 }, []],
  ])("%o is %o", (change, expected) => {
    expect(typesOf(change)).toEqual(expected);
  });

  it("keeps the chart in the state that the load means, whatever the load does", () => {
    const loads = fc.array(fc.oneof(fc.nat(6), fc.constantFrom("DRAIN" as const, "UNDRAIN" as const)));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), loads, (places, steps) => {
        const actor = createActor(agentMachine).start();
        actor.send({ type: "JOINED" });
        let load = 0;
        let draining = false;
        for (const step of steps) {
          const sent: readonly AgentSignal[] =
            typeof step === "number" ? loadSignals({ before: load, after: step, places }) : [{ type: step }];
          if (typeof step === "number") load = step;
          else draining = step === "DRAIN";
          for (const signal of sent) actor.send(signal);
          expect(describeAgent(actor.getSnapshot())).toBe(stateOf({ load, places, draining }));
        }
      }),
    );
  });
});

function stateOf({ load, places, draining }: { load: number; places: number; draining: boolean }): string {
  if (load === 0) return draining ? "draining.idle" : "ready";
  return `${draining ? "draining" : "busy"}.${load >= places ? "saturated" : "available"}`;
}
