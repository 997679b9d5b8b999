// Snapshots in files of this machine: a folder with one file a part, `000000000012.chunk` or `.manifest`, named by
// its place. Several handles, also in different threads and processes, may have it open.
//
// A part is written as `<place>.part`, synced, and then renamed: what has its final name is whole. Creating the `.part`
// takes the place. One that a crash left behind keeps its place and is removed with those below.

import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../../assert.ts";
import { UnreachableError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { JournalUsage } from "../journal.ts";
import { snapshotsClosedError, snapshotsFullError } from "../journal-errors.ts";
import type { SnapshotStore, StoredManifest } from "../snapshot-store.ts";
import { isNoSpace, syncFolder } from "./handle.ts";

type PartKind = "chunk" | "manifest";

interface PartFile {
  readonly name: string;
  readonly place: number;
  /** `part`: being written, or left behind. */
  readonly kind: PartKind | "part";
}

/** @param folder created if missing, for this user only @throws UnreachableError */
export async function openFileSnapshots(folder: string): Promise<SnapshotStore> {
  return await reachingDisk(async () => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new FileSnapshotStore(folder);
  });
}

class FileSnapshotStore implements SnapshotStore {
  readonly #folder: string;
  #isClosed = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  putChunk(bytes: Uint8Array): Promise<number> {
    return this.#put("chunk", bytes);
  }

  putManifest(bytes: Uint8Array): Promise<number> {
    return this.#put("manifest", bytes);
  }

  async manifests(): Promise<readonly StoredManifest[]> {
    this.#requireOpen();
    return await reachingDisk(async () => {
      const found: StoredManifest[] = [];
      for (const { place, kind } of await listParts(this.#folder)) {
        const bytes = kind === "manifest" ? await this.#read(place, kind) : undefined;
        if (bytes !== undefined) found.push({ place, bytes });
      }
      return found;
    });
  }

  async chunk(place: number): Promise<Uint8Array | undefined> {
    this.#requireOpen();
    return await reachingDisk(() => this.#read(place, "chunk"));
  }

  async removeBelow(place: number): Promise<void> {
    this.#requireOpen();
    await reachingDisk(async () => {
      for (const part of await listParts(this.#folder)) {
        if (part.place < place) await rm(join(this.#folder, part.name), { force: true });
      }
    });
  }

  async usage(): Promise<JournalUsage> {
    this.#requireOpen();
    return await reachingDisk(async () => {
      let bytes = 0;
      for (const { name } of await listParts(this.#folder)) bytes += await sizeOf(join(this.#folder, name));
      return { bytes, bytesMax: undefined };
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async #put(kind: PartKind, bytes: Uint8Array): Promise<number> {
    assert(bytes.length <= limits.snapshotPartBytesMax, "a part of a snapshot fits a message");
    this.#requireOpen();
    return await reachingDisk(async () => {
      const { place, part } = await this.#takePlace();
      const path = this.#path(place, "part");
      try {
        try {
          await part.writeFile(bytes);
          await part.sync();
        } finally {
          await part.close();
        }
        this.#requireOpen();
        await rename(path, this.#path(place, kind));
      } catch (error) {
        await rm(path, { force: true });
        throw error;
      }
      await syncFolder(this.#folder);
      return place;
    });
  }

  /** Another handle's part is seen in one of two ways: its `.part` stands in the way of ours, or its final name stands
   *  beside ours, because it was renamed before ours could be created. */
  async #takePlace(): Promise<{ readonly place: number; readonly part: FileHandle }> {
    const last = (await listParts(this.#folder)).at(-1)?.place ?? 0;
    for (let place = last + 1; ; place += 1) {
      const path = this.#path(place, "part");
      const part = await createNew(path);
      if (part === undefined) continue;
      const isTaken = (await this.#has(place, "chunk")) || (await this.#has(place, "manifest"));
      if (!isTaken) return { place, part };
      await part.close();
      await rm(path, { force: true });
    }
  }

  async #has(place: number, kind: PartKind): Promise<boolean> {
    return (await unlessMissing(stat(this.#path(place, kind)))) !== undefined;
  }

  async #read(place: number, kind: PartKind): Promise<Uint8Array | undefined> {
    const bytes = await unlessMissing(readFile(this.#path(place, kind)));
    return bytes === undefined ? undefined : new Uint8Array(bytes);
  }

  #path(place: number, kind: PartFile["kind"]): string {
    return join(this.#folder, `${String(place).padStart(12, "0")}.${kind}`);
  }

  #requireOpen(): void {
    if (this.#isClosed) throw snapshotsClosedError();
  }
}

/** Of one folder, by place. What is called otherwise is none of ours. */
async function listParts(folder: string): Promise<PartFile[]> {
  const names = (await unlessMissing(readdir(folder))) ?? [];
  return names.flatMap(partNamed).sort((one, other) => one.place - other.place);
}

function partNamed(name: string): PartFile[] {
  const match = /^(\d{12,15})\.(chunk|manifest|part)$/.exec(name);
  return match === null ? [] : [{ name, place: Number(match[1]), kind: match[2] as PartFile["kind"] }];
}

async function createNew(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
    throw error;
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await unlessMissing(stat(path)))?.size ?? 0;
}

/** Undefined for a file that is not there: another handle may remove it at any moment. */
async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** What the disk refuses, in the words of the port. */
async function reachingDisk<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    if (isNoSpace(error)) throw snapshotsFullError(`no room on the disk (${error.message})`);
    throw new UnreachableError(`the folder of snapshots does not work: ${error.message}`, { cause: error });
  }
}
