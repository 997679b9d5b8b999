// The memory that an agent shares with its stand-in.

import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { HeartbeatSlate, sharedMicros } from "../../src/agent/heartbeat-slate.ts";

const textOf = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

describe("a slate", () => {
  it("holds the newest heartbeat, and nothing while the agent rests", () => {
    const slate = HeartbeatSlate.ofSize(64);
    const other = HeartbeatSlate.over(slate.memory);
    expect(other.read()).toBeUndefined();
    slate.write("a long heartbeat", 1);
    const version = slate.write("newer", 2);
    expect({ ...other.read(), text: textOf(other.read()?.bytes) }).toMatchObject({
      version,
      term: 2,
      text: "newer",
    });
    slate.write("", 0);
    expect(other.read()).toBeUndefined();
  });

  it("says since when the newest heartbeat is confirmed, and not for an earlier one", () => {
    const slate = HeartbeatSlate.ofSize(64);
    const other = HeartbeatSlate.over(slate.memory);
    const version = slate.write("first", 1);
    expect(slate.confirmedAgeMs(version)).toBeUndefined();
    other.confirm(version, sharedMicros() - 5_000_000n);
    expect(slate.confirmedAgeMs(version)).toBeGreaterThanOrEqual(5_000);
    expect(slate.confirmedAgeMs(version)).toBeLessThan(6_000);
    expect(slate.confirmedAgeMs(slate.write("second", 1))).toBeUndefined();
  });

  it("shows when the agent sent its own heartbeat, by a clock that threads share", async () => {
    const slate = HeartbeatSlate.ofSize(64);
    slate.noteSent(200);
    const { sentAt, period } = slate.pace();
    expect(period).toBe(200_000n);
    const thread = new Worker(
      "require('node:worker_threads').parentPort.postMessage(process.hrtime.bigint() / 1000n)",
      { eval: true },
    );
    const there = await new Promise<bigint>((resolve) => thread.once("message", resolve));
    expect(there).toBeGreaterThanOrEqual(sentAt);
    expect(there).toBeLessThanOrEqual(sharedMicros());
  });

  it("never shows a heartbeat in part, however the threads interleave", async () => {
    const slate = HeartbeatSlate.ofSize(4_096);
    const writer = new Worker(
      `const { workerData: memory, parentPort } = require("node:worker_threads");
       const words = new Int32Array(memory, 0, 4);
       const text = Buffer.from(memory, ${slate.memory.byteLength - 4_096});
       for (let round = 0; round < 400_000; round += 1) {
         Atomics.add(words, 0, 1);
         text.fill(97 + (round % 26), 0, 1_000 + (round % 3_000));
         Atomics.store(words, 1, 1_000 + (round % 3_000));
         Atomics.add(words, 0, 1);
       }
       parentPort.postMessage("done");`,
      { eval: true, workerData: slate.memory },
    );
    let isDone = false;
    writer.once("message", () => {
      isDone = true;
    });
    let seen = 0;
    while (!isDone) {
      for (let n = 0; n < 1_000; n += 1) {
        const bytes = slate.read()?.bytes;
        if (bytes === undefined) continue;
        seen += 1;
        if (bytes.some((byte) => byte !== bytes[0])) expect.unreachable("a heartbeat in part");
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(seen).toBeGreaterThan(0);
  });
});
