// Memory figures of the soak: the probe in a real process, and the compared windows.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { inUseFileOf, MemorySampler, memoryRowsOf, type Sample } from "./memory.ts";

const MIB = 1024 * 1024;
const MINUTE = 60_000;
/** A process with 40 MiB outside the heap, as much garbage per second, and a fast probe. */
const program = `
  const held = Buffer.alloc(40 * ${MIB}, 1);
  setInterval(() => Buffer.alloc(40 * ${MIB}, 1), 1_000);
  setTimeout(() => process.exit(held.length === 0 ? 1 : 0), 90_000);
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("gets the memory in use from the probe of a process, and the resident memory from the machine", async () => {
  const probe = new URL("./processes/in-use-probe.mjs", import.meta.url).href;
  const file = inUseFileOf(folder, "agent1");
  const child = spawn(process.execPath, ["--import", probe, "--eval", program], {
    env: { ...process.env, IN_USE_FILE: file, IN_USE_EVERY_MS: "200" },
    stdio: "inherit",
  });
  const sampler = new MemorySampler(() => [{ name: "agent1", pid: child.pid, inUseFile: file }], 100);
  try {
    const noted = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").length : 0);
    await vi.waitFor(() => expect(noted()).toBeGreaterThan(50), { timeout: 60_000, interval: 100 });
    const rows = sampler.stop();
    expect(rows).toHaveLength(2);
    const inUse = rows.find(({ measure }) => measure === "in use");
    const resident = rows.find(({ measure }) => measure === "resident");
    expect(inUse?.after).toBeGreaterThan(40 * MIB);
    expect(inUse?.after).toBeLessThan(60 * MIB);
    expect(resident?.after).toBeGreaterThan(inUse?.after ?? 0);
  } finally {
    sampler.stop();
    child.kill("SIGKILL");
    await once(child, "exit");
  }
}, 90_000);

it("compares the minutes after the warm-up with the last ones", () => {
  // Grows to 300 MiB in the warm-up, then by one MiB in ten minutes.
  const samples = minutes(60, (minute) => (minute < 10 ? 100 + 20 * minute : 300 + (minute - 10) / 10));
  const [row] = memoryRowsOf([{ process: "coordinator1", measure: "in use", samples }], 60 * MINUTE);
  expect(row?.before).toBeCloseTo(300.2 * MIB, -5);
  expect(row?.after).toBeCloseTo(304.7 * MIB, -5);
});

it("compares the halves of a run that is shorter than two warm-ups", () => {
  const samples = minutes(12, (minute) => (minute < 6 ? 100 : 200));
  const [row] = memoryRowsOf([{ process: "agent1", measure: "resident", samples }], 12 * MINUTE);
  expect([row?.before, row?.after]).toEqual([200 * MIB, 200 * MIB]);
});

it("has no row for what was not sampled at both ends", () => {
  const samples = minutes(3, () => 100).slice(0, 2);
  expect(memoryRowsOf([{ process: "agent1", measure: "in use", samples }], 60 * MINUTE)).toEqual([]);
});

function minutes(count: number, mebibytesAt: (minute: number) => number): Sample[] {
  return Array.from({ length: count }, (_, minute) => ({
    ms: minute * MINUTE,
    bytes: mebibytesAt(minute) * MIB,
  }));
}
