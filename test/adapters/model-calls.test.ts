// Leases of slots for calls of models, without a framework: how a lease ends, what it reports, what a refusal becomes.
// The swarm is the production coordinator over the memory transport.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { swarmModel as swarmAiModel, swarmMiddleware } from "../../src/adapters/ai.ts";
import type { CallOptions } from "../../src/adapters/call-options.ts";
import { withSwarm } from "../../src/adapters/langchain.ts";
import { ModelCalls } from "../../src/adapters/model-calls.ts";
import { swarmFetch } from "../../src/adapters/openai.ts";
import { swarmModel, swarmModelProvider } from "../../src/adapters/openai-agents.ts";
import type { TokenUsage } from "../../src/adapters/token-usage.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { swarmId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

let coordinator: TestSwarm;
let swarm: Swarm;
let resources = 0;
const coded = (code: string, field?: string) =>
  expect.objectContaining({ code, ...(field === undefined ? {} : { field }) });

beforeAll(async () => {
  coordinator = await startTestSwarm();
  swarm = await connect({ transport: coordinator.hub.connect(), swarm: "test" });
});
afterAll(async () => {
  await swarm.close();
  await coordinator.stop();
});

/** Calls under a resource of their own. */
async function calls(options: CallOptions = {}) {
  resources += 1;
  const resource = `model-${resources}`;
  await swarm.setResource(resource, { slots: 1 });
  return { resource, calls: new ModelCalls("test", swarm, { resource, ...options }) };
}

async function slotsOf(resource: string) {
  return (await swarm.status()).resources.find((each) => each.resource === resource);
}

async function reportsOf(resource: string): Promise<unknown[]> {
  await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 0, waiting: 0 });
  const found: unknown[] = [];
  for await (const { event } of swarm.events({ types: ["SlotReleased"] }))
    if (event.type === "SlotReleased" && event.resources[0] === resource)
      found.push({ tokens: event.tokens, usage: event.usage });
  return found;
}

const call = { model: "gpt-4o", prompt: "x".repeat(400) };
const used: TokenUsage = { inputTokens: 100, outputTokens: 7 };
const hangs = () => new Promise<never>(() => undefined);

describe("a call", () => {
  it("reports the provider's tokens, and reserves the prompt's before", async () => {
    const { calls: model, resource } = await calls();
    const gate = new Gate();
    const answer = model.once(
      call,
      async () => await gate.opened,
      () => used,
    );
    await expect
      .poll(async () => (await slotsOf(resource))?.holders)
      .toMatchObject([{ label: "gpt-4o", tokens: 100 + limits.answerTokensExpected }]);
    gate.open();
    await answer;
    expect(await reportsOf(resource)).toEqual([{ tokens: 107, usage: { tokens: 107, ...used } }]);
  });

  it("without tokens of the provider is charged the estimate", async () => {
    const { calls: model, resource } = await calls({ tokens: 42 });
    await model.once(
      call,
      async () => "an answer",
      () => undefined,
    );
    expect(await reportsOf(resource)).toEqual([{ tokens: 42, usage: undefined }]);
  });

  it("with impossible tokens of the provider is charged the estimate, and costs nobody the answer", async () => {
    const { calls: model, resource } = await calls({ tokens: 42 });
    const answer = await model.once(
      call,
      async () => "an answer",
      () => ({ inputTokens: 5_000_000_000 }),
    );
    expect(answer).toBe("an answer");
    expect(await reportsOf(resource)).toEqual([{ tokens: 42, usage: undefined }]);
  });

  it("that the provider refuses is charged nothing", async () => {
    const { calls: model, resource } = await calls();
    const refused = Object.assign(new Error("overloaded"), { status: 529 });
    await expect(
      model.once(
        call,
        async () => await Promise.reject(refused),
        () => used,
      ),
    ).rejects.toBe(refused);
    expect(await reportsOf(resource)).toEqual([
      { tokens: undefined, usage: { tokens: 0, inputTokens: 0, outputTokens: 0 } },
    ]);
  });

  it("has the weight of its model and prompt, or of the given tiers", async () => {
    const weights: unknown[] = [];
    const acquire = async (_: unknown, { weight }: { weight: number }) => {
      weights.push(weight);
      throw new Error("seen");
    };
    const currentAttempt = () => undefined;
    const noted = (options: CallOptions) =>
      new ModelCalls("test", { acquire, currentAttempt } as never, options);
    const seen = async (model: ModelCalls, prompt: unknown) =>
      await expect(model.once({ model: "gpt-4o", prompt }, hangs, () => undefined)).rejects.toThrow("seen");
    const messages = [{ role: "user", content: [{ type: "text", text: "x".repeat(8_000) }] }];
    await seen(noted({}), "short");
    await seen(noted({}), messages);
    await seen(noted({ tiers: { "gpt-4o": 10 } }), messages);
    expect(weights).toEqual([2.5, 5, 20]);
  });

  it("ends with the loss of its slot, whatever the provider does", async () => {
    const { calls: model, resource } = await calls({ idleTimeoutMs: limits.slotIdleMsMin });
    await expect(model.once(call, hangs, () => used)).rejects.toEqual(coded("WAGGLE_SLOT_LOST"));
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 0 });
  });
});

describe("a stream", () => {
  it("that falls silent loses the slot at the idle limit, and keeps the reported text", async () => {
    const { calls: model, resource } = await calls({ idleTimeoutMs: limits.slotIdleMsMin, tokens: 1 });
    let aborted: AbortSignal | undefined;
    async function* source(signal: AbortSignal) {
      aborted = signal;
      yield 1;
      await hangs();
    }
    const stream = await model.stream(call, source, { usageOf: () => ({ inputTokens: 5 }) });
    const read = async () => {
      for await (const chunk of stream) expect(chunk).toBe(1);
    };
    await expect(read()).rejects.toEqual(coded("WAGGLE_SLOT_LOST"));
    expect(aborted?.aborted).toBe(true);
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 0 });
    const charges = async () => {
      const found: unknown[] = [];
      for await (const { event } of swarm.events({ types: ["SlotCharged"] })) found.push(event);
      return found;
    };
    const usage = { tokens: 5, inputTokens: 5, partial: true };
    await expect.poll(charges).toMatchObject([{ tokens: 4, usage }]);
  });

  it("without end and without a reader stops at the read-ahead limit", async () => {
    const { calls: model, resource } = await calls({ idleTimeoutMs: limits.slotIdleMsMin });
    let made = 0;
    async function* source() {
      for (;;) {
        made += 1;
        yield made;
      }
    }
    const strategy = new CountQueuingStrategy({ highWaterMark: 50 });
    await model.stream(call, source, { usageOf: () => undefined, strategy });
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 0, waiting: 0 });
    expect(made).toBe(50);
  });
});

it("calls of an attempt run side by side, on the same resource, and name the task", async () => {
  const { calls: model, resource } = await calls();
  await swarm.setResource(resource, { slots: 2 });
  const both = new Gate();
  let running = 0;
  let holders: unknown;
  const ask = async () =>
    await model.once(
      call,
      async () => {
        running += 1;
        if (running === 2) {
          holders = (await slotsOf(resource))?.holders;
          both.open();
        }
        await both.opened;
      },
      () => used,
    );
  const agent = await swarm.agent({
    kinds: ["both"],
    handler: async () => void (await Promise.all([ask(), ask()])),
  });
  const task = await swarm.submit({ kind: "both" });
  const { tokens } = await task.result();
  expect(tokens).toBe(2 * 107);
  const served = expect.objectContaining({ task: expect.objectContaining({ task: task.id, attempt: 1 }) });
  expect(holders).toEqual([served, served]);
  await agent.drain();
});

it("a cancelled attempt aborts its call, and releases", async () => {
  const { calls: model, resource } = await calls();
  const aborted = new Gate();
  const begun = new Gate();
  const send = async (signal: AbortSignal) => {
    signal.addEventListener("abort", aborted.open);
    begun.open();
    return await hangs();
  };
  const agent = await swarm.agent({
    kinds: ["hangs"],
    handler: async () => await model.once(call, send, () => used),
  });
  const task = await swarm.submit({ kind: "hangs" });
  await begun.opened;
  await swarm.cancel(task.id);
  await aborted.opened;
  expect(await reportsOf(resource)).toEqual([{ tokens: undefined, usage: undefined }]);
  await agent.drain();
});

it("a call that runs when its handler has returned is aborted at once", async () => {
  const { calls: model, resource } = await calls();
  const begun = new Gate();
  let aborted: AbortSignal | undefined;
  let late: Promise<unknown> | undefined;
  const send = async (signal: AbortSignal) => {
    aborted = signal;
    begun.open();
    return await hangs();
  };
  const agent = await swarm.agent({
    kinds: ["forgets"],
    handler: async () => {
      late = model.once(call, send, () => used).catch((error: unknown) => error);
      await begun.opened;
    },
  });
  await (await swarm.submit({ kind: "forgets" })).result();
  expect(await late).toMatchObject({ code: "WAGGLE_HANDLE_ENDED" });
  expect(aborted?.aborted).toBe(true);
  expect(await slotsOf(resource)).toMatchObject({ inUse: 0 });
  await agent.drain();
});

it("a stream that runs when its handler has returned is cut off, and the reader gets the reason", async () => {
  const { calls: model, resource } = await calls();
  const goesOn = new Gate();
  const aborted = new Gate();
  let reader: ReadableStreamDefaultReader<string> | undefined;
  async function* send(signal: AbortSignal) {
    signal.addEventListener("abort", aborted.open);
    yield "first";
    await goesOn.opened;
    yield "second";
    await hangs();
  }
  const agent = await swarm.agent({
    kinds: ["returns"],
    handler: async () => {
      reader = (await model.stream(call, send, { usageOf: () => used })).getReader();
      return (await reader.read()).value;
    },
  });
  await (await swarm.submit({ kind: "returns" })).result();
  goesOn.open();
  await aborted.opened;
  await expect(
    (async () => {
      while ((await reader?.read())?.done !== true);
    })(),
  ).rejects.toMatchObject({ code: "WAGGLE_HANDLE_ENDED" });
  expect(await slotsOf(resource)).toMatchObject({ inUse: 0 });
  await agent.drain();
});

describe("in a handler of another swarm, a call", () => {
  it.each([
    ["of another name", "other", undefined, true],
    ["at other servers", "test", ["b:4222"], true],
    ["at one of the same servers", "test", ["b:4222", "a:4222"], false],
  ])("%s holds a slot of its own swarm: %s", async (_, name, servers, isForeign) => {
    const { calls: model, resource } = await calls();
    const there = await startTestSwarm({ swarm: swarmId(name) });
    const reach = (to: TestSwarm, at: readonly string[] | undefined) =>
      Object.assign(to.hub.connect(), { servers: at });
    const away = await connect({ transport: reach(there, servers), swarm: name });
    const agent = await away.agent({ kinds: ["asks"], handler: async () => await ask() });
    const here = await connect({ transport: reach(coordinator, ["a:4222"]), swarm: "test" });
    const ask = async () =>
      await new ModelCalls("test", here, { resource }).once(
        call,
        async () => ((await slotsOf(resource))?.holders?.[0]?.task === undefined ? "plain" : "served"),
        () => used,
      );
    const task = await away.submit({ kind: "asks", maxAttempts: 1 });
    const outcome = await task.outcome();
    if (isForeign) expect(outcome).toMatchObject({ state: "completed", result: "plain" });
    else expect(outcome).toMatchObject({ error: expect.stringContaining(resource) });
    await model.once(
      call,
      async () => "still works",
      () => used,
    );
    await agent.drain();
    await here.close();
    await away.close();
    await there.stop();
  });
});

describe("a used up quota", () => {
  const refused = (headers: object) => Object.assign(new Error("quota"), { status: 429, headers });

  it("without a time is the framework's to wait for, until the third in a row places a hold", async () => {
    const { calls: model, resource } = await calls();
    const error = refused({});
    const ask = async (send: () => Promise<string>) => await model.once(call, send, () => used);
    const refusedCall = async () => await Promise.reject(error);
    for (const _ of [1, 2]) await expect(ask(refusedCall)).rejects.toBe(error);
    await ask(async () => "served");
    for (const _ of [1, 2]) await expect(ask(refusedCall)).rejects.toBe(error);
    expect((await slotsOf(resource))?.onHold).toBeUndefined();
    await expect(ask(refusedCall)).rejects.toBe(error);
    expect(await slotsOf(resource)).toMatchObject({ onHold: { phase: "held" } });
    const { holds = [] } = await swarm.status();
    expect(holds.find(({ name }) => name === resource)).toMatchObject({
      by: "refusals",
      reason: "the quota of gpt-4o is used up (429)",
    });
    await swarm.unhold({ resource });
  });

  it("is no longer in a row after an answer, and still after calls that were aborted before one", async () => {
    const { calls: model, resource } = await calls();
    const refusedCall = async () => await Promise.reject(refused({}));
    const ask = async (send: () => Promise<string>) => await model.once(call, send, () => used).catch(String);
    const abort = async () => {
      const controller = new AbortController();
      const asked = model.once({ ...call, signal: controller.signal }, hangs, () => used);
      await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 1 });
      controller.abort();
      await expect(asked).rejects.toThrow();
    };
    for (const _ of [1, 2]) await ask(refusedCall);
    await ask(async () => await Promise.reject(Object.assign(new Error("bad"), { status: 400 })));
    for (const _ of [1, 2]) await ask(refusedCall);
    await abort();
    await ask(async () => await Promise.reject(new Error("connection reset")));
    expect((await slotsOf(resource))?.onHold).toBeUndefined();
    await ask(refusedCall);
    expect(await slotsOf(resource)).toMatchObject({ onHold: { phase: "held" } });
    await swarm.unhold({ resource });
  });

  it("without a time, told after the calls lost their slots, counts too", async () => {
    const { calls: model, resource } = await calls({ idleTimeoutMs: limits.slotIdleMsMin });
    await swarm.setResource(resource, { slots: 3 });
    const gate = new Gate();
    const unreachable = async () => {
      await gate.opened;
      throw refused({});
    };
    const asked = Array.from({ length: 3 }, async () => await model.once(call, unreachable, () => used));
    for (const outcome of await Promise.allSettled(asked))
      expect(outcome).toMatchObject({ reason: coded("WAGGLE_SLOT_LOST") });
    expect((await slotsOf(resource))?.onHold).toBeUndefined();
    gate.open();
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ onHold: { phase: "held" } });
  });

  it("places its hold before the slot is free, and shortens no hold of an operator", async () => {
    const { calls: model, resource } = await calls();
    const ask = async () =>
      await model
        .once(
          call,
          async () => await Promise.reject(refused({ "retry-after": "1" })),
          () => used,
        )
        .catch(() => undefined);
    await ask();
    await swarm.hold({ resource }, { forMs: 100 });
    await ask(); // the probe
    const eventTypes: string[] = [];
    for await (const { event } of swarm.events({ types: ["HoldPlaced", "SlotReleased", "HoldEnded"] }))
      if ("resources" in event ? event.resources[0] === resource : "name" in event && event.name === resource)
        eventTypes.push(event.type);
    expect(eventTypes).toEqual(["HoldPlaced", "SlotReleased", "HoldPlaced", "HoldPlaced", "SlotReleased"]);
    await swarm.unhold({ resource });
    let longer = 0;
    await model
      .once(
        call,
        async () => {
          const placed = await swarm.hold({ resource }, { forMs: 60_000 });
          longer = placed.settings.until;
          return await Promise.reject(refused({ "retry-after": "1" }));
        },
        () => used,
      )
      .catch(() => undefined);
    const { holds = [] } = await swarm.status();
    expect(holds.find(({ name }) => name === resource)).toMatchObject({ until: longer });
  });

  it("that is told after the call lost its slot still places the hold", async () => {
    const { calls: model, resource } = await calls({ idleTimeoutMs: limits.slotIdleMsMin });
    const gate = new Gate();
    const unreachable = async () => {
      await gate.opened;
      throw refused({ "retry-after": "60" });
    };
    await expect(model.once(call, unreachable, () => used)).rejects.toEqual(coded("WAGGLE_SLOT_LOST"));
    expect((await slotsOf(resource))?.onHold).toBeUndefined();
    gate.open();
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ onHold: { phase: "held" } });
  });

  it("that is told after the caller aborted the request still places the hold", async () => {
    const { resource } = await calls();
    const gate = new Gate();
    const fetch = async () => {
      await gate.opened;
      return new Response("", { status: 429, headers: { "retry-after": "60" } });
    };
    const controller = new AbortController();
    const asked = swarmFetch(swarm, { resource, fetch })("https://local/v1/chat/completions", {
      method: "POST",
      body: JSON.stringify({ model: "gpt-4o", messages: [] }),
      signal: controller.signal,
    });
    const aborted = expect(asked).rejects.toThrow();
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 1 });
    controller.abort();
    await aborted;
    gate.open();
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ onHold: { phase: "held" } });
  });

  it("costs the running calls and no waiting call, even without permission to place holds", async () => {
    const { calls: model, resource } = await calls();
    await swarm.setResource(resource, { slots: 2 });
    let sent = 0;
    const closedUntil = Date.now() + 1_500;
    const ask = async () =>
      await model.once(
        call,
        async () => {
          sent += 1;
          if (Date.now() < closedUntil) throw refused({ "retry-after-ms": `${closedUntil - Date.now()}` });
          return "served";
        },
        () => used,
      );
    const answers = await Promise.allSettled(Array.from({ length: 10 }, ask));
    expect(answers.filter(({ status }) => status === "rejected")).toHaveLength(2);
    expect(sent).toBe(10);
    for await (const { event } of swarm.events({ types: ["HoldPlaced"] }))
      if (event.type === "HoldPlaced" && event.name === resource)
        expect(event).toMatchObject({ by: "agent", reason: "the quota of gpt-4o is used up (429)" });
  });

  describe.each([503, 529])("or an overloaded provider (%d)", (status) => {
    const overloaded = (headers: Record<string, string>) =>
      Object.assign(new Error("overloaded"), { status, headers });

    it("that names a time places a hold", async () => {
      const { calls: model, resource } = await calls();
      const refusedCall = async () => await Promise.reject(overloaded({ "retry-after": "60" }));
      await model.once(call, refusedCall, () => used).catch(() => undefined);
      const hold = { phase: "held", reason: `gpt-4o is overloaded (${status})` };
      expect((await swarm.status()).holds).toContainEqual(
        expect.objectContaining({ name: resource, ...hold }),
      );
    });

    it("that names a time over HTTP places a hold, and ends a handler's attempt without counting it", async () => {
      const { resource } = await calls();
      let sent = 0;
      const fetch = swarmFetch(swarm, {
        resource,
        fetch: async () => {
          sent += 1;
          const headers = { "retry-after-ms": "300" };
          return sent === 1 ? new Response("", { status, headers }) : new Response("served");
        },
      });
      const init = { method: "POST", body: JSON.stringify({ model: "gpt-4o" }) };
      const handler = async () => await (await fetch("https://local/v1/responses", init)).text();
      const agent = await swarm.agent({ kinds: [resource], handler });
      const result = await (await swarm.submit({ kind: resource, maxAttempts: 1 })).result();
      expect(result.text()).toBe("served");
      await agent.drain();
    });

    it("that names no time neither counts as a refusal nor ends a row of them", async () => {
      const { calls: model, resource } = await calls();
      const error = overloaded({});
      const ask = async (thrown: Error) => {
        const asked = model.once(
          call,
          async () => await Promise.reject(thrown),
          () => used,
        );
        await expect(asked).rejects.toBe(thrown);
      };
      for (const thrown of [refused({}), error, refused({}), error]) await ask(thrown);
      expect((await slotsOf(resource))?.onHold).toBeUndefined();
      await ask(refused({}));
      expect(await slotsOf(resource)).toMatchObject({ onHold: { phase: "held" } });
    });
  });

  it("costs the other calls of the attempt no request", async () => {
    const { calls: model } = await calls();
    let sent = 0;
    const ask = async () =>
      await model.once(
        call,
        async () => {
          sent += 1;
          return await Promise.reject(refused({ "retry-after": "30" }));
        },
        () => used,
      );
    const seen: unknown[] = [];
    const agent = await swarm.agent({
      kinds: ["asks"],
      handler: async () => {
        for (let at = 0; at < 3; at += 1) await ask().catch((error) => seen.push(error));
      },
    });
    await (await swarm.submit({ kind: "asks" })).result();
    await agent.drain();
    expect(sent).toBe(1);
    const hold = { scope: { resource: `model-${resources}` }, forMs: 30_000 };
    expect(seen).toEqual(seen.map(() => expect.objectContaining({ name: "InfrastructureError", hold })));
    expect(seen).toHaveLength(3);
  });
});

describe("an error within a stream of status 200", () => {
  const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
  const begun = data({
    type: "message_start",
    message: { usage: { input_tokens: 11, output_tokens: 1 } },
  });
  const rateLimit = { code: "rate_limit_exceeded", message: "Rate limit reached. Please try again in 20s." };
  const failed = (error: object) => data({ type: "response.failed", response: { status: "failed", error } });
  const anthropic = (type: string) =>
    `event: error\n${data({ type: "error", error: { type, message: "no" } })}`;

  const streamOf = (events: string) => () =>
    new Response(events, { headers: { "content-type": "text/event-stream" } });
  const init = { method: "POST", body: JSON.stringify({ model: "gpt-4o", stream: true }) };
  const url = "https://local/v1/responses";

  async function releaseOf(resource: string) {
    await expect.poll(async () => await slotsOf(resource)).toMatchObject({ inUse: 0 });
    for await (const { event } of swarm.events({ types: ["SlotReleased"] }))
      if (event.type === "SlotReleased" && event.resources[0] === resource) return event;
    return undefined;
  }

  it.each([
    ["OpenAI's chat completions", data({ error: rateLimit }), true],
    ["OpenAI's failed response", failed(rateLimit), true],
    ["OpenAI's error of a response", data({ type: "error", ...rateLimit }), true],
    ["a router's number", data({ choices: [], error: { code: 429, message: "no" } }), false],
    ["Anthropic's rate limit", anthropic("rate_limit_error"), false],
    ["Anthropic's overload", anthropic("overloaded_error"), false],
  ])("is a refusal: %s", async (_, event, hasTime) => {
    const { resource } = await calls();
    const fetch = swarmFetch(swarm, { resource, fetch: async () => streamOf(begun + event)() });
    expect(await (await fetch(url, init)).text()).toBe(begun + event);
    expect(await releaseOf(resource)).toMatchObject({
      refusal: hasTime ? { until: expect.anything() } : {},
      usage: { inputTokens: 11, outputTokens: 1, partial: true },
    });
  });

  it.each([
    ["OpenAI's chat completions", data({ error: { code: "server_error", message: "no" } })],
    ["OpenAI's failed response", failed({ code: "server_error", message: "no" })],
    ["Anthropic", anthropic("api_error")],
  ])("of another kind is neither a refusal nor a success: %s", async (_, event) => {
    const { resource } = await calls();
    const fetch = swarmFetch(swarm, { resource, fetch: async () => streamOf(begun + event)() });
    expect(await (await fetch(url, init)).text()).toBe(begun + event);
    expect(await releaseOf(resource)).toMatchObject({ unanswered: true });
  });

  it("is none where the answer only speaks of errors", async () => {
    const { resource } = await calls();
    const events =
      data({ type: "response.created", response: { error: null } }) +
      data({ choices: [{ delta: { content: 'an "error" with code "rate_limit_exceeded"' } }], error: null });
    const fetch = swarmFetch(swarm, { resource, fetch: async () => streamOf(events)() });
    await (await fetch(url, init)).text();
    const release = await releaseOf(resource);
    expect(release).not.toHaveProperty("refusal");
    expect(release).not.toHaveProperty("unanswered");
  });

  it("ends the attempt of a handler without counting it", async () => {
    const { resource } = await calls();
    const answers = [streamOf(begun + anthropic("overloaded_error")), streamOf("data: whole\n\n")];
    const fetch = swarmFetch(swarm, { resource, fetch: async () => answers.shift()?.() ?? Response.error() });
    const handler = async () => await (await fetch(url, init)).text();
    const agent = await swarm.agent({ kinds: [resource], handler });
    const result = await (await swarm.submit({ kind: resource, maxAttempts: 1 })).result();
    expect(result.text()).toBe("data: whole\n\n");
    await agent.drain();
  });

  it("of a client that throws the provider's words is a refusal as well", async () => {
    const { calls: model, resource } = await calls();
    const error = Object.assign(new Error("no"), { status: undefined, error: { error: rateLimit } });
    const refusedCall = async () => await Promise.reject(error);
    await expect(model.once(call, refusedCall, () => used)).rejects.toBe(error);
    expect(await releaseOf(resource)).toMatchObject({ refusal: { until: expect.anything() } });
  });
});

it("a request of a stored prompt, without a model, holds a slot of the named resource", async () => {
  const { resource } = await calls();
  const fetch = swarmFetch(swarm, {
    resource,
    fetch: async () => Response.json({ usage: { input_tokens: 3 } }),
  });
  const init = { method: "POST", body: JSON.stringify({ prompt: { id: "pmpt_1" } }) };
  await fetch("http://127.0.0.1/v1/responses", init);
  expect(await reportsOf(resource)).toMatchObject([{ usage: { inputTokens: 3 } }]);
});

type Sent = [input: string | Request, init?: RequestInit];

it.each<[string, (url: string, init: RequestInit) => Sent]>([
  ["a Request", (url, init) => [new Request(url, init)]],
  ["bytes", (url, init) => [url, { ...init, body: Buffer.from(String(init.body)) }]],
])("a call as %s holds a slot, and arrives whole", async (_, form) => {
  const { resource } = await calls();
  const bodies: string[] = [];
  const send = async (...sent: Parameters<typeof globalThis.fetch>) => {
    bodies.push(await new Request(...sent).text());
    return Response.json({ usage: { input_tokens: 3 } });
  };
  const fetch = swarmFetch(swarm, { resource, fetch: send });
  const body = JSON.stringify({ model: "gpt-4o", input: "Hello" });
  await fetch(...form("http://127.0.0.1/v1/responses", { method: "POST", body }));
  expect(bodies).toEqual([body]);
  expect(await reportsOf(resource)).toMatchObject([{ usage: { inputTokens: 3 } }]);
});

it("comments and pings of a provider do not keep a slot", async () => {
  const { resource } = await calls();
  const signs = [": keep-alive\n\n", 'event: ping\ndata: {"type": "ping"}\n\n'];
  let timer: NodeJS.Timeout | undefined;
  const stream = new ReadableStream<Uint8Array>({
    start: (to) => {
      timer = setInterval(() => to.enqueue(Buffer.from(signs.join(""))), 50);
    },
    cancel: () => clearInterval(timer),
  });
  const answer = new Response(stream, { headers: { "content-type": "text/event-stream" } });
  const fetch = swarmFetch(swarm, { resource, idleTimeoutMs: 1_000, fetch: async () => answer });
  const init = { method: "POST", body: JSON.stringify({ model: "gpt-4o", stream: true }) };
  const { body } = await fetch("http://127.0.0.1/v1/responses", init);
  await expect(new Response(body).text()).rejects.toMatchObject({ code: "WAGGLE_SLOT_LOST" });
});

it("an agent of the OpenAI Agents SDK without a model holds a slot of the named resource", async () => {
  const { resource } = await calls();
  const answers = { getResponse: async () => ({ usage: { inputTokens: 3, outputTokens: 1 } }) };
  const model = { ...answers, getStreamedResponse: () => new ReadableStream() };
  const provider = swarmModelProvider(swarm, { resource, provider: { getModel: () => model } });
  await (await provider.getModel("")).getResponse({ input: "Hello" });
  expect(await reportsOf(resource)).toMatchObject([{ tokens: 4 }]);
});

describe("wrong input", () => {
  it("names the argument or the option", async () => {
    const wrong = (make: () => unknown, field: string) =>
      expect(make).toThrow(coded("WAGGLE_INVALID_VALUE", field) as never);
    wrong(() => swarmMiddleware(undefined as never), "swarm");
    wrong(() => swarmFetch({} as never), "swarm");
    for (const options of [null, "gpt-4o"])
      for (const make of [swarmFetch, swarmModelProvider])
        expect(() => make(swarm, options as never)).toThrow("its options must be an object such as");
    wrong(() => swarmModelProvider(swarm, { provider: 5 } as never), "provider");
    wrong(() => swarmModel("gpt-4o" as never, "gpt-4o", swarm), "model");
    wrong(() => swarmMiddleware(swarm, { ressource: "x" } as never), "ressource");
    wrong(() => swarmMiddleware(swarm, { resource: 4 } as never), "resource");
    wrong(() => swarmMiddleware(swarm, { tiers: { opus: 0 } }), "tiers.opus");
    wrong(() => swarmFetch(swarm, { idleTimeoutMs: 10 }), "idleTimeoutMs");
    wrong(() => withSwarm({} as never, swarm), "model");
  });

  it("takes no name for a model of the AI SDK, and says what makes one", async () => {
    const made = swarmAiModel("openai/gpt-4o" as never, swarm);
    await expect(made).rejects.toEqual(coded("WAGGLE_INVALID_VALUE", "model"));
    await expect(made).rejects.toThrow("gateway(\"openai/gpt-4o\"), not 'openai/gpt-4o'");
  });

  it.each(["", "  ", 4, null, undefined])("refuses %j for the id of a model", async (model) => {
    const unnamed = new ModelCalls("test", swarm, {});
    const asked = unnamed.once({ model: model as never, prompt: "" }, hangs, () => undefined);
    await expect(asked).rejects.toEqual(coded("WAGGLE_INVALID_VALUE", "model"));
  });

  it("says how to make a resource that is unknown", async () => {
    const unnamed = new ModelCalls("test", swarm, {});
    const asked = unnamed.once({ model: "gpt-9", prompt: "" }, hangs, () => undefined);
    await expect(asked).rejects.toEqual(coded("WAGGLE_UNKNOWN_RESOURCE", "resource"));
    await expect(asked).rejects.toThrow("`waggle resource set gpt-9 --slots 4`");
  });

  it("says what to do about a model whose id is no name of a resource", async () => {
    const model = new ModelCalls("test", swarm, {});
    const asked = model.open({ ...call, model: "my model" });
    await expect(asked).rejects.toMatchObject({ code: "WAGGLE_INVALID_VALUE", field: "resource" });
    await expect(asked).rejects.toThrow("name a resource with the adapter's option `resource`");
  });

  it("refuses a function that returns no name of a resource", async () => {
    const unnamed = new ModelCalls("test", swarm, { resource: () => undefined as never });
    const asked = unnamed.once(call, hangs, () => undefined);
    await expect(asked).rejects.toEqual(coded("WAGGLE_INVALID_VALUE", "resource"));
  });
});
