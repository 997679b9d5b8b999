// Snapshots in memory: the conformance suite, and the faults that simulations are made of.

import { describe, expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { MemorySnapshots, type PutFate } from "../../src/journal/memory-snapshots.ts";
import { Gate } from "../support/gate.ts";
import { bytesOf } from "./records.ts";
import { describeSnapshotStore } from "./snapshot-conformance.ts";

describeSnapshotStore("memory", async () => {
  const snapshots = new MemorySnapshots();
  return { open: async () => snapshots.open(), dispose: async () => undefined };
});

describe("snapshots in memory, under faults", () => {
  it("fail a put with and without storing it, and are full", async () => {
    const snapshots = new MemorySnapshots();
    const fates: PutFate[] = ["lose", "lose-answer", "full"];
    const store = snapshots.open({ onPut: () => fates.shift() ?? "deliver" });
    await expect(store.putChunk(bytesOf("a"))).rejects.toThrow(UnreachableError);
    expect(snapshots.places("chunk")).toEqual([]);
    await expect(store.putChunk(bytesOf("a"))).rejects.toThrow(UnreachableError);
    expect(snapshots.places("chunk")).toEqual([1]);
    await expect(store.putChunk(bytesOf("a"))).rejects.toMatchObject({ code: "WAGGLE_JOURNAL_FULL" });
    expect(await store.putChunk(bytesOf("a"))).toBe(2);
  });

  it("hold a put and those behind it", async () => {
    const snapshots = new MemorySnapshots();
    const gate = new Gate();
    const store = snapshots.open({
      onPut: ({ kind }) => (kind === "chunk" ? gate.opened.then(() => "deliver") : "deliver"),
    });
    const puts = Promise.all([store.putChunk(bytesOf("a")), store.putManifest(bytesOf("b"))]);
    expect(await snapshots.open().putChunk(bytesOf("other"))).toBe(1);
    gate.open();
    expect(await puts).toEqual([2, 3]);
  });

  it("end what is held when they are closed, and store nothing of it", async () => {
    const snapshots = new MemorySnapshots();
    const gate = new Gate();
    const store = snapshots.open({ onPut: () => gate.opened.then(() => "deliver") });
    const put = store.putChunk(bytesOf("a"));
    await store.close();
    await expect(put).rejects.toThrow(UnreachableError);
    gate.open();
    await gate.opened;
    await new Promise((resolve) => setImmediate(resolve));
    expect(snapshots.places("chunk")).toEqual([]);
  });

  it("are damaged and lost where a test says so", async () => {
    const snapshots = new MemorySnapshots();
    const store = snapshots.open();
    const place = await store.putChunk(bytesOf("abc"));
    const manifest = await store.putManifest(bytesOf("m"));
    snapshots.damage(place);
    expect(await store.chunk(place)).toEqual(bytesOf("acc"));
    snapshots.lose(place);
    expect(await store.chunk(place)).toBeUndefined();
    snapshots.lose(manifest);
    expect(await store.manifests()).toEqual([]);
  });

  it("are cut off and come back", async () => {
    const store = new MemorySnapshots().open();
    store.setCutOff(true);
    await expect(store.putChunk(bytesOf("a"))).rejects.toThrow(UnreachableError);
    await expect(store.manifests()).rejects.toThrow(UnreachableError);
    store.setCutOff(false);
    expect(await store.putChunk(bytesOf("a"))).toBe(1);
  });
});
