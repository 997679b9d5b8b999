// CPU time from /proc, and the wait for a calm machine. The files of /proc are written by the test.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { between, residentMiB, spent, type Used, waitForCalm } from "../../bench/harness/machine.ts";

let proc: string;

beforeEach(() => {
  proc = mkdtempSync(join(tmpdir(), "waggle-proc-"));
});
afterEach(() => rmSync(proc, { recursive: true }));

interface Ticks {
  readonly user?: number;
  readonly system?: number;
  readonly endedChildren?: number;
}

function writeProcess(pid: number, parent: number, { user = 0, system = 0, endedChildren = 0 }: Ticks): void {
  const before = Array.from({ length: 9 }, () => 0).join(" ");
  mkdirSync(join(proc, String(pid)), { recursive: true });
  // A name may contain spaces and parentheses.
  const stat = `${pid} (a (b) c) S ${parent} ${before} ${user} ${system} ${endedChildren} 0 20 0 1`;
  writeFileSync(join(proc, String(pid), "stat"), stat);
}

/** Ticks of user and of steal. */
function writeMachine(user: number, stolen = 0): void {
  writeFileSync(join(proc, "stat"), `cpu  ${user} 0 0 9999 50 0 0 ${stolen} 0 0\ncpu0 1 2 3\n`);
}

describe("CPU time", () => {
  it("of a role is user and system time; the server's includes its descendants", () => {
    writeMachine(0);
    writeProcess(11, 1, { user: 10, system: 5, endedChildren: 2 });
    writeProcess(12, 11, { user: 100 });
    writeProcess(13, 12, { system: 1 });
    writeProcess(20, 1, { user: 7 });
    writeProcess(21, 20, { user: 1_000 });
    const { usByRole } = spent({ server: [11], coordinator: [20], client: [99] }, proc);
    expect(usByRole).toEqual({ server: 1_180_000, coordinator: 70_000, client: 0 });
  });

  it("between two looks is split into own, foreign and stolen cores", () => {
    writeMachine(1_000);
    writeProcess(process.pid, 1, { user: 100 });
    writeProcess(30, process.pid, { user: 50 });
    const before = spent({ client: [30] }, proc, 0);
    writeMachine(1_120, 10);
    writeProcess(process.pid, 1, { user: 110 });
    writeProcess(30, process.pid, { user: 100 });
    const after = spent({ client: [30] }, proc, 1_000);
    expect(between(before, after)).toEqual({
      usByRole: { client: 500_000 },
      cores: 0.6,
      foreign: 0.6,
      stolen: 0.1,
    });
  });

  it("of other programs is never negative, though the files are read one by one", () => {
    writeMachine(0);
    writeProcess(process.pid, 1, { user: 0 });
    const before = spent({}, proc, 0);
    writeMachine(9);
    writeProcess(process.pid, 1, { user: 10 });
    expect(between(before, spent({}, proc, 1_000)).foreign).toBe(0);
  });
});

it("resident memory is read in MiB", () => {
  mkdirSync(join(proc, "5"));
  writeFileSync(join(proc, "5", "status"), "VmPeak:\t  999 kB\nVmRSS:\t  204800 kB\n");
  expect(residentMiB(5, proc)).toBe(200);
});

describe("the wait for calm", () => {
  const used = (foreign: number, cores: number): Used => ({ usByRole: {}, foreign, cores, stolen: 0 });

  it("ends when neither other programs nor the aftermath of a window use much", async () => {
    const looks = [used(0.5, 0), used(0.02, 1), used(0.09, 0.1), used(0, 0)];
    expect(await waitForCalm(60_000, async () => looks.shift() ?? used(0, 0))).toBe(true);
    expect(looks).toHaveLength(1);
  });

  it("is bounded", async () => {
    expect(await waitForCalm(0, async () => used(1, 0))).toBe(false);
  });
});
