// A small disk of a nats-server's own, which can be filled until writes fail with ENOSPC, and be given room again: a
// tmpfs, mounted over the server's store. Mounting takes a privilege that not everybody has: it is asked for, and who
// is refused is told why. Not the bound that a server sets itself (`max_file_store`), which needs none.

import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Reaper } from "./reaper.ts";

const BALLAST = "ballast";
const CHUNK_BYTES = 1024 * 1024;
const PAGE_BYTES = 4096;

/** `ballast`: a file of somebody else's takes it. `shrunk`: the disk itself has become as small as what it holds. */
export type Filling = "ballast" | "shrunk";

/** With why, in mount's own words, where it is not permitted. */
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

  /** @param folder an empty one, or none yet
   *  @param reaper unmounts it when this process is killed */
  static mount(folder: string, bytes: number, reaper?: Reaper): Mounting {
    mkdirSync(folder, { recursive: true });
    const why = failureOf("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "tmpfs", folder]);
    if (why !== undefined) return { kind: "refused", why };
    reaper?.unmounts(folder);
    return { kind: "mounted", disk: new SmallDisk(folder, bytes) };
  }

  /** What can still be written. */
  get free(): number {
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }

  /** @param leaving about so many bytes: whoever writes takes them soon */
  fill(filling: Filling, { leaving }: { readonly leaving: number }): void {
    if (filling === "shrunk") this.#resize(Math.max(PAGE_BYTES, this.bytes - this.free + leaving));
    else writeZeros(join(this.folder, BALLAST), this.free - leaving);
  }

  /** As much as it had, but for what others wrote. */
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

/** Also while somebody has a file of it open. @returns why it is still mounted, or never was */
export function unmount(folder: string): string | undefined {
  return failureOf("umount", ["--lazy", folder]);
}

/** As many as there is room for. */
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

/** @returns undefined when it worked */
function failureOf(program: string, argv: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync(program, argv, { encoding: "utf8" });
  if (error !== undefined) return error.message;
  const [said = ""] = stderr.trim().split("\n");
  return status === 0 ? undefined : said || `${program} ended with ${status}`;
}
