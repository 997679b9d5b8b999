// The in-process hub: the conformance suite, and properties of the hub alone (hand-over, cut and heal).

import { describe, expect, it } from "vitest";
import { MemoryHub } from "../../src/transport/memory.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { describeTransport } from "./conformance.ts";
import { bytesOf, Received } from "./received.ts";

describeTransport("memory", async () => {
  const hub = new MemoryHub();
  const connections: Transport[] = [];
  const each = async (act: (connection: Transport) => void) => {
    for (const connection of connections) act(connection);
  };
  return {
    connect: async () => {
      const connection = hub.connect();
      connections.push(connection);
      return connection;
    },
    cut: () => each((connection) => hub.cut(connection)),
    heal: () => each((connection) => hub.heal(connection)),
    stop: () => each((connection) => void connection.close()),
  };
});

describe("the memory hub", () => {
  it("never calls a handler within the publisher's call", async () => {
    const connection = new MemoryHub().connect();
    const received = new Received(connection, "later");
    connection.publish("later", bytesOf("x"));
    expect(received.messages).toEqual([]);
    await connection.flush();
    expect(received.messages.length).toBe(1);
  });

  it("loses messages in flight to a broken connection, even if healed at once", async () => {
    const hub = new MemoryHub();
    const [listener, speaker] = [hub.connect(), hub.connect()];
    const received = new Received(listener, "lost");
    speaker.publish("lost", bytesOf("1"));
    hub.cut(listener);
    hub.heal(listener);
    speaker.publish("lost", bytesOf("2"));
    await speaker.flush();
    expect(received.texts()).toEqual(["2"]);
  });

  it("cuts one connection and leaves the others alone: its requests fail, theirs find no responder", async () => {
    const hub = new MemoryHub();
    const [leader, agent] = [hub.connect(), hub.connect()];
    leader.subscribe("ask", () => undefined);
    hub.cut(leader);
    expect(await leader.request("ask", bytesOf(""), { timeoutMs: 1_000 })).toEqual({ kind: "disconnected" });
    expect(await agent.request("ask", bytesOf(""), { timeoutMs: 1_000 })).toEqual({ kind: "no-responders" });
  });

  it("hands messages on through the `defer` it was given", async () => {
    const putOff: (() => void)[] = [];
    const connection = new MemoryHub({ defer: (run) => putOff.push(run) }).connect();
    const received = new Received(connection, "held");
    connection.publish("held", bytesOf("1"));
    connection.publish("held", bytesOf("2"));
    expect(putOff.length).toBe(1);
    putOff[0]?.();
    expect(received.texts()).toEqual(["1", "2"]);
  });
});
