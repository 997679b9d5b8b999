// Virtual time: events run in sequence, each played to its end, and no event of an ended session runs.

import { describe, expect, it } from "vitest";
import { Engine } from "../../../src/sim/fault/engine.ts";
import { Session } from "../../../src/sim/fault/session.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const never = () => false;

function aSession(engine: Engine, name = "p.1"): Session {
  return new Session(name, engine, { wallSkewMs: 0, rate: 1 }, new SeededRandom(name));
}

describe("the engine", () => {
  it("runs events by time, and events of the same instant in the order of their requests", async () => {
    const engine = new Engine();
    const seen: string[] = [];
    for (const [name, ms] of [
      ["late", 20],
      ["first", 10],
      ["second", 10],
    ] as const)
      engine.after(ms, "test", () => seen.push(`${name} ${engine.nowMs}`));
    await engine.run(100, never);
    expect(seen).toEqual(["first 10", "second 10", "late 20"]);
    expect(engine.nowMs).toBe(100);
  });

  it("plays the promises of an event to their end before the next", async () => {
    const engine = new Engine();
    const seen: string[] = [];
    const inSteps = async () => {
      for (let step = 1; step <= 50; step += 1) await Promise.resolve();
      seen.push("played");
    };
    engine.after(1, "test", () => void inSteps());
    engine.after(1, "test", () => seen.push("next"));
    await engine.run(10, never);
    expect(seen).toEqual(["played", "next"]);
  });

  it("stops when the condition holds", async () => {
    const engine = new Engine();
    let count = 0;
    const again = () => {
      count += 1;
      engine.after(1, "test", again);
    };
    again();
    await engine.run(1_000, () => count === 5);
    expect(count).toBe(5);
  });

  it("reports that time stands still instead of hanging", async () => {
    const engine = new Engine();
    const again = () => void engine.after(0, "test", again);
    again();
    await expect(engine.run(10, never)).rejects.toThrow("time stands still");
  });
});

describe("a session", () => {
  it("runs nothing after its end", async () => {
    const engine = new Engine();
    const session = aSession(engine);
    let ran = 0;
    session.clock.after(5, () => {
      ran += 1;
      session.kill();
    });
    session.clock.after(6, () => {
      ran += 1;
    });
    await engine.run(100, never);
    expect(ran).toBe(1);
  });

  it("runs held events in order after a pause", async () => {
    const engine = new Engine();
    const session = aSession(engine);
    const seen: string[] = [];
    session.clock.after(10, () => seen.push(`first ${engine.nowMs}`));
    session.clock.after(20, () => seen.push(`second ${engine.nowMs}`));
    session.pause(50);
    await engine.run(100, never);
    expect(seen).toEqual(["first 50", "second 50"]);
  });

  it("runs one event at a time while slow", async () => {
    const engine = new Engine();
    const session = aSession(engine);
    const seen: number[] = [];
    session.setSlow(7);
    for (let event = 0; event < 3; event += 1) session.clock.after(10, () => seen.push(engine.nowMs));
    await engine.run(100, never);
    expect(seen).toEqual([10, 17, 24]);
  });

  it("keeps its monotonic clock when the wall clock jumps", async () => {
    const engine = new Engine();
    const machine = { wallSkewMs: 0, rate: 1 };
    const { clock } = new Session("p.1", engine, machine, new SeededRandom("p"));
    await engine.run(1_000, never);
    const before = { wall: clock.now(), monotonic: clock.monotonicMs() };
    machine.wallSkewMs -= 3_600_000;
    expect(clock.now()).toBe(before.wall - 3_600_000);
    expect(clock.monotonicMs()).toBe(before.monotonic);
  });
});
