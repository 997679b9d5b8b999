// Rows of kinds and how long they last: submitters name kinds, so no unused kind may leave a row for ever.

import { describe, expect, it } from "vitest";
import { checkInvariants } from "../../src/core/invariants.ts";
import { kind } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { KindRow, SwarmState } from "../../src/state/state.ts";
import { SwarmFixture } from "../scheduling/swarm-fixture.ts";

function rowIn({ state }: { readonly state: SwarmState }, name = "k"): KindRow | undefined {
  return state.kindByName.get(kind(name));
}

/** An attempt of a task of the kind, reported with or without tokens. */
function runOne(swarm: SwarmFixture, name: string, tokens?: number): void {
  const id = `${name}-${swarm.state.submissions}`;
  swarm.submit(id, { kind: name });
  swarm.assign(id, "a");
  swarm.complete(id, 1, tokens);
}

describe("the row of a kind", () => {
  it("goes with the last waiting task, where no agent serves the kind and nothing was learned", () => {
    const swarm = new SwarmFixture();
    for (let n = 0; n < 100; n += 1) swarm.submit(`t${n}`, { kind: `k${n}` });
    expect(swarm.state.kindByName.size).toBe(100);
    for (let n = 0; n < 100; n += 1) swarm.cancel(`t${n}`);
    expect(swarm.state.kindByName.size).toBe(0);
    expect(checkInvariants(swarm.state)).toEqual([]);
  });

  it("goes with the last agent of the kind, whether the agent leaves or joins for other kinds", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { kinds: ["k", "l"] });
    swarm.join("b", { kinds: ["k"] });
    swarm.join("a", { kinds: ["l", "m"] });
    expect([...swarm.state.kindByName.keys()]).toEqual(["k", "l", "m"]);
    swarm.leave("b");
    swarm.join("a", { kinds: ["m"] });
    expect([...swarm.state.kindByName.keys()]).toEqual(["m"]);
    swarm.leave("a");
    expect(swarm.state.kindByName.size).toBe(0);
    expect(checkInvariants(swarm.state)).toEqual([]);
  });

  it("stays the same, and its tick continues, while tasks wait or an agent serves the kind", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { maxConcurrent: 2 });
    swarm.submit("t1");
    swarm.submit("t2");
    const row = rowIn(swarm);
    swarm.assign("t1", "a");
    swarm.fail("t1", { failureClass: "infrastructure" });
    expect(row?.tick).toBe(1);
    swarm.join("a", { kinds: ["k", "l"], maxConcurrent: 2 });
    expect(swarm.agent("a").kindRows[0]).toBe(row);
    swarm.leave("a");
    expect(swarm.agent("a").kindRows).toEqual([]);
    expect(rowIn(swarm)).toBe(row);
    swarm.join("b");
    expect(swarm.agent("b").kindRows[0]).toBe(row);
    swarm.cancel("t1");
    swarm.cancel("t2");
    expect(rowIn(swarm)).toBe(row);
    swarm.leave("b");
    expect(rowIn(swarm)).toBeUndefined();
    swarm.submit("t3");
    expect(rowIn(swarm)?.tick).toBe(0);
    expect(swarm.task("t3").queuedTick).toBe(0);
  });

  it("stays while it has settings", () => {
    const swarm = new SwarmFixture();
    swarm.setKind("k", { importance: 3 });
    swarm.submit("t1");
    swarm.cancel("t1");
    expect(rowIn(swarm)?.settings).toEqual({ importance: 3 });
    expect(swarm.state.idleKinds.size).toBe(0);
  });

  it("goes when its settings are the defaults again, and nothing else keeps it", () => {
    const swarm = new SwarmFixture();
    swarm.setKind("k", { importance: 3 });
    swarm.setKind("k", { importance: 1 });
    expect(rowIn(swarm)).toBeUndefined();

    swarm.setKind("k", { importance: 3, cheaper: kind("l") });
    swarm.submit("t1");
    swarm.setKind("k", { importance: 1 });
    expect(rowIn(swarm)?.settings).toEqual({ importance: 1, cheaper: "l" });
    swarm.apply({ type: "KindConfigured", kind: kind("k"), settings: { importance: 1 } });
    expect(rowIn(swarm)).toMatchObject({ settings: undefined, queues: 1 });
    swarm.cancel("t1");
    expect(rowIn(swarm)).toBeUndefined();
    expect(checkInvariants(swarm.state)).toEqual([]);
  });

  it("is idle when its settings are the defaults again, where something was learned", () => {
    const swarm = new SwarmFixture();
    swarm.setKind("k", { importance: 3 });
    swarm.join("a", { kinds: ["k"] });
    runOne(swarm, "k", 40);
    swarm.leave("a");
    expect(swarm.state.idleKinds.size).toBe(0);
    swarm.setKind("k", { importance: 1 });
    expect([...swarm.state.idleKinds]).toEqual(["k"]);
    expect(checkInvariants(swarm.state)).toEqual([]);
  });

  it("stays with learned values, until the maximum of idle kinds fell idle later", () => {
    const swarm = new SwarmFixture();
    swarm.join("a", { kinds: ["k"] });
    runOne(swarm, "k", 70);
    swarm.leave("a");
    expect(rowIn(swarm)).toMatchObject({ tokensMean: 70, tick: 1 });
    expect([...swarm.state.idleKinds]).toEqual(["k"]);
    for (let from = 0; from < limits.idleKindsMax; from += limits.kindsPerAgentMax) {
      const count = Math.min(limits.kindsPerAgentMax, limits.idleKindsMax - from);
      const kinds = Array.from({ length: count }, (_, at) => `k${from + at}`);
      swarm.join("a", { kinds });
      for (const each of kinds) runOne(swarm, each);
      expect(rowIn(swarm)).toBeDefined();
      swarm.leave("a");
    }
    const { state } = swarm;
    expect([rowIn(swarm), state.recordByKind.get(kind("k"))]).toEqual([undefined, undefined]);
    const sizes = [state.kindByName, state.idleKinds, state.recordByKind].map(({ size }) => size);
    expect(sizes).toEqual([limits.idleKindsMax, limits.idleKindsMax, limits.idleKindsMax]);
    expect(rowIn(swarm, "k0")).toBeDefined();
    expect(checkInvariants(state)).toEqual([]);
  });
});

it("an agent that serves new kinds in each session remembers the kinds of its latest outcomes", () => {
  const swarm = new SwarmFixture();
  for (let n = 0; n <= limits.recordsPerAgentMax; n += 1) {
    swarm.pass(1);
    swarm.join("a", { kinds: ["always", `k${n}`] });
    if (n === 0) {
      runOne(swarm, "always");
      swarm.suspend("a", { kind: "k0" });
    }
    runOne(swarm, `k${n}`);
  }
  const { recordByKind, suspensionByKind } = swarm.agent("a");
  expect(recordByKind.size).toBe(limits.recordsPerAgentMax);
  expect([recordByKind.has(kind("always")), recordByKind.has(kind("k0"))]).toEqual([true, false]);
  expect(recordByKind.has(kind("k2"))).toBe(true);
  expect(suspensionByKind.size).toBe(0);
  expect(checkInvariants(swarm.state)).toEqual([]);
});
