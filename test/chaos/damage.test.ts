// Effects of damage on files, and the location of messages in the stores of real servers.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/sim/random.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { blocksOf, type Damage, damageStream } from "./damage.ts";

let store: string;
let messages: string;
const whole = Buffer.from(Array.from({ length: 4_000 }, (_, n) => n % 251));

beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), "waggle-damage-"));
  messages = join(store, "jetstream", "$G", "streams", "WAGGLE_s", "msgs");
  mkdirSync(messages, { recursive: true });
  for (const name of ["1.blk", "2.blk", "10.blk", "index.db"]) writeFileSync(join(messages, name), whole);
});
afterEach(() => rmSync(store, { recursive: true, force: true }));

describe("damage to a store", () => {
  it("finds the blocks of messages, oldest first", () => {
    expect(blocksOf(store, "WAGGLE_s").map((file) => file.slice(messages.length + 1))).toEqual([
      "1.blk",
      "2.blk",
      "10.blk",
    ]);
    expect(() => blocksOf(store, "WAGGLE_other")).toThrow("has no stream WAGGLE_other");
  });

  it("cuts the newest block short and leaves the others", () => {
    damage("truncate");
    expect(readFileSync(join(messages, "10.blk")).length).toBeLessThan(whole.length);
    expect(readFileSync(join(messages, "1.blk"))).toEqual(whole);
    expect(readdirSync(messages)).not.toContain("index.db");
  });

  it("flips a single bit of a single block", () => {
    damage("flip");
    const blocks = blocksOf(store, "WAGGLE_s").map((file) => readFileSync(file));
    const bits = blocks.flatMap((block) => [...block].map((byte, at) => ones(byte ^ (whole[at] ?? 0))));
    expect(bits.reduce((sum, count) => sum + count, 0)).toBe(1);
  });

  it("is undone to the byte", () => {
    for (const what of ["truncate", "flip"] as const)
      damageStream(store, "WAGGLE_s", what, new SeededRandom(what)).undo();
    for (const file of blocksOf(store, "WAGGLE_s")) expect(readFileSync(file)).toEqual(whole);
  });

  it("does the same under the same seed", () => {
    expect(damage("flip")).toBe(damage("flip"));
  });
});

it.each(natsServersFor("store damage"))(
  "is found where nats-server $version keeps messages",
  async ({ path }) => {
    const server = await startNatsServer({ binary: path, jetstream: true, storeDir: join(store, "real") });
    try {
      const connection = await connect({ servers: server.url });
      const create = { name: "S", subjects: ["s"], storage: "file", num_replicas: 1 };
      await connection.request("$JS.API.STREAM.CREATE.S", JSON.stringify(create));
      for (let n = 0; n < 20; n += 1) await connection.request("s", "x".repeat(200));
      await connection.close();
      await server.kill("SIGKILL");
      const { sentence } = damageStream(server.storeDir, "S", "truncate", new SeededRandom("1"));
      expect(sentence).toContain("off the end of");
      await server.restart();
      const again = await connect({ servers: server.url });
      const answer = await again.request("$JS.API.STREAM.INFO.S", "", { timeout: 10_000 });
      await again.close();
      expect((answer.json() as { state: { messages: number } }).state.messages).toBeLessThan(20);
    } finally {
      await server.stop();
    }
  },
);

function damage(what: Damage): string {
  return damageStream(store, "WAGGLE_s", what, new SeededRandom("seed")).sentence;
}

function ones(byte: number): number {
  return byte.toString(2).replaceAll("0", "").length;
}
