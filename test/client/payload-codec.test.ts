// Payloads and results that a codec of the program seals: what the wire carries, and what ends where.

import { afterEach, beforeEach, expect, it } from "vitest";
import type { PayloadCodec } from "../../src/agent/payload-codec.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { InvalidConfigError, InvalidMessageError } from "../../src/errors.ts";
import { startTestSwarm, type TestSwarm } from "../support/swarm.ts";

/** Turns every bit around, and binds the bytes to their context. */
const codecWith = (key: string): PayloadCodec => ({
  encode: async (bytes, { of, project, task }) =>
    Buffer.concat([Buffer.from(`${key}|${of}|${project}|${task}|`), Buffer.from(bytes).map((byte) => ~byte)]),
  decode: (bytes, { of, project, task }) => {
    const head = `${key}|${of}|${project}|${task}|`;
    if (Buffer.from(bytes).toString("latin1", 0, head.length) !== head) throw new Error("wrong key");
    return Buffer.from(bytes.subarray(head.length)).map((byte) => ~byte);
  },
});

let swarm: TestSwarm;
const opened: Swarm[] = [];
beforeEach(async () => {
  swarm = await startTestSwarm();
});
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close();
  await swarm.stop();
});

async function open(codec?: PayloadCodec): Promise<Swarm> {
  const each = await connect({ transport: swarm.hub.connect(), swarm: "test", user: "u", codec });
  opened.push(each);
  return each;
}

it.each([
  ["text", "private words"],
  ["bytes", new Uint8Array([0xff, 0, 7])],
  ["JSON", { private: [1, 2] }],
])("seals %s on the way to the agent, and the result on the way back", async (_name, payload) => {
  const user = await open(codecWith("k"));
  await user.agent({
    kinds: ["echo"],
    handler: (task) => (task.encoding === undefined ? task.text() : task.bytes()),
  });
  const handle = await user.submit({ kind: "echo", payload });
  const expected =
    payload instanceof Uint8Array ? payload : typeof payload === "string" ? payload : JSON.stringify(payload);
  const result = await handle.result();
  expect(payload instanceof Uint8Array ? new Uint8Array(result.bytes()) : result.text()).toEqual(expected);
  const { result: onWire, encoding } = await handle.outcome();
  expect(encoding).toBe("base64");
  expect(Buffer.from(onWire ?? "", "base64").toString()).toMatch(/^k\|result\|default\|/);
  expect(Buffer.from(onWire ?? "", "base64").toString()).not.toContain("private");
});

it("gives handlers the open task, also a generator's, and refuses chunks", async () => {
  const user = await open(codecWith("k"));
  await user.agent({
    kinds: ["parts"],
    handler: async function* (task) {
      yield `${task.text()}-1 `;
      yield `${task.text()}-2`;
    },
  });
  expect(await (await user.submit({ kind: "parts", payload: "a" })).result().then((r) => r.text())).toBe(
    "a-1 a-2",
  );
  await expect(user.submit({ kind: "parts", payload: "a", stream: true })).rejects.toMatchObject({
    field: "stream",
  });
});

it("ends a task as invalid input at an agent with a different key, or of a user without codec", async () => {
  const user = await open(codecWith("k"));
  const other = await open(codecWith("another"));
  const bare = await open();
  let calls = 0;
  await other.agent({
    kinds: ["echo"],
    handler: () => {
      calls += 1;
    },
  });
  for (const submitter of [user, bare]) {
    const handle = await submitter.submit({ kind: "echo", payload: "x" });
    expect(await handle.outcome()).toMatchObject({ state: "failed", attempts: 1 });
  }
  expect(calls).toBe(0);
});

it("refuses a result that was not sealed, naming the task", async () => {
  const user = await open(codecWith("k"));
  const bare = await open();
  await bare.agent({ kinds: ["echo"], handler: () => "not sealed" });
  const handle = await user.submit({ kind: "echo", payload: "x" });
  await expect(handle.result()).rejects.toThrow(InvalidMessageError);
  await expect(handle.result()).rejects.toThrow(/cannot be opened: .*not sealed/);
});

it("refuses an invalid codec, and a codec that returns no bytes", async () => {
  const wrong = { encode: () => "text", decode: () => "text" } as unknown as PayloadCodec;
  await expect(open({ encode: 5 } as unknown as PayloadCodec)).rejects.toThrow(InvalidConfigError);
  await expect((await open(wrong)).submit({ kind: "echo", payload: "x" })).rejects.toMatchObject({
    field: "codec.encode",
  });
});
