// What every adapter must do, whatever its framework: eight ends of a call, and two of a quota. Each leaves no slot in
// use and reports the tokens. The swarm is real: a coordinator of its own process on a nats-server.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { CallOptions } from "../../../src/adapters/call-options.ts";
import type { SlotReport } from "../../../src/agent/slot-usage.ts";
import { connect } from "../../../src/client/connect.ts";
import type { Swarm } from "../../../src/client/swarm.ts";
import type { TaskResult } from "../../../src/client/task-result.ts";
import type { ResourceStatus } from "../../../src/protocol/slot-schemas.ts";
import { natsServersFor } from "../../support/nats-server.ts";
import { Workplace } from "../../support/waggle-process.ts";
import { FakeProvider, usage, wholeText } from "./fake-provider.ts";

/** A framework's way to a model, through the adapter. */
export interface Client {
  /** A call with one answer. The framework tries a refused call again, once. */
  ask(signal?: AbortSignal): Promise<string>;
  /** A stream of text. */
  stream(signal?: AbortSignal): AsyncIterable<string>;
  /** Begins a stream that nobody reads. */
  abandon(): Promise<unknown>;
}

export interface Framework {
  readonly name: string;
  readonly open: (provider: FakeProvider, swarm: Swarm, options: CallOptions) => Promise<Client> | Client;
  readonly close?: () => Promise<void>;
  /** Tokens seen before an abort. Default: the provider reports all at the end of a stream. */
  readonly partial?: SlotReport;
  /** What becomes of the provider's stream after a `break`: it goes on to its end, with all tokens; or it is cut off,
   *  at once (default) or with its next part. */
  readonly afterBreak?: "reads on" | "cut off" | "cut off later";
}

/** What the tests of one framework alone need. */
export interface Bench {
  readonly swarm: Swarm;
  readonly provider: FakeProvider;
  /** Of the present test, with one slot. */
  readonly resource: string;
  /** A call in a handler, of a task with one attempt. */
  inHandler(run: () => unknown): Promise<TaskResult>;
  /** Waits until no slot is in use. @returns the reported tokens of each lease; undefined: none were reported */
  reports(): Promise<unknown[]>;
}

/** The tokens of a whole call, in the form of `reports`. */
export const all = { tokens: usage.inputTokens + usage.outputTokens, ...usage };

const soon = { interval: 20 };

/** @param more tests of the framework alone */
export function conformance(
  { name, open, close, partial, afterBreak = "cut off" }: Framework,
  more: (bench: Bench) => void = () => undefined,
): void {
  const [server] = natsServersFor(`adapter of ${name}`);
  if (server === undefined) return;

  let workplace: Workplace;
  let swarm: Swarm;
  let other: Swarm;
  let provider: FakeProvider;
  let client: Client;
  let resource = "";
  let resources = 0;

  beforeAll(async () => {
    workplace = await Workplace.make(server.path);
    await workplace.start("up").says("leading");
    swarm = await connect({ dataFolder: workplace.dataFolder });
    other = await connect({ dataFolder: workplace.dataFolder });
  });
  beforeEach(async () => {
    resources += 1;
    resource = `model-${resources}`;
    await other.setResource(resource, { slots: 1 });
    provider = new FakeProvider();
    client = await open(provider, swarm, { resource });
  });
  afterEach(async () => {
    await settled();
    provider.openAll();
  });
  afterAll(async () => {
    await close?.();
    await swarm?.close();
    await other?.close();
    await workplace?.clear();
  });

  async function slots(): Promise<ResourceStatus | undefined> {
    const { resources: all } = await other.status();
    return all.find((each) => each.resource === resource);
  }

  const settled = async () => await expect.poll(slots, soon).toMatchObject({ inUse: 0, waiting: 0 });

  /** Of each slot lease of the resource, in order of its end. Undefined: none was reported. A slot that was lost is
   *  named as such: on a machine that stands still a lease may end. */
  async function reports(): Promise<unknown[]> {
    await settled();
    const found: unknown[] = [];
    for await (const { event } of other.events({ types: ["SlotReleased"] }))
      if (event.type === "SlotReleased" && event.resources[0] === resource)
        found.push(event.reason === "released" ? event.usage : event.reason);
    return found;
  }

  /** Of the resource, in order. A hold ends at `until`. */
  async function grantsAndHolds() {
    const found: { readonly type: string; readonly at: number; readonly until?: number }[] = [];
    for await (const { event, at } of other.events({ types: ["SlotGranted", "HoldPlaced"] })) {
      if (event.type === "SlotGranted" && event.resources[0] === resource)
        found.push({ type: event.type, at });
      if (event.type === "HoldPlaced" && event.name === resource)
        found.push({ type: event.type, at, until: event.until });
    }
    return found;
  }

  const cutOff = partial === undefined ? undefined : expect.objectContaining({ ...partial, partial: true });

  /** A call in a handler. */
  async function inHandler(run: () => unknown): Promise<TaskResult> {
    const kind = `kind-${resources}`;
    const agent = await swarm.agent({ kinds: [kind], handler: async () => await run() });
    try {
      return await (await other.submit({ kind, maxAttempts: 1 })).result();
    } finally {
      await agent.drain();
    }
  }

  describe(name, () => {
    it("end: an answer and a stream report their tokens, and release", async () => {
      expect(await client.ask()).toBe(wholeText);
      await settled();
      expect(await text(client.stream())).toBe(wholeText);
      expect(await reports()).toEqual([all, all]);
    });

    it("error: a stream that breaks fails the reader, and releases", async () => {
      provider.plans.push({ breaks: true });
      await expect(text(client.stream())).rejects.toThrow();
      expect(await reports()).toEqual([cutOff]);
    });

    it("abort while waiting: the request for the slot is withdrawn, and the provider is not called", async () => {
      await using held = await other.acquire(resource);
      const controller = new AbortController();
      const asked = client.ask(controller.signal);
      const refused = expect(asked).rejects.toThrow();
      await expect.poll(slots, soon).toMatchObject({ inUse: 1, waiting: 1 });
      controller.abort();
      await refused;
      await expect.poll(slots, soon).toMatchObject({ inUse: 1, waiting: 0 });
      expect(provider.calls).toBe(0);
      expect(held.isReleased).toBe(false);
    });

    it("abort in the stream: the slot is free, though the provider does not end", async () => {
      provider.gated();
      const controller = new AbortController();
      const read = text(client.stream(controller.signal), () => controller.abort());
      await read.catch(() => undefined); // some frameworks end an aborted stream without an error
      expect(await reports()).toEqual([cutOff]);
      expect(provider.calls).toBe(1);
    });

    it("abort of an answer: the slot is free, though the provider does not end", async () => {
      provider.gated();
      const controller = new AbortController();
      const refused = expect(client.ask(controller.signal)).rejects.toThrow();
      await expect.poll(() => provider.running, soon).toBe(1);
      controller.abort();
      await refused;
      expect(await reports()).toEqual([undefined]);
    });

    it("break: a reader that stops leaves no slot in use", async () => {
      const { gate } = provider.gated();
      for await (const part of client.stream()) {
        expect(part).toBe("one ");
        if (afterBreak === "cut off later") setTimeout(gate.open, 50);
        break;
      }
      if (afterBreak === "cut off") expect(await reports()).toEqual([cutOff]);
      gate.open();
      const [used] = await reports();
      if (afterBreak === "reads on") expect(used).toEqual(all);
      if (afterBreak === "cut off later") expect([cutOff, all]).toContainEqual(used);
    });

    it("abandoned: a stream without a reader continues to the end and reports the tokens", async () => {
      await client.abandon();
      await expect.poll(() => provider.calls, soon).toBe(1);
      expect(await reports()).toEqual([all]);
    });

    it("retry: each attempt holds a slot of its own, and none during the back-off", async () => {
      provider.plans.push({ status: 500, headers: { "retry-after-ms": "50" } });
      expect(await client.ask()).toBe(wholeText);
      expect(provider.calls).toBe(2);
      expect(await reports()).toEqual([{ tokens: 0, inputTokens: 0, outputTokens: 0 }, all]);
    });

    it("parallel beyond capacity: no more calls run at a time than there are slots", async () => {
      await other.setResource(resource, { slots: 2 });
      const gates = [provider.gated(), provider.gated()];
      const calls = [1, 2, 3, 4, 5].map(async (at) =>
        at % 2 === 0 ? await client.ask() : await text(client.stream()),
      );
      await expect.poll(() => provider.running, soon).toBe(2);
      for (const { gate } of gates) gate.open();
      expect(await Promise.all(calls)).toEqual(calls.map(() => wholeText));
      expect(provider.runningMax).toBe(2);
      expect(await reports()).toEqual(calls.map(() => all));
    });

    it("used up quota: the resource is on hold until the provider's time, and the next attempt waits", async () => {
      provider.plans.push({ status: 429, headers: { "retry-after": "1" } });
      expect(await client.ask()).toBe(wholeText);
      expect(provider.calls).toBe(2);
      expect(await reports()).toHaveLength(2);
      const [first, hold, second] = await grantsAndHolds();
      expect([first?.type, hold?.type, second?.type]).toEqual(["SlotGranted", "HoldPlaced", "SlotGranted"]);
      expect(second?.at).toBeGreaterThanOrEqual(hold?.until ?? Number.POSITIVE_INFINITY);
    });

    it("in a handler: the tokens are the attempt's", async () => {
      const result = await inHandler(async () => (await client.ask()) + (await text(client.stream())));
      expect(result.text()).toBe(wholeText + wholeText);
      expect(result.tokens).toBe(2 * all.tokens);
    });

    it("in a handler: a used up quota puts the resource on hold, and the task is tried again", async () => {
      provider.plans.push({ status: 429, headers: { "retry-after": "1" } });
      const result = await inHandler(async () => await client.ask());
      expect(result.text()).toBe(wholeText);
      expect(provider.calls).toBe(2);
    });

    more({
      get swarm() {
        return swarm;
      },
      get provider() {
        return provider;
      },
      get resource() {
        return resource;
      },
      inHandler,
      reports,
    });
  });
}

/** @param onFirst called after the first part */
export async function text(stream: AsyncIterable<string>, onFirst?: () => void): Promise<string> {
  let whole = "";
  for await (const part of stream) {
    if (whole === "") onFirst?.();
    whole += part;
  }
  return whole;
}
