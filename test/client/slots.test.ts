// Slots in a user's program: acquired, lost, released, however the work ends. The swarm is the production
// coordinator over the memory transport; each connection contends as a separate agent.

import { once } from "node:events";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { InfrastructureError } from "../../src/agent/handler.ts";
import type { SlotReport } from "../../src/agent/slot-usage.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { NoLeaderError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";
import { watch } from "./client-fixture.ts";

let clock: ManualClock;
let swarm: TestSwarm;
/** Of `one`. */
let wire: Transport;
let one: Swarm;
let other: Swarm;
const lines: { readonly msg: string; readonly resources?: readonly string[] }[] = [];

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
  await swarm.client.ask(subjects.operator("resource"), { resource: "gpu", slots: 1 });
  await swarm.client.ask(subjects.operator("resource"), { resource: "disk", slots: 1 });
  const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  wire = swarm.hub.connect();
  one = await connect({ transport: wire, swarm: "test", clock, logger });
  other = await connect({ transport: swarm.hub.connect(), swarm: "test", clock, logger });
  lines.length = 0;
});
afterEach(async () => {
  const closed = Promise.all([one.close(), other.close()]);
  await clock.advance(limits.closeDrainMs + limits.agentStopMs + limits.agentLeaveMs);
  await closed;
  await swarm.stop();
});

// biome-ignore lint/suspicious/noExplicitAny: a test reads whatever the status holds
async function gpu(): Promise<any> {
  const { resources } = await swarm.client.status();
  return resources.find(({ resource }: { resource: string }) => resource === "gpu");
}

/** Settled by now, or not. */
async function outcomeOf(promise: Promise<unknown>): Promise<unknown> {
  const watched = watch(promise);
  await clock.settle();
  const { state, value, error } = watched;
  if (state === "pending") return state;
  return state === "rejected" ? error : value;
}

const coded = (code: string, field?: string) =>
  expect.objectContaining({ code, ...(field === undefined ? {} : { field }) });

describe("acquire", () => {
  it("holds a slot until released, then the next waiter holds it", async () => {
    const slot = await one.acquire("gpu");
    expect(slot.resources).toEqual(["gpu"]);
    const next = other.acquire("gpu");
    expect(await outcomeOf(next)).toBe("pending");
    await slot.release();
    expect((await next).signal.aborted).toBe(false);
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0, tick: 1 });
  });

  it("releases with `await using`", async () => {
    {
      await using slot = await one.acquire(["gpu", "disk"]);
      expect(slot.resources).toEqual(["disk", "gpu"]);
      expect(await gpu()).toMatchObject({ inUse: 1 });
    }
    expect(await gpu()).toMatchObject({ inUse: 0 });
  });

  it("releases when the body throws", async () => {
    const body = async () => {
      await using slot = await one.acquire("gpu");
      throw new Error(`boom under ${slot.handle}`);
    };
    await expect(body()).rejects.toThrow("boom");
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0 });
  });

  it("released twice is released once", async () => {
    const slot = await one.acquire("gpu");
    const next = other.acquire("gpu");
    await Promise.all([slot.release(), slot.release()]);
    await next;
    await slot.release();
    expect(slot.isReleased).toBe(true);
    expect(await gpu()).toMatchObject({ inUse: 1, tick: 1 });
  });

  it("aborted leaves no waiter, and the slot goes to the next", async () => {
    const slot = await one.acquire("gpu");
    const controller = new AbortController();
    const aborted = other.acquire("gpu", { signal: controller.signal });
    expect(await outcomeOf(aborted)).toBe("pending");
    controller.abort(new Error("changed my mind"));
    await expect(aborted).rejects.toThrow("changed my mind");
    await clock.settle();
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
    const next = other.acquire("gpu");
    await slot.release();
    await next;
  });

  it("listens to a signal once, however many wait by it", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on("warning", note);
    await one.acquire("gpu");
    const controller = new AbortController();
    const waiting = Array.from({ length: 30 }, () => other.acquire("gpu", { signal: controller.signal }));
    const all = Promise.allSettled(waiting);
    await clock.settle();
    expect(await gpu()).toMatchObject({ waiting: 30 });
    controller.abort(new Error("enough"));
    expect((await all).map(({ status }) => status)).toEqual(Array(30).fill("rejected"));
    await clock.settle();
    process.off("warning", note);
    expect(warnings).toEqual([]);
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });

  it("aborted in the moment of the grant gives the slot back", async () => {
    const slot = await one.acquire("gpu");
    const controller = new AbortController();
    const aborted = other.acquire("gpu", { signal: controller.signal });
    await clock.settle();
    const released = slot.release();
    controller.abort(new Error("too late"));
    await expect(aborted).rejects.toThrow("too late");
    await released;
    await clock.settle();
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0, grants: 2, tick: 2 });
  });

  it("not granted in time rejects, and leaves no waiter behind", async () => {
    await one.acquire("gpu");
    const late = other.acquire("gpu", { timeoutMs: 300 });
    const failed = expect(late).rejects.toEqual(coded("WAGGLE_ACQUIRE_TIMED_OUT"));
    await clock.advance(350);
    await failed;
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });

  it("with a zero wait takes only a free slot", async () => {
    await using _slot = await one.acquire("gpu", { timeoutMs: 0 });
    const late = other.acquire("gpu", { timeoutMs: 0 });
    const failed = expect(late).rejects.toEqual(coded("WAGGLE_ACQUIRE_TIMED_OUT"));
    await clock.advance(100);
    await failed;
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });

  it.each([0, 300])("with a timeout of %i ms ends without a leader", async (timeoutMs) => {
    const leaderless = await connect({ transport: swarm.hub.connect(), swarm: "leaderless", clock });
    const asked = leaderless.acquire("gpu", { timeoutMs }).catch((error: unknown) => error);
    await clock.advance(timeoutMs + limits.acquireGraceMs - 1);
    expect(await outcomeOf(asked)).toBe("pending");
    await clock.advance(1);
    expect(await outcomeOf(asked)).toEqual(coded("WAGGLE_ACQUIRE_TIMED_OUT"));
    const closed = leaderless.close();
    await clock.advance(limits.closeDrainMs + limits.agentStopMs + limits.agentLeaveMs);
    await closed;
  });

  it.each([undefined, limits.askTimeoutMs])(
    "with a timeout of %s ms reports that no leader exists",
    async (timeoutMs) => {
      const leaderless = await connect({ transport: swarm.hub.connect(), swarm: "leaderless", clock });
      const asked = leaderless.acquire("gpu", timeoutMs === undefined ? {} : { timeoutMs });
      const caught = asked.catch((error: unknown) => error);
      await clock.advance(limits.askTimeoutMs - 1);
      expect(await outcomeOf(caught)).toBe("pending");
      await clock.advance(1);
      expect(await outcomeOf(caught)).toBeInstanceOf(NoLeaderError);
      expect(await outcomeOf(caught)).toMatchObject({ message: expect.stringContaining("`waggle up`") });
      const closed = leaderless.close();
      await clock.advance(limits.closeDrainMs + limits.agentStopMs + limits.agentLeaveMs);
      await closed;
    },
  );

  it("without an answer of a leader holds nothing, also after the leader's return", async () => {
    await (await one.acquire("gpu")).release();
    const leader = swarm.transportById.get("c1");
    if (leader === undefined) throw new Error("c1 has a connection");
    swarm.hub.cut(leader);
    const asked = one.acquire("gpu").catch((error: unknown) => error);
    await clock.advance(limits.askTimeoutMs);
    expect(await outcomeOf(asked)).toBeInstanceOf(NoLeaderError);
    swarm.hub.heal(leader);
    await clock.advance(limits.agentLostMs);
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0 });
    await using _slot = await other.acquire("gpu");
  });

  it("with a time-out that races a grant ends in exactly one way, and the slots are right", async () => {
    for (const offsetMs of [-2, -1, 0, 1, 2]) {
      const slot = await one.acquire("gpu");
      const racing = other.acquire("gpu", { timeoutMs: 100 }).catch((error: unknown) => error);
      await clock.settle();
      await clock.advance(100 + offsetMs);
      const released = slot.release();
      const outcome = await racing;
      await released;
      const isGranted = "release" in (outcome as object);
      expect(isGranted || (outcome as { code: string }).code === "WAGGLE_ACQUIRE_TIMED_OUT").toBe(true);
      expect(await gpu()).toMatchObject({ inUse: isGranted ? 1 : 0, waiting: 0 });
      if (isGranted) await (outcome as AsyncDisposable)[Symbol.asyncDispose]();
    }
  });

  it.each([
    ["an unknown resource", () => one.acquire("gpuu"), "WAGGLE_UNKNOWN_RESOURCE"],
    ["more slots than there are", () => one.acquire(["gpu", "gpu"]), "WAGGLE_ABOVE_CAPACITY"],
    ["a weight of NaN", () => one.acquire("gpu", { weight: Number.NaN }), "WAGGLE_INVALID_MESSAGE"],
    ["a weight below 1", () => one.acquire("gpu", { weight: 0.9 }), "WAGGLE_INVALID_MESSAGE"],
    ["nothing", () => one.acquire([]), "WAGGLE_INVALID_MESSAGE"],
    ["a time-out below 0", () => one.acquire("gpu", { timeoutMs: -1 }), "WAGGLE_INVALID_MESSAGE"],
  ])("refuses %s", async (_, acquire, code) => {
    await expect(acquire()).rejects.toEqual(coded(code));
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0 });
  });

  it("is refused while waiting when an operator leaves fewer slots than requested", async () => {
    await swarm.client.ask(subjects.operator("resource"), { resource: "gpu", slots: 2 });
    await using held = await one.acquire("gpu");
    const waiting = other.acquire(["gpu", "gpu"]);
    expect(await outcomeOf(waiting)).toBe("pending");
    await swarm.client.ask(subjects.operator("resource"), { resource: "gpu", slots: 1 });
    await expect(waiting).rejects.toMatchObject({
      code: "WAGGLE_ABOVE_CAPACITY",
      message: expect.stringMatching(/^gpu has 1 slot, and 2 slots of it could never be granted/),
    });
    expect(held.signal.aborted).toBe(false);
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });

  it("refuses with backpressure beyond maxWaiters", async () => {
    await swarm.client.ask(subjects.operator("resource"), { resource: "gpu", maxWaiters: 1 });
    await one.acquire("gpu");
    const waiting = one.acquire("gpu");
    await clock.settle();
    await expect(other.acquire("gpu")).rejects.toMatchObject({
      code: "WAGGLE_BACKPRESSURE",
      retryAfterMs: limits.retryAfterMs,
    });
    expect(await outcomeOf(waiting)).toBe("pending");
    waiting.catch(() => undefined);
  });

  it("twice side by side, in any order; a named holder keeps to name order", async () => {
    for (const resource of ["gpu", "disk"]) await one.acquire(resource);
  });

  it("while holding is refused to a named holder, unless later in name order", async () => {
    await using _own = await one.acquire("gpu", { holder: "job" });
    await expect(one.acquire("disk", { holder: "job" })).rejects.toEqual(coded("WAGGLE_ACQUIRE_ORDER"));
  });
});

const budgetOf = async (project: string) => {
  const { projects } = await swarm.client.status();
  return projects.find((row: { project: string }) => row.project === project)?.budget;
};
const setBudget = (project: string, tokens: number, mode = "wait") =>
  swarm.client.ask(subjects.operator("project"), { project, budget: { tokens, windowMs: 60_000, mode } });

describe("tokens", () => {
  beforeEach(async () => {
    await setBudget("acme", 1_000);
  });

  it("are reserved while held, and settled by the report", async () => {
    const slot = await one.acquire("gpu", { tokens: 600, project: "acme" });
    expect(await budgetOf("acme")).toMatchObject({ spent: 0, reserved: 600 });
    slot.report({ inputTokens: 100, outputTokens: 20 });
    slot.report({ totalTokens: 5 });
    await slot.release();
    expect(await budgetOf("acme")).toMatchObject({ spent: 125, reserved: 0 });
  });

  it("without a report, the estimate is spent", async () => {
    const slot = await one.acquire("gpu", { tokens: 600, project: "acme" });
    await slot.release();
    expect(await budgetOf("acme")).toMatchObject({ spent: 600, reserved: 0 });
  });

  it("above the budget are refused at once, with the reason", async () => {
    await expect(one.acquire("gpu", { tokens: 1_001, project: "acme" })).rejects.toMatchObject({
      code: "WAGGLE_OVER_BUDGET",
      message: expect.stringContaining("the project's budget holds 1,000"),
    });
    await setBudget("acme", 1_000, "reject");
    await one.acquire("gpu", { tokens: 900, project: "acme" });
    await expect(one.acquire("disk", { tokens: 200, project: "acme" })).rejects.toMatchObject({
      code: "WAGGLE_BUDGET_EXCEEDED",
      budget: { project: "acme", tokens: 1_000, spent: 0, reserved: 900, needed: 200 },
    });
  });

  it("of an undeclared project are refused, where projects must be declared", async () => {
    await swarm.client.ask(subjects.operator("policy"), { projects: "declared" });
    await expect(one.acquire("gpu", { tokens: 1, project: "acne" })).rejects.toEqual(
      coded("WAGGLE_UNKNOWN_PROJECT"),
    );
    await one.acquire("gpu", { tokens: 1, project: "acme" });
  });

  it("that do not fit wait until others are returned", async () => {
    const slot = await one.acquire("gpu", { tokens: 600, project: "acme" });
    const next = other.acquire("disk", { tokens: 500, project: "acme" });
    expect(await outcomeOf(next)).toBe("pending");
    slot.report({ totalTokens: 100 });
    await slot.release();
    expect((await next).resources).toEqual(["disk"]);
    expect(await budgetOf("acme")).toMatchObject({ spent: 100, reserved: 500 });
  });

  it("that do not fit wait until spent tokens leave the window", async () => {
    const slot = await one.acquire("gpu", { tokens: 600, project: "acme" });
    await slot.release();
    const next = one.acquire("gpu", { tokens: 500, project: "acme" });
    expect(await outcomeOf(next)).toBe("pending");
    await clock.advance(62_000);
    expect((await next).isReleased).toBe(false);
  });

  it("count in the rate of the type named as the resource", async () => {
    await swarm.client.ask(subjects.operator("rate"), {
      type: "gpu",
      window: "per_minute",
      tokensMax: 100,
    });
    const slot = await one.acquire("gpu", { tokens: 100 });
    await slot.release();
    const next = one.acquire("gpu", { tokens: 1 });
    expect(await outcomeOf(next)).toBe("pending");
    expect((await gpu()).waiters).toMatchObject([{ tokens: 1, waitsFor: "rate", project: "default" }]);
    await clock.advance(61_000);
    await next;
  });

  it("of a slot lost with its agent are not spent, until the report comes after all", async () => {
    const slot = await one.acquire("gpu", { tokens: 600, project: "acme" });
    swarm.hub.cut(wire);
    await clock.advance(limits.agentLostMs + 2_000);
    expect(slot.signal.aborted).toBe(true);
    expect(await budgetOf("acme")).toMatchObject({ spent: 0, reserved: 0 });
    slot.report({ totalTokens: 250, partial: true });
    const released = slot.release();
    swarm.hub.heal(wire);
    await clock.advance(limits.requestTimeoutMs);
    await released;
    expect(await budgetOf("acme")).toMatchObject({ spent: 250, reserved: 0 });
  });

  it("may come with more figures, and with counts that the provider does not know", async () => {
    await setBudget("acme", 1_000);
    const details = {
      inputTokenDetails: { cacheReadTokens: undefined },
      inputTokensDetails: [{ cached: 1 }],
    };
    const reports: SlotReport[] = [
      { inputTokens: 5, outputTokens: 7, totalTokens: 12, ...{ reasoningTokens: 0, ...details, raw: null } },
      { inputTokens: undefined, outputTokens: 4 },
      { inputTokens: undefined, outputTokens: undefined, totalTokens: undefined },
    ];
    for (const [at, spent] of [12, 16, 116].entries()) {
      const slot = await one.acquire("gpu", { tokens: 100, project: "acme" });
      slot.report(reports[at] ?? {});
      await slot.release();
      expect(await budgetOf("acme")).toMatchObject({ spent });
    }
  });

  it("are reported before the release, and never after", async () => {
    const slot = await one.acquire("gpu");
    await slot.release();
    expect(() => slot.report({ totalTokens: 1 })).toThrow(
      expect.objectContaining({ code: "WAGGLE_HANDLE_ENDED" }),
    );
  });

  // biome-ignore lint/suspicious/noExplicitAny: plain JavaScript passes anything
  it.each<[any, string]>([
    [{}, "report: inputTokens, outputTokens or totalTokens is missing"],
    [{ inputTokens: -1 }, "report: inputTokens: must be at least 0"],
    [{ prompt_tokens: 5 }, "report: prompt_tokens: is unknown; did you mean inputTokens?"],
    [{ inputTokens: 5, outputToken: 4 }, "report: outputToken: is unknown; did you mean outputTokens?"],
    [{ inputTokens: 5, reasoningTokens: "4" }, "report: reasoningTokens: is unknown;"],
    [{ reasoningTokens: 4 }, "report: inputTokens, outputTokens or totalTokens is missing"],
  ])("a wrong report %j is refused", async (report, message) => {
    const slot = await one.acquire("gpu");
    expect(() => slot.report(report)).toThrow(message);
  });
});

describe("an idle time", () => {
  it("ends the lease of a holder that went silent, and tells it", async () => {
    await setBudget("acme", 1_000);
    const slot = await one.acquire("gpu", { idleTimeoutMs: 4_000, tokens: 300, project: "acme" });
    await clock.advance(3_000);
    expect(slot.touch()).toBe(true);
    await clock.advance(3_000);
    expect(await gpu()).toMatchObject({ inUse: 1 });
    await clock.advance(1_100);
    expect(await gpu()).toMatchObject({ inUse: 0 });
    expect(slot.signal.reason).toMatchObject({
      code: "WAGGLE_SLOT_LOST",
      message: "the slot of gpu is lost: it was not touched within its idle time",
    });
    expect(slot.touch()).toBe(false);
    expect(await budgetOf("acme")).toMatchObject({ spent: 300, reserved: 0 });
    slot.report({ totalTokens: 350 });
    await slot.release();
    expect(await budgetOf("acme")).toMatchObject({ spent: 350 });
  });

  it("many touches cost few messages, and the newest one counts", async () => {
    const slot = await one.acquire("gpu", { idleTimeoutMs: 4_000 });
    const touches = swarm.hub.connect();
    let heard = 0;
    touches.subscribe(subjects.agent("*", "*", "touch"), () => {
      heard += 1;
    });
    for (let ms = 0; ms < 8_000; ms += 50) {
      slot.touch();
      await clock.advance(50);
    }
    expect(heard).toBeLessThanOrEqual(9);
    await clock.advance(3_900);
    expect(await gpu()).toMatchObject({ inUse: 1 });
    await clock.advance(1_200);
    expect(slot.signal.aborted).toBe(true);
  });

  it("ends while the holder releases: one tick, and no error", async () => {
    const slot = await one.acquire("gpu", { idleTimeoutMs: 1_000 });
    swarm.hub.cut(wire);
    const released = slot.release();
    await clock.advance(1_500);
    swarm.hub.heal(wire);
    await clock.advance(limits.requestTimeoutMs);
    await released;
    expect(await gpu()).toMatchObject({ inUse: 0, tick: 1 });
  });
});

describe("as", () => {
  it("is a queue of its own: a quiet identity comes before a busy one of the same connection", async () => {
    await swarm.client.ask(subjects.operator("policy"), { alpha: 0 });
    const held = await one.acquire("gpu", { as: "busy" });
    const granted: string[] = [];
    const ask = (as: string) =>
      one.acquire("gpu", { as }).then((slot) => {
        granted.push(slot.as ?? "");
        return slot;
      });
    const quiet = ask("quiet");
    await clock.settle();
    const busy = [ask("busy"), ask("busy")];
    await clock.settle();
    await held.release();
    await (await quiet).release();
    await (await busy[0])?.release();
    expect(granted.slice(0, 2)).toEqual(["quiet", "busy"]);
  });
});

describe("status", () => {
  it("names holders, resources and purposes", async () => {
    const asked = { as: "analyst", label: "weekly report", project: "acme", user: "ann", tokens: 40 };
    const slot = await one.acquire("gpu", { ...asked, idleTimeoutMs: 5_000 });
    expect((await gpu()).holders).toMatchObject([
      { ...asked, agent: slot.agent, handle: slot.handle, idleAt: expect.any(Number) },
    ]);
  });
});

describe("a resource without settings", () => {
  it("is made by its first request, where resources are open", async () => {
    await expect(one.acquire("o3")).rejects.toEqual(coded("WAGGLE_UNKNOWN_RESOURCE"));
    await swarm.client.ask(subjects.operator("policy"), { resources: "open", slotsDefault: 2 });
    await expect(one.acquire(["o3", "o3", "o3"])).rejects.toEqual(coded("WAGGLE_ABOVE_CAPACITY"));
    await using _slot = await one.acquire(["o3", "o3"]);
    const { resources } = await swarm.client.status();
    expect(resources).toContainEqual(expect.objectContaining({ resource: "o3", slots: 2, inUse: 2 }));
  });
});

describe("a refused slot", () => {
  const holds = async () => (await one.status()).holds ?? [];

  it("puts its resource on hold before a waiting request gets it", async () => {
    const slot = await one.acquire("gpu");
    const waiting = other.acquire("gpu");
    await clock.settle();
    await slot.release({ refused: { retryAfterMs: 1_500, reason: "429 slow down" } });
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 1, onHold: { phase: "held" } });
    expect(await holds()).toMatchObject([
      { on: "resource", name: "gpu", by: "agent", reason: "429 slow down" },
    ]);
    await clock.advance(1_600);
    await (await waiting).release();
    expect(await holds()).toEqual([]);
  });

  it("is released only once the options are right", async () => {
    const slot = await one.acquire(["gpu", "disk"]);
    for (const [options, field] of [
      [{ refused: { retryAfterMs: -1 } }, "refused.retryAfterMs"],
      [{ refused: { retryAfterMs: 1, until: new Date() } }, "until"],
      [{ refused: { resource: "cpu" } }, "resource"],
      [{ refused: {}, unanswered: true }, "unanswered"],
      [{ refused: 5 }, "refused"],
      [{ retryAfterMs: 5 }, "retryAfterMs"],
    ] as const)
      await expect(slot.release(options as never)).rejects.toEqual(coded("WAGGLE_INVALID_MESSAGE", field));
    expect(slot.isReleased).toBe(false);
    await slot.release({ refused: { resource: "disk", until: clock.now() + 5_000 } });
    expect(await holds()).toMatchObject([{ on: "resource", name: "disk" }]);
  });

  it("that was lost or released before still puts its resource on hold, and is charged nothing more", async () => {
    await setBudget("acme", 1_000);
    const idle = await one.acquire("gpu", { idleTimeoutMs: 1_000, tokens: 300, project: "acme" });
    await clock.advance(1_100);
    expect(idle.signal.aborted).toBe(true);
    await idle.release();
    await idle.release({ refused: { retryAfterMs: 9_000, reason: "429" } });
    expect(await holds()).toMatchObject([{ on: "resource", name: "gpu", by: "agent", reason: "429" }]);
    expect(await budgetOf("acme")).toMatchObject({ spent: 300, reserved: 0 });
    await other.unhold({ resource: "gpu" });

    const both = await one.acquire(["gpu", "disk"]);
    await both.release();
    await both.release({ refused: { retryAfterMs: 9_000 } });
    expect((await holds()).map(({ name }) => name).toSorted()).toEqual(["disk", "gpu"]);
    await other.unhold({ resource: "gpu" });
    await other.unhold({ resource: "disk" });

    const ticket = await one.acquireStart("gpu");
    await one.releaseHandle(ticket);
    await one.releaseHandle(ticket, undefined, { refused: { retryAfterMs: 9_000 } });
    expect((await holds()).map(({ name }) => name)).toEqual(["gpu"]);
  });

  it("of an agent that counted as lost puts its resource on hold once the agent is back", async () => {
    const slot = await one.acquire("gpu");
    swarm.hub.cut(wire);
    await clock.advance(limits.agentLostMs + 2_000);
    expect(slot.signal.aborted).toBe(true);
    const released = slot.release({ refused: { retryAfterMs: 60_000 } });
    await clock.advance(1_000);
    swarm.hub.heal(wire);
    await clock.advance(limits.requestTimeoutMs);
    await released;
    expect(await holds()).toMatchObject([{ on: "resource", name: "gpu" }]);
  });

  it("is what a wrap releases when its work names the resource as refused", async () => {
    const refused = (scope: object) => () => {
      throw new Error("of a client", {
        cause: new InfrastructureError("quota", { retryAfterMs: 5_000, ...scope }),
      });
    };
    await expect(one.wrap(refused({}), { resource: "gpu" })).rejects.toThrow("of a client");
    expect(await holds()).toEqual([]);
    await expect(one.wrap(refused({ scope: { resource: "gpu" } }), { resource: "gpu" })).rejects.toThrow();
    expect(await holds()).toMatchObject([{ on: "resource", name: "gpu", reason: "quota" }]);
  });

  it("is still in a row after a wrap whose work failed with another error", async () => {
    const failing = () => Promise.reject(new Error("no JSON"));
    const quota = () => Promise.reject(new InfrastructureError("quota", { scope: { resource: "gpu" } }));
    for (const work of [quota, failing, quota, failing])
      await one.wrap(work, { resource: "gpu" }).catch(String);
    expect(await holds()).toEqual([]);
    await one.wrap(quota, { resource: "gpu" }).catch(String);
    expect(await holds()).toMatchObject([{ on: "resource", name: "gpu", by: "refusals" }]);
  });
});

describe("wrap", () => {
  it("runs under a slot and returns the result", async () => {
    expect(await one.wrap((slot) => slot.resources.join(), { resource: "gpu", weight: 2.5 })).toBe("gpu");
    await expect(one.wrap(() => Promise.reject(new Error("rejected")), { resource: "gpu" })).rejects.toThrow(
      "rejected",
    );
    const thrower = () => {
      throw new Error("thrown");
    };
    await expect(one.wrap(thrower, { resource: "gpu" })).rejects.toThrow("thrown");
    expect(await gpu()).toMatchObject({ inUse: 0, tick: 3 });
  });

  it("serialises users of one slot, across connections", async () => {
    let running = 0;
    let most = 0;
    const work = async () => {
      running += 1;
      most = Math.max(most, running);
      await clock.settle();
      running -= 1;
    };
    await Promise.all([one, other, one, other, one].map((by) => by.wrap(work, { resource: "gpu" })));
    expect(most).toBe(1);
    expect(await gpu()).toMatchObject({ inUse: 0, tick: 5 });
  });
});

describe("inside a wrap", () => {
  const nested = (outer: string, inner: string, holder?: string) =>
    one.wrap(() => one.wrap(() => "in", { resource: inner, ...(holder && { holder }) }), { resource: outer });

  it("the same resource is refused instead of waiting forever", async () => {
    await expect(nested("gpu", "gpu")).rejects.toEqual(coded("WAGGLE_ACQUIRE_ORDER"));
    const split = one.wrap(() => one.acquireStart("gpu"), { resource: "gpu" });
    await expect(split).rejects.toEqual(coded("WAGGLE_ACQUIRE_ORDER"));
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0 });
  });

  it("of two crossing requests, the first runs and the second is refused", async () => {
    const crossed = await Promise.allSettled([nested("disk", "gpu"), nested("gpu", "disk")]);
    expect(crossed).toEqual([
      { status: "fulfilled", value: "in" },
      { status: "rejected", reason: coded("WAGGLE_ACQUIRE_ORDER") },
    ]);
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0 });
  });

  it("of two crossing requests on two connections, the first runs and the second is refused", async () => {
    const crossing = (by: Swarm, outer: string, within: Swarm, inner: string) =>
      by.wrap(() => within.wrap(() => "in", { resource: inner }), { resource: outer });
    const crossed = Promise.allSettled([
      crossing(one, "disk", other, "gpu"),
      crossing(other, "gpu", one, "disk"),
    ]);
    expect(await outcomeOf(crossed)).toEqual([
      { status: "fulfilled", value: "in" },
      { status: "rejected", reason: coded("WAGGLE_ACQUIRE_ORDER") },
    ]);
    const acquired = one.wrap(() => other.acquire("disk"), { resource: "gpu" });
    await expect(acquired).rejects.toEqual(coded("WAGGLE_ACQUIRE_ORDER"));
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0 });
  });

  it("a resource of another swarm has an order of its own", async () => {
    const name = swarmId("elsewhere");
    const elsewhere = await startTestSwarm({ clock, hub: swarm.hub, swarm: name });
    await elsewhere.client.ask(subjectsOf(name).operator("resource"), { resource: "disk", slots: 1 });
    const there = await connect({ transport: swarm.hub.connect(), swarm: name, clock });
    expect(await one.wrap(() => there.wrap(() => "in", { resource: "disk" }), { resource: "gpu" })).toBe(
      "in",
    );
    const back = () => there.wrap(() => one.acquire("disk"), { resource: "disk" });
    await expect(one.wrap(back, { resource: "gpu" })).rejects.toEqual(coded("WAGGLE_ACQUIRE_ORDER"));
    const closed = there.close();
    await clock.advance(limits.closeDrainMs + limits.agentStopMs + limits.agentLeaveMs);
    await closed;
    await elsewhere.stop();
  });

  it("an earlier resource is refused however deep, and granted to another holder", async () => {
    const deep = one.wrap(() => nested("gpu", "disk"), { resource: "disk" });
    await expect(deep).rejects.toEqual(coded("WAGGLE_ACQUIRE_ORDER"));
    expect(await nested("gpu", "disk", "another")).toBe("in");
  });

  it("branches wait for each other", async () => {
    const branch = () => one.wrap(() => clock.settle(), { resource: "gpu" });
    await one.wrap(() => Promise.all([branch(), branch()]), { resource: "disk" });
    expect(await gpu()).toMatchObject({ inUse: 0, tick: 2 });
  });

  it("calls that outlive the wrap are not restricted", async () => {
    const over = new AbortController();
    const work = () => ({ left: once(over.signal, "abort").then(() => nested("disk", "gpu")) });
    const { left } = await one.wrap(work, { resource: "gpu" });
    over.abort();
    expect(await left).toBe("in");
  });
});

describe("unknown options", () => {
  // Values that plain JavaScript may pass.
  // biome-ignore lint/suspicious/noExplicitAny: that is what is tested
  const any = (value: unknown): any => value;

  it.each([
    ["acquire", "timeout", () => one.acquire("gpu", any({ timeout: 5 }))],
    ["acquire", undefined, () => one.acquire("gpu", any(null))],
    ["wrap", "weigth", () => one.wrap(() => 1, any({ resource: "gpu", weigth: 9 }))],
    ["wrap", "resource", () => one.wrap(() => 1, any(undefined))],
    ["wrap", "resource", () => one.wrap(() => 1, any({ weight: 2 }))],
    ["wrap", "resources", () => one.wrap(() => 1, any({ resources: "gpu" }))],
    ["wrap", "work", () => one.wrap(any("gpu"), { resource: "gpu" })],
    ["wrap", "model", () => one.wrap(() => 1, any({ resource: "gpu", model: "gpt-4o" }))],
  ])("are refused by %s: %s", async (_, field, call) => {
    await expect(call()).rejects.toMatchObject({ code: "WAGGLE_INVALID_MESSAGE", field });
    expect(await gpu()).toMatchObject({ grants: 0 });
  });

  it("a model is no option, and the refusal shows how to compute a weight", async () => {
    await expect(one.acquire("gpu", any({ model: "gpt-4o" }))).rejects.toThrow(
      "acquire: model: is unknown; did you mean weight: weightOf(model, prompt.length)?",
    );
  });
});

describe("split acquire and release", () => {
  it("releases by handle, once", async () => {
    const ticket = await one.acquireStart("gpu", { as: "analyst" });
    expect(ticket).toEqual({
      handle: expect.any(String),
      resources: ["gpu"],
      agent: expect.stringContaining("-client-"),
      as: "analyst",
    });
    const next = other.acquire("gpu");
    await one.releaseHandle(ticket, { totalTokens: 5 });
    await one.releaseHandle(ticket.handle);
    await next;
    expect(await gpu()).toMatchObject({ inUse: 1, tick: 1 });
    await expect(one.releaseHandle("never")).rejects.toEqual(coded("WAGGLE_UNKNOWN_HANDLE"));
  });
});

describe("without a leader", () => {
  it("releaseHandle resolves when a release would have been given up", async () => {
    const alone = await connect({ transport: new MemoryHub({ clock }).connect(), swarm: "test", clock });
    const released = alone.releaseHandle("any");
    await clock.advance(limits.requestTimeoutMs - 1);
    expect(await outcomeOf(released)).toBe("pending");
    await clock.advance(1);
    expect(await outcomeOf(released)).toBeUndefined();
    const closed = alone.close();
    await clock.advance(limits.closeDrainMs + limits.agentStopMs + limits.agentLeaveMs);
    await closed;
  });
});

describe("a release without a leader's answer", () => {
  it("by handle resolves nevertheless, and reaches the returning leader", async () => {
    await one.acquire("disk");
    const handle = await one.acquireStart("gpu");
    swarm.hub.cut(wire);
    const released = one.releaseHandle(handle).then(() => "resolved");
    await clock.advance(limits.requestTimeoutMs - 1);
    expect(await outcomeOf(released)).toBe("pending");
    await clock.advance(1);
    expect(await outcomeOf(released)).toBe("resolved");
    expect(await gpu()).toMatchObject({ inUse: 1 });
    swarm.hub.heal(wire);
    await clock.advance(limits.requestTimeoutMs);
    expect(await gpu()).toMatchObject({ inUse: 0 });
  });
});

describe("a slot is lost", () => {
  it("when its lease cannot be renewed: the signal aborts in time, and the next waiter holds the slot", async () => {
    const slot = await one.acquire("gpu");
    const next = other.acquire("gpu");
    await clock.settle();
    swarm.hub.cut(wire);
    await clock.advance(limits.leaseTtlMs * (1 - limits.leaseAbortShare) + 100);
    expect(slot.signal.aborted).toBe(true);
    expect(slot.signal.reason).toEqual(coded("WAGGLE_SLOT_LOST"));
    expect(await outcomeOf(next)).toBe("pending");
    await clock.advance(limits.agentLostMs);
    expect((await next).signal.aborted).toBe(false);
    swarm.hub.heal(wire);
    await clock.settle();
    await slot.release();
    expect(await gpu()).toMatchObject({ inUse: 1 });
  });

  it("when the connection is closed, and waiters are rejected", async () => {
    const slot = await one.acquire("gpu");
    const waiting = one.acquire("gpu");
    const refused = expect(waiting).rejects.toEqual(coded("WAGGLE_UNREACHABLE"));
    await clock.settle();
    const next = other.acquire("gpu");
    await clock.settle();
    const closed = one.close();
    await clock.advance(limits.agentLeaveMs);
    await closed;
    await refused;
    expect(slot.signal.aborted).toBe(true);
    await slot.release();
    await next;
  });
});

describe("in a handler", () => {
  it("context.acquire holds a slot, and forgotten slots are released when the handler ends", async () => {
    await one.agent({
      id: "forgetful",
      kinds: ["count"],
      handler: async (_, { acquire }) => {
        const kept = await acquire("disk");
        await acquire("gpu", { weight: 2 });
        await kept.release();
        return "done";
      },
    });
    const task = await other.submit({ kind: "count" });
    expect((await task.result()).text()).toBe("done");
    await clock.settle();
    expect(await gpu()).toMatchObject({ inUse: 0, waiting: 0, tick: 1 });
    expect(lines).toContainEqual(
      expect.objectContaining({
        resources: ["gpu"],
        msg: expect.stringContaining("without releasing all its slots"),
      }),
    );
  });

  it("is given up when the attempt is cancelled", async () => {
    await using _slot = await other.acquire("gpu");
    await one.agent({
      kinds: ["count"],
      handler: (_, { acquire }) => acquire("gpu"),
    });
    const task = await other.submit({ kind: "count" });
    await clock.settle();
    expect(await gpu()).toMatchObject({ waiting: 1 });
    await task.cancel();
    await clock.settle();
    expect(await gpu()).toMatchObject({ inUse: 1, waiting: 0 });
  });
});
