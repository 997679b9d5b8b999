// The soak: one swarm for an hour at 200 tasks a second with a fault a minute, and the memory of each process sampled.
// Only the last of each sort of member is killed, so that the others live throughout and their memory means something.

import { readFileSync } from "node:fs";
import type { Field } from "./field.ts";
import { quantile } from "./figures.ts";
import { monotonicMs } from "./monotonic.ts";

const SAMPLE_MS = 5_000;
const FAULT_MS = 60_000;
/** What is compared: the minutes after the warm-up with the last ones. A coordinator fills what it keeps, 5 min of
 *  records for one, and its heap settles; a run that is too short for that compares its second half. */
const WARM_UP_MS = 10 * 60_000;
const WINDOW_SHARE = 1 / 12;

export interface MemoryRow {
  readonly process: string;
  /** Median of the window after the warm-up and of the last one, bytes. */
  readonly before: number;
  readonly after: number;
}

/** One minute with one fault. */
export async function soakMinute(field: Field, minute: number): Promise<void> {
  const endsMs = monotonicMs() + FAULT_MS;
  await faults[minute % faults.length]?.(field);
  await field.until("the minute is over", () => monotonicMs() >= endsMs, FAULT_MS);
}

/** Samples the resident memory of whoever lives throughout. */
export class MemorySampler {
  readonly #startedMs = monotonicMs();
  readonly #samples = new Map<string, { readonly ms: number; readonly bytes: number }[]>();
  readonly #timer: NodeJS.Timeout;

  constructor(field: Field) {
    this.#timer = setInterval(() => this.#sample(field), SAMPLE_MS);
  }

  stop(): MemoryRow[] {
    clearInterval(this.#timer);
    return rowsOf(this.#samples, monotonicMs() - this.#startedMs);
  }

  #sample(field: Field): void {
    const ms = monotonicMs() - this.#startedMs;
    for (const { name, pid } of longLived(field)) {
      const bytes = pid === undefined ? undefined : residentBytes(pid);
      if (bytes === undefined) continue;
      const ofProcess = this.#samples.get(name) ?? [];
      this.#samples.set(name, ofProcess);
      ofProcess.push({ ms, bytes });
    }
  }
}

const faults: readonly ((field: Field) => Promise<void>)[] = [
  (field) => killLast(field, field.processes.coordinators),
  (field) => killLast(field, field.processes.agents),
  stopLeader,
  cutOneOff,
];

async function killLast(field: Field, members: Field["processes"]["coordinators"]): Promise<void> {
  const last = members.at(-1);
  if (last === undefined) return;
  field.note(`kill ${last.name}`);
  await field.killed(last, () => field.between(1_000, 3_000));
}

async function stopLeader(field: Field): Promise<void> {
  const { member, term } = await field.leader();
  const { atMs } = field.mark({ figure: "leader stopped → next accept", endedTerm: term });
  member.signal("SIGSTOP");
  await field.accepted(atMs, { afterTerm: term });
  member.signal("SIGCONT");
}

async function cutOneOff(field: Field): Promise<void> {
  const { name } = field.random.pick(field.processes.all);
  field.note(`cut ${name} off`);
  for (const proxy of field.proxiesOf(name)) proxy.cut();
  await field.between(500, 5_000);
  field.heal();
}

function longLived(field: Field): readonly { readonly name: string; readonly pid: number | undefined }[] {
  const { coordinators, agents, clients } = field.processes;
  const parties = [...coordinators.slice(0, -1), ...agents.slice(0, -1), ...clients];
  return [
    ...parties.map(({ name, child }) => ({ name, pid: child?.pid })),
    ...field.plan.servers.members.map(({ name, pid }) => ({ name: `nats-server ${name}`, pid })),
  ];
}

/** @returns undefined when there is no such process any more */
function residentBytes(pid: number): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return kib === undefined ? undefined : Number(kib) * 1024;
  } catch {
    return undefined; // it has just ended
  }
}

function rowsOf(
  samples: ReadonlyMap<string, readonly { readonly ms: number; readonly bytes: number }[]>,
  wholeMs: number,
): MemoryRow[] {
  const median = (of: readonly { ms: number; bytes: number }[], fromMs: number, toMs: number) =>
    quantile(
      of.filter(({ ms }) => ms >= fromMs && ms < toMs).map(({ bytes }) => bytes),
      0.5,
    );
  const from = Math.min(WARM_UP_MS, wholeMs / 2);
  const window = wholeMs * WINDOW_SHARE;
  return [...samples].map(([process, of]) => ({
    process,
    before: median(of, from, from + window),
    after: median(of, wholeMs - window, wholeMs + SAMPLE_MS),
  }));
}
