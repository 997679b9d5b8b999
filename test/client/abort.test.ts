// A single signal of the caller for many waits.

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { Aborts } from "../../src/abort.ts";
import { Asker } from "../../src/client/asker.ts";
import { EventStream } from "../../src/client/event-stream.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { InvalidMessageError, NoLeaderError } from "../../src/errors.ts";
import { Horizon } from "../../src/protocol/horizon.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { aClient, aTask, watch } from "./client-fixture.ts";
import { ManualClock, settled } from "./manual-clock.ts";

describe("a signal shared by many", () => {
  it("has a single listener, and ends all waits", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = ({ verb }) => (verb === "submit" ? undefined : "silence");
    const given = new AbortController();
    const { signal } = given;
    const waits: ReturnType<typeof watch>[] = [];
    for (let wait = 0; wait < 20; wait += 1) {
      const handle = await swarm.submit(aTask(), { signal });
      waits.push(watch(handle.result({ signal })), watch(swarm.status({ signal })));
      waits.push(watch(swarm.events({ follow: true, signal })[Symbol.asyncIterator]().next()));
      waits.push(watch(swarm.submitMany([aTask()], { signal })[Symbol.asyncIterator]().next()));
    }
    await settled();
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    given.abort();
    await settled();
    expect(waits.filter(({ state }) => state === "pending")).toEqual([]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await swarm.close();
  });
});

describe("a signal that lives long", () => {
  it("keeps no listener of ended waits, however many used it", async () => {
    const { signal } = new AbortController();
    for (let user = 0; user < 20; user += 1) {
      const own = new Aborts();
      const [one, another] = [own.linkedTo(signal), own.linkedTo(signal)];
      expect(getEventListeners(signal, "abort")).toHaveLength(1);
      one.abort();
      another.abort();
      expect(getEventListeners(signal, "abort")).toEqual([]);
      own.linkedTo(signal).abort(); // and once more
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("what failed", () => {
  it("leaves no listener at longer-lived signals: a request too large, an unanswered read", async () => {
    const aborts = new CountedAborts();
    const given = new AbortController();
    const hub = new MemoryHub({ clock: new ManualClock(), maxPayloadBytes: 1_024 });
    const transport = hub.connect();
    const asker = new Asker({
      transport,
      horizon: new Horizon(systemClock),
      clock: systemClock,
      random: systemRandom,
      aborts,
    });
    const question = { kind: "query", subject: "s", schema: z.object({}) } as const;
    const asked = asker.once(question, new Uint8Array(2_048), { timeoutMs: 1_000, signal: given.signal });
    await expect(asked).rejects.toThrow(InvalidMessageError);

    const stream = new EventStream({
      // biome-ignore lint/correctness/useYield: it fails before it has anything
      read: async function* () {
        throw new NoLeaderError("nobody answers");
      },
      signal: given.signal,
      closed: new AbortController().signal,
      aborts,
    });
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toThrow(NoLeaderError);
    expect(aborts.open).toBe(0);
  });
});

/** Counts listeners. */
class CountedAborts extends Aborts {
  open = 0;

  override on(signal: AbortSignal, run: () => void): () => void {
    this.open += 1;
    const letGo = super.on(signal, run);
    return () => {
      this.open -= 1;
      letGo();
    };
  }
}

describe("a linked controller", () => {
  it("aborts with the first of its signals, and with its reason", () => {
    const aborts = new Aborts();
    const [one, other] = [new AbortController(), new AbortController()];
    const linked = aborts.linkedTo(one.signal, undefined, other.signal);
    other.abort("why");
    one.abort("too late");
    expect(linked.signal.reason).toBe("why");
    expect(aborts.linkedTo(one.signal).signal.reason).toBe("too late");
  });

  it("aborted by its owner no longer listens", () => {
    const aborts = new Aborts();
    const given = new AbortController();
    const linked = aborts.linkedTo(given.signal);
    linked.abort("done");
    given.abort("why");
    expect(linked.signal.reason).toBe("done");
  });
});
