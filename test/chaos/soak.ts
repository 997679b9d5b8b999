// The soak: one swarm for an hour at 200 tasks per second with a fault per minute, and memory samples of each
// process. Only the last member of each sort is killed, so that the rest live throughout and give meaningful
// memory figures.

import type { Field } from "./field.ts";
import { inUseFileOf, type Sampled } from "./memory.ts";
import { monotonicMs } from "./monotonic.ts";

const FAULT_MS = 60_000;

/** One minute with one fault. */
export async function soakMinute(field: Field, minute: number): Promise<void> {
  const endsMs = monotonicMs() + FAULT_MS;
  await faults[minute % faults.length]?.(field);
  await field.until("the minute is over", () => monotonicMs() >= endsMs, FAULT_MS);
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

/** Processes that live throughout. */
export function longLived(field: Field): readonly Sampled[] {
  const { coordinators, agents, clients } = field.processes;
  const nodes = [...coordinators.slice(0, -1), ...agents.slice(0, -1), ...clients];
  return [
    ...nodes.map(({ name, child }) => ({
      name,
      pid: child?.pid,
      inUseFile: inUseFileOf(field.plan.folder, name),
    })),
    ...field.plan.servers.members.map(({ name, pid }) => ({ name: `nats-server ${name}`, pid })),
  ];
}
