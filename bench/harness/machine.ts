// CPU time of processes and of the machine, from /proc of Linux. A tick has 10 ms, so that a window should have a
// second.

import { readdirSync, readFileSync } from "node:fs";

const TICK_US = 10_000;
/** Other programs may use less in a window that counts. */
export const FOREIGN_CORES_MAX = 0.1;
/** The present program and its children, before a window begins: all is idle except a system's own aftermath. */
const OWN_CORES_MAX = 0.4;
const LOOK_MS = 300;

export type Pids = Readonly<Record<string, readonly number[]>>;

export interface Spent {
  readonly atMs: number;
  readonly usByRole: Readonly<Record<string, number>>;
  /** CPU time of the present process and all its descendants. */
  readonly ownUs: number;
  readonly machineUs: number;
  readonly stolenUs: number;
}

export interface Used {
  readonly usByRole: Readonly<Record<string, number>>;
  /** Cores used by the present process and all its descendants. */
  readonly cores: number;
  /** Cores used by other programs. */
  readonly foreign: number;
  /** Cores taken by the hypervisor. */
  readonly stolen: number;
}

interface ProcessTime {
  readonly parent: number;
  readonly us: number;
}

/** CPU time so far. The role `server` includes descendants: PostgreSQL and RabbitMQ work in child processes. */
export function spent(pids: Pids, proc = "/proc", atMs = performance.now()): Spent {
  const byPid = processTimes(proc);
  const sum = (all: Iterable<number>) => [...all].reduce((us, pid) => us + (byPid.get(pid)?.us ?? 0), 0);
  const usByRole = Object.fromEntries(
    Object.entries(pids).map(([role, own]) => [
      role,
      sum(role === "server" ? withDescendants(byPid, own) : own),
    ]),
  );
  const [line = ""] = readFileSync(`${proc}/stat`, "utf8").split("\n");
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return {
    atMs,
    usByRole,
    ownUs: sum(withDescendants(byPid, [process.pid])),
    machineUs: (user + nice + system + irq + softirq) * TICK_US,
    stolenUs: stolen * TICK_US,
  };
}

export function between(before: Spent, after: Spent): Used {
  const us = (after.atMs - before.atMs) * 1000;
  const ownUs = after.ownUs - before.ownUs;
  const cores = (spentUs: number) => Math.round((spentUs / us) * 100) / 100;
  return {
    usByRole: Object.fromEntries(
      Object.entries(after.usByRole).map(([role, all]) => [role, all - (before.usByRole[role] ?? 0)]),
    ),
    cores: cores(ownUs),
    foreign: Math.max(0, cores(after.machineUs - before.machineUs - ownUs)),
    stolen: cores(after.stolenUs - before.stolenUs),
  };
}

/** Waits until other programs rest, and until a system's aftermath (a snapshot, a vacuum) is over.
 *  @returns whether the machine became calm in time */
export async function waitForCalm(waitMs: number, look: () => Promise<Used> = lookAround): Promise<boolean> {
  const from = performance.now();
  do {
    const { cores, foreign } = await look();
    if (foreign < FOREIGN_CORES_MAX && cores < OWN_CORES_MAX) return true;
  } while (performance.now() - from < waitMs);
  return false;
}

async function lookAround(): Promise<Used> {
  const before = spent({});
  await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  return between(before, spent({}));
}

export function residentMiB(pid: number, proc = "/proc"): number {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`${proc}/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kib ?? Number.NaN) / 1024);
}

function processTimes(proc: string): Map<number, ProcessTime> {
  const byPid = new Map<number, ProcessTime>();
  for (const name of readdirSync(proc).filter((entry) => /^\d+$/.test(entry))) {
    try {
      const stat = readFileSync(`${proc}/${name}/stat`, "utf8");
      // After the name in parentheses: state, parent, …; user and system time, then both of ended children.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const ticks = fields.slice(11, 15).reduce((all, field) => all + Number(field), 0);
      byPid.set(Number(name), { parent: Number(fields[1]), us: ticks * TICK_US });
    } catch {
      // The process has ended since the folder was read.
    }
  }
  return byPid;
}

function withDescendants(byPid: ReadonlyMap<number, ProcessTime>, pids: readonly number[]): Set<number> {
  const all = new Set(pids);
  let size = 0;
  while (size < all.size) {
    size = all.size;
    for (const [pid, { parent }] of byPid) if (all.has(parent)) all.add(pid);
  }
  return all;
}
