// Opening a swarm's streams on a server that is played: what it answers when, in moments that a real one shows only by
// chance.

import { expect, it } from "vitest";
import { JournalDamagedError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { keptBytesMax, roomToKeep } from "../../src/journal/kept-room.ts";
import { type OpeningWire, openStream } from "../../src/journal/stream/opening.ts";
import { streamConfigOf } from "../../src/journal/stream/settings.ts";
import { limits } from "../../src/limits.ts";

const swarm = swarmId("acme");
const journal = "WAGGLE_acme";
const snapshots = "WAGGLE_acme_SNAP";
const opening = { swarm, purpose: "journal", create: true } as const;

it("makes no journal where the snapshots' stream is there and the journal's is not", async () => {
  const server = aServer([snapshots]);
  const openedAtMs = performance.now();
  await expect(openStream(server.wire, opening)).rejects.toThrow(JournalDamagedError);
  expect(performance.now() - openedAtMs).toBeGreaterThanOrEqual(limits.streamMissingMs - 100);
  expect(server.created).toEqual([]);
});

it("makes no journal of one that a reader does not find", async () => {
  const server = aServer([snapshots]);
  await expect(openStream(server.wire, { ...opening, create: false })).rejects.toMatchObject({
    code: "WAGGLE_JOURNAL_SETTINGS",
  });
});

it("takes the journal that another made, with its snapshots, between two looks", async () => {
  const server = aServer([]);
  server.beforeLook(2, () => server.streams.add(journal).add(snapshots));
  await openStream(server.wire, opening);
  expect(server.created).toEqual([]);
});

it("takes a journal that the server did not know yet, and its snapshots' it did", async () => {
  const server = aServer([snapshots]);
  server.beforeLook(8, () => server.streams.add(journal));
  await openStream(server.wire, opening);
  expect(server.created).toEqual([]);
});

it("makes a journal where the snapshots were removed, too, while it looked", async () => {
  const server = aServer([snapshots]);
  server.beforeLook(5, () => server.streams.clear());
  await openStream(server.wire, opening);
  expect(server.created).toEqual([journal]);
});

it("goes on with a journal whose first start died before there were snapshots", async () => {
  const server = aServer([journal]);
  await openStream(server.wire, opening);
  await openStream(server.wire, { ...opening, purpose: "snapshots" });
  expect(server.created).toEqual([snapshots]);
});

it.each([
  ["its name is in use", 10058],
  ["its subjects overlap with it", 10065],
])("takes the journal that another makes at the same moment: %s", async (description, err_code) => {
  const server = aServer([]);
  server.refusal = { err_code, description };
  await openStream(server.wire, opening);
  expect(server.created).toEqual([journal]);
});

it("says so where another stream has the subjects", async () => {
  const server = aServer([]);
  server.refusal = { err_code: 10065, description: "subjects overlap with an existing stream" };
  server.beforeLook(3, () => server.streams.clear());
  await expect(openStream(server.wire, opening)).rejects.toThrow(/subjects overlap/);
});

it("makes a journal with the room for what is to be kept, or with what the server has", async () => {
  const keptBytes = 100 * 1024 ** 3;
  const room = roomToKeep(keptBytes);
  const created = async (roomBytes: number, kept: number) => {
    const server = aServer([], roomBytes);
    await openStream(server.wire, { ...opening, keptBytes: kept });
    return server.bytesMax;
  };
  expect(keptBytesMax(room)).toBeGreaterThanOrEqual(keptBytes);
  expect(room).toBeLessThan(1.2 * keptBytes);
  expect(await created(room, keptBytes)).toEqual([room]);
  expect(await created(room - 1, keptBytes)).toEqual([room, limits.journalBytesMax]);
  for (const unsaid of [limits.auditRetentionBytes, Number.POSITIVE_INFINITY, 1e20])
    expect(await created(room, unsaid)).toEqual([limits.journalBytesMax]);
});

interface Server {
  readonly wire: OpeningWire;
  readonly streams: Set<string>;
  readonly created: string[];
  /** Asked for, of each stream that somebody would make. */
  readonly bytesMax: number[];
  /** What it answers to who would make a stream: another has just made it. */
  refusal?: object;
  /** @param look of all questions for a stream, from 1 */
  readonly beforeLook: (look: number, act: () => void) => void;
}

/** @param existing names of the streams that it has */
function aServer(existing: readonly string[], roomBytes = Number.POSITIVE_INFINITY): Server {
  const streams = new Set(existing);
  const created: string[] = [];
  const bytesMax: number[] = [];
  const befores = new Map<number, () => void>();
  let looks = 0;

  function answer(verb: string, stream: string, data: Uint8Array): object {
    if (verb === "INFO") {
      looks += 1;
      befores.get(looks)?.();
    } else {
      bytesMax.push(JSON.parse(Buffer.from(data).toString()).max_bytes);
      if ((bytesMax.at(-1) ?? 0) > roomBytes)
        return { error: { err_code: 10047, description: "insufficient storage resources available" } };
      created.push(stream);
      streams.add(stream);
      if (server.refusal !== undefined) return { error: server.refusal };
    }
    if (!streams.has(stream)) return { error: { err_code: 10059, description: "stream not found" } };
    const purpose = stream === journal ? "journal" : "snapshots";
    const state = { first_seq: 0, last_seq: 0, messages: 0, bytes: 0 };
    return { config: streamConfigOf({ swarm, purpose }), created: "2026-01-01T00:00:00Z", state };
  }

  const wire: OpeningWire = {
    maxPayloadBytes: limits.maxPayloadBytesDefault,
    status: "connected",
    mayHaveJetStream: true,
    ask: async (subject, data) => {
      const [, , , verb = "", stream = ""] = subject.split(".");
      return { kind: "answered", data: Buffer.from(JSON.stringify(answer(verb, stream, data))) };
    },
    publish: () => undefined,
    listen: () => ({ inbox: "", stop: () => undefined }),
    onStatus: () => () => undefined,
    close: async () => undefined,
  };
  const beforeLook = (look: number, act: () => void) => void befores.set(look, act);
  const server: Server = { wire, streams, created, bytesMax, beforeLook };
  return server;
}
