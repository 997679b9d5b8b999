// A disk that fills up and has space again, if mounting is permitted; otherwise the reason is reported.

import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Reaped } from "./reaper.ts";
import { SmallDisk } from "./small-disk.ts";

const BYTES = 4 * 1024 * 1024;
const LEAVING = 64 * 1024;
const reaperMain = fileURLToPath(new URL("./processes/reaper-main.ts", import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-disk-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const canMount = mayMount();
if (!canMount) console.warn("small disk: mounting is not permitted here; skipped");

describe.runIf(canMount)("a small disk", () => {
  it.each(["ballast", "shrunk"] as const)("is full by its %s, and has room again", (filling) => {
    withDisk((disk) => {
      write("before", LEAVING);
      disk.fill(filling, { leaving: LEAVING });
      expect(disk.free).toBeLessThanOrEqual(LEAVING);
      expect(() => write("more", 2 * LEAVING)).toThrow("ENOSPC");
      disk.makeRoom();
      write("more", 2 * LEAVING);
      expect(disk.free).toBeGreaterThan(BYTES / 2);
    });
  });

  it("can be filled again, and by more than there is room for", () => {
    withDisk((disk) => {
      disk.fill("ballast", { leaving: LEAVING });
      disk.makeRoom();
      disk.fill("ballast", { leaving: -LEAVING });
      expect(disk.free).toBe(0);
    });
  });
});

describe.runIf(canMount)("a small disk of a driver that is gone", () => {
  it("is unmounted, and its folder removed", async () => {
    const mounting = SmallDisk.mount(join(folder, "disk"), BYTES);
    if (mounting.kind === "refused") throw new Error(mounting.why);
    const reaper = fork(reaperMain, { execArgv: ["--import", "tsx"] });
    await once(reaper, "message");
    for (const order of [
      { type: "mount", folder: mounting.disk.folder },
      { type: "folder", folder },
    ] as const satisfies readonly Reaped[])
      reaper.send(order);
    const ended = once(reaper, "exit");
    reaper.disconnect(); // like a kill -9 of the driver
    await ended;
    expect(existsSync(folder)).toBe(false);
  });
});

it("says why it cannot be mounted", () => {
  const mounting = SmallDisk.mount(join(folder, "disk"), -1);
  expect(mounting).toEqual({ kind: "refused", why: expect.stringMatching(/mount/) });
});

function write(name: string, bytes: number): void {
  writeFileSync(join(folder, name), Buffer.alloc(bytes));
}

function withDisk(use: (disk: SmallDisk) => void): void {
  const mounting = SmallDisk.mount(folder, BYTES);
  if (mounting.kind === "refused") throw new Error(mounting.why);
  try {
    use(mounting.disk);
  } finally {
    mounting.disk.unmount();
  }
}

function mayMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), "waggle-disk-"));
  const mounting = SmallDisk.mount(probe, BYTES);
  if (mounting.kind === "mounted") mounting.disk.unmount();
  rmSync(probe, { recursive: true, force: true });
  return mounting.kind === "mounted";
}
