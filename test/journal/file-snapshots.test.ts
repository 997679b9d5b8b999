// Snapshots in files: the conformance suite, and what crashes, other handles and disks leave in the folder.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { openFileSnapshots } from "../../src/journal/file/snapshots.ts";
import { bytesOf } from "./records.ts";
import { describeSnapshotStore } from "./snapshot-conformance.ts";

function aFolder(): string {
  return mkdtempSync(join(tmpdir(), "waggle-snapshots-"));
}

describeSnapshotStore("files", async () => {
  const folder = aFolder();
  return {
    open: () => openFileSnapshots(join(folder, "snapshots")),
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

describe("snapshots in files", () => {
  let folder: string;

  beforeEach(() => {
    folder = aFolder();
  });

  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it("are one file a part, for this user only", async () => {
    const store = await openFileSnapshots(join(folder, "deep", "snapshots"));
    await store.putChunk(bytesOf("chunk"));
    await store.putManifest(bytesOf("manifest"));
    const path = join(folder, "deep", "snapshots");
    expect(readdirSync(path).sort()).toEqual(["000000000001.chunk", "000000000002.manifest"]);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(statSync(join(path, "000000000001.chunk")).mode & 0o777).toBe(0o600);
    await store.close();
  });

  it("show nothing of a part that a crash left half written, and remove it with those below", async () => {
    writeFileSync(join(folder, "000000000007.part"), "half");
    const store = await openFileSnapshots(folder);
    expect(await store.manifests()).toEqual([]);
    expect(await store.chunk(7)).toBeUndefined();
    expect(await store.putChunk(bytesOf("a"))).toBe(8);
    expect(readdirSync(folder)).toContain("000000000007.part");
    await store.removeBelow(8);
    expect(readdirSync(folder)).toEqual(["000000000008.chunk"]);
    await store.close();
  });

  it("never take a place that another handle has, finished or not", async () => {
    const store = await openFileSnapshots(folder);
    const another = await openFileSnapshots(folder);
    expect(await another.putManifest(bytesOf("theirs"))).toBe(1);
    writeFileSync(join(folder, "000000000002.part"), "theirs, under way");
    expect(await store.putChunk(bytesOf("mine"))).toBe(3);
    expect(await store.manifests()).toEqual([{ place: 1, bytes: bytesOf("theirs") }]);
    expect(readdirSync(folder).sort()).toEqual([
      "000000000001.manifest",
      "000000000002.part",
      "000000000003.chunk",
    ]);
    await Promise.all([store.close(), another.close()]);
  });

  it("leave what is none of theirs alone", async () => {
    writeFileSync(join(folder, "notes.txt"), "mine");
    mkdirSync(join(folder, "1.chunk"));
    const store = await openFileSnapshots(folder);
    await store.putChunk(bytesOf("a"));
    await store.removeBelow(100);
    expect(readdirSync(folder).sort()).toEqual(["1.chunk", "notes.txt"]);
    expect(await store.usage()).toEqual({ bytes: 0, bytesMax: undefined });
    await store.close();
  });

  it("say so when their folder cannot be written", async () => {
    writeFileSync(join(folder, "file"), "");
    await expect(openFileSnapshots(join(folder, "file"))).rejects.toThrow(UnreachableError);
    const store = await openFileSnapshots(folder);
    rmSync(folder, { recursive: true });
    await expect(store.putChunk(bytesOf("a"))).rejects.toThrow(/folder of snapshots does not work: ENOENT/);
    expect(await store.manifests()).toEqual([]);
    await store.close();
  });
});
