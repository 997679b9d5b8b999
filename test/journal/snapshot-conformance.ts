// What every snapshot store must do, whatever it is made of. Run against memory, files and JetStream by the suites
// beside this file; what only one of them can do is tested there.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import type { SnapshotStore } from "../../src/journal/snapshot-store.ts";
import { limits } from "../../src/limits.ts";
import { bytesOf, noise, range } from "./records.ts";

/** One empty store, and the way to it. */
export interface SnapshotWorld {
  /** A handle of its own. */
  open(): Promise<SnapshotStore>;
  dispose(): Promise<void>;
}

export function describeSnapshotStore(name: string, makeWorld: () => Promise<SnapshotWorld>): void {
  describe(`snapshot store: ${name}`, () => {
    let world: SnapshotWorld;
    let store: SnapshotStore;
    let another: SnapshotStore;

    beforeEach(async () => {
      world = await makeWorld();
      store = await world.open();
      another = await world.open();
    });

    afterEach(async () => {
      await another.close();
      await store.close();
      await world.dispose();
    });

    it("has nothing when empty, and removing from it is nothing", async () => {
      expect(await store.manifests()).toEqual([]);
      expect(await store.chunk(1)).toBeUndefined();
      await store.removeBelow(10);
      expect((await store.usage()).bytes).toBeGreaterThanOrEqual(0);
    });

    it("gives chunks places that grow, and every byte back, to others too", async () => {
      const chunks = [
        noise(512 * 1024, 1),
        noise(1, 2),
        new Uint8Array(),
        noise(limits.snapshotPartBytesMax, 3),
      ];
      let previous = 0;
      for (const bytes of chunks) {
        const place = await store.putChunk(bytes);
        expect(place).toBeGreaterThan(previous);
        previous = place;
        for (const reader of [store, another]) {
          expect(Buffer.compare((await reader.chunk(place)) as Uint8Array, bytes)).toBe(0);
        }
      }
      expect(await store.chunk(previous + 1)).toBeUndefined();
    });

    it("takes nothing larger than a part may be", async () => {
      const putting = Promise.resolve().then(() =>
        store.putChunk(new Uint8Array(limits.snapshotPartBytesMax + 1)),
      );
      await expect(putting).rejects.toThrow("fits a message");
    });

    it("lists manifests, the newest last, and takes none for a chunk", async () => {
      const first = await store.putChunk(bytesOf("chunk 1"));
      const older = await store.putManifest(bytesOf("manifest 1"));
      await store.putChunk(bytesOf("chunk 2"));
      await another.putChunk(bytesOf("chunk 3"));
      const newer = await another.putManifest(bytesOf("manifest 2"));
      expect(first < older && older < newer).toBe(true);
      const wanted = [
        { place: older, bytes: bytesOf("manifest 1") },
        { place: newer, bytes: bytesOf("manifest 2") },
      ];
      expect(await store.manifests()).toEqual(wanted);
      expect(await another.manifests()).toEqual(wanted);
      expect(await store.chunk(older)).toBeUndefined();
    });

    it("gives two who write at once places of their own", async () => {
      const puts = range(1, 20).map(async (round) => {
        const bytes = bytesOf(`part ${round}`);
        return { bytes, place: await (round % 2 === 0 ? store : another).putChunk(bytes) };
      });
      const stored = await Promise.all(puts);
      expect(new Set(stored.map(({ place }) => place)).size).toBe(20);
      for (const { bytes, place } of stored) expect(await store.chunk(place)).toEqual(bytes);
    });

    it("removes what lies below a place, and nothing else", async () => {
      const old = await store.putChunk(noise(100_000));
      await store.putManifest(bytesOf("old"));
      const kept = await store.putChunk(bytesOf("kept"));
      const manifest = await store.putManifest(bytesOf("new"));
      const before = await store.usage();
      await store.removeBelow(kept);
      await store.removeBelow(kept);
      await another.removeBelow(old);
      expect(await another.chunk(old)).toBeUndefined();
      expect(await another.chunk(kept)).toEqual(bytesOf("kept"));
      expect(await another.manifests()).toEqual([{ place: manifest, bytes: bytesOf("new") }]);
      expect(before.bytes - (await store.usage()).bytes).toBeGreaterThanOrEqual(100_000);
      expect(await store.putChunk(bytesOf("next"))).toBeGreaterThan(manifest);
    });

    it("goes on behind what others stored while it was idle, though the places before are free again", async () => {
      await another.putChunk(bytesOf("first"));
      for (const round of range(1, 5)) await store.putChunk(bytesOf(`chunk ${round}`));
      const last = await store.putManifest(bytesOf("last"));
      await store.removeBelow(last);
      expect(await another.putChunk(bytesOf("next"))).toBeGreaterThan(last);
    });

    it("may be emptied", async () => {
      const last = await store.putManifest(bytesOf("only"));
      await store.removeBelow(last + 1);
      expect(await store.manifests()).toEqual([]);
      const place = await another.putChunk(bytesOf("next"));
      expect(await store.chunk(place)).toEqual(bytesOf("next"));
    });

    it("is still there when opened again", async () => {
      const place = await store.putChunk(bytesOf("chunk"));
      const manifest = await store.putManifest(bytesOf("manifest"));
      await store.close();
      store = await world.open();
      expect(await store.chunk(place)).toEqual(bytesOf("chunk"));
      expect(await store.manifests()).toEqual([{ place: manifest, bytes: bytesOf("manifest") }]);
      expect(await store.putChunk(bytesOf("more"))).toBeGreaterThan(manifest);
    });

    it("answers nothing once closed", async () => {
      await store.putManifest(bytesOf("manifest"));
      await store.close();
      await store.close();
      await expect(store.putChunk(bytesOf("late"))).rejects.toThrow(UnreachableError);
      await expect(store.putManifest(bytesOf("late"))).rejects.toThrow(UnreachableError);
      await expect(store.manifests()).rejects.toThrow(UnreachableError);
      await expect(store.chunk(1)).rejects.toThrow(UnreachableError);
      await expect(store.removeBelow(1)).rejects.toThrow(UnreachableError);
      await expect(store.usage()).rejects.toThrow(UnreachableError);
    });
  });
}
