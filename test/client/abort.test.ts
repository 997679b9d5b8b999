// One signal of the caller's for many waits.

import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { Aborts } from "../../src/abort.ts";
import { aClient, aTask, watch } from "./client-fixture.ts";
import { settled } from "./manual-clock.ts";

describe("a signal shared by many", () => {
  it("gets one listener, whatever uses it, and ends them all", async () => {
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

  it("aborted by its owner hears nothing more", () => {
    const aborts = new Aborts();
    const given = new AbortController();
    const linked = aborts.linkedTo(given.signal);
    linked.abort("done");
    given.abort("why");
    expect(linked.signal.reason).toBe("done");
  });
});
