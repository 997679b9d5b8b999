// A small disk for a nats-server: a tmpfs over the server's store, which can be filled until writes fail with
// ENOSPC, and emptied again. Mounting needs a privilege; without it, the reason is reported. The server's own
// bound (`max_file_store`) needs no privilege.

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Reaper } from "./reaper.ts";

const BALLAST = "ballast";
const CHUNK_BYTES = 1024 * 1024;
const PAGE_BYTES = 4096;

/** `ballast`: a foreign file takes the space. `shrunk`: the disk is as small as its content. */
export type Filling = "ballast" | "shrunk";

/** The reason in mount's words, when not permitted. */
export type Mounting =
  | { readonly kind: "mounted"; readonly disk: SmallDisk }
  | { readonly kind: "refused"; readonly why: string };

export class SmallDisk {
  readonly folder: string;
  readonly bytes: number;

  private constructor(folder: string, bytes: number) {
    this.folder = folder;
    this.bytes = bytes;
  }

  /** @param folder empty or missing
   *  @param reaper unmounts the disk when the driver is killed */
  static mount(folder: string, bytes: number, reaper?: Reaper): Mounting {
    mkdirSync(folder, { recursive: true });
    const why = failureOf("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "tmpfs", folder]);
    if (why !== undefined) return { kind: "refused", why };
    reaper?.unmounts(folder);
    return { kind: "mounted", disk: new SmallDisk(folder, bytes) };
  }

  /** Free space. */
  get free(): number {
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }

  /** @param leaving approximate number of free bytes, which writers use up soon */
  fill(filling: Filling, { leaving }: { readonly leaving: number }): void {
    if (filling === "shrunk") this.#resize(Math.max(PAGE_BYTES, this.bytes - this.free + leaving));
    else writeZeros(join(this.folder, BALLAST), this.free - leaving);
  }

  /** Restores the original size, except for space taken by writers. */
  makeRoom(): void {
    rmSync(join(this.folder, BALLAST), { force: true });
    this.#resize(this.bytes);
  }

  unmount(): void {
    const why = unmount(this.folder);
    if (why !== undefined) throw new Error(`${this.folder} cannot be unmounted: ${why}`);
  }

  #resize(bytes: number): void {
    const why = failureOf("mount", ["-o", `remount,size=${bytes}`, this.folder]);
    if (why !== undefined) throw new Error(`${this.folder} cannot have ${bytes} bytes: ${why}`);
  }
}

/** Works with open files as well. @returns the reason when still mounted, or never mounted */
export function unmount(folder: string): string | undefined {
  return failureOf("umount", ["--lazy", folder]);
}

/** Writes as many bytes as fit. */
function writeZeros(file: string, bytes: number): void {
  const open = openSync(file, "w");
  try {
    const zeros = Buffer.alloc(CHUNK_BYTES);
    for (let left = bytes; left > 0; ) left -= writeSync(open, zeros, 0, Math.min(left, CHUNK_BYTES));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(open);
  }
}

/** @returns undefined on success */
function failureOf(program: string, argv: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(program, argv, { encoding: "utf8" });
  if (error !== undefined) return error.message;
  const [said = ""] = stderr.trim().split("\n");
  return status === 0 ? undefined : said || `${program} ended with ${status}`;
}
