// A swarm's state as a value without cycles: only equal states have equal fingerprints. Order counts where the state
// keeps an order (maps in insertion order, heaps in the order of removal).

import { AgedMap } from "../../src/state/aged-map.ts";
import { holdScopes } from "../../src/state/hold.ts";
import type { HeapItem, IndexedHeap } from "../../src/state/indexed-heap.ts";
import { queueOf } from "../../src/state/queues.ts";
import { isServedEarlier } from "../../src/state/service-order.ts";
import {
  isDueEarlier,
  type QueueProject,
  type QueueUser,
  type SwarmState,
  type TaskQueue,
  type Timer,
} from "../../src/state/state.ts";

/** For `toEqual`, to show the difference of two states. */
export function describeState(state: SwarmState): unknown {
  const { taskById, endedById, queueByKey, liveByNeeds, timers, holds, ...rest } = state;
  const held = Object.fromEntries(
    holdScopes.map((on) => [on, [...holds[on].values()].map(({ changedAt: _, ...hold }) => hold)]),
  );
  return plain({
    ...rest,
    holds: held,
    taskById: [...taskById.values()].map((task) => {
      const { heapAt: _, partition: __, older: ___, newer: ____, userRow, projectRow, ...row } = task;
      return { ...row, queue: queueOf(task)?.key, countedIn: `${projectRow.project} ${userRow.user}` };
    }),
    endedById: [...endedById.values()],
    liveByNeeds: [...liveByNeeds].map(([key, live]) => `${key}: ${live}`).sort(),
    queueByKey: [...queueByKey.values()].map(describeQueue),
    timers: inOrder(timers, isDueEarlier).map(describeTimer),
  });
}

/** For comparing quickly. */
export function fingerprint(state: SwarmState): string {
  return JSON.stringify(describeState(state));
}

/** Members in order of entry, each with the values deciding its turn. Positions in the heaps follow from the values. */
function describeQueue({ kindRow, memberByProject, projects: _, ...queue }: TaskQueue): unknown {
  return { ...queue, tick: kindRow.tick, projects: [...memberByProject.values()].map(describeProject) };
}

function describeProject(member: QueueProject): unknown {
  const { row, queue: _, account: __, number: ___, users: ____, memberByUser, ...project } = member;
  return { ...project, project: row.project, users: [...memberByUser.values()].map(describeUser) };
}

function describeUser({ row, project: _, account: __, number: ___, ...user }: QueueUser): unknown {
  const partitions = user.partitions.map(({ avoid, tasks, oldest, newest }) => ({
    avoid,
    tasks: inOrder(tasks, isServedEarlier).map(({ spec }) => spec.id),
    oldest: oldest?.spec.id,
    newest: newest?.spec.id,
  }));
  return { ...user, user: row.user, partitions, first: user.first.spec.id, oldest: user.oldest.spec.id };
}

function describeTimer({ dueAt, order, due }: Timer): string {
  const of = {
    release: () => ("task" in due ? due.task.spec.id : ""),
    deadline: () => ("task" in due ? due.task.spec.id : ""),
    timeout: () => ("attempt" in due ? `${due.attempt.task}#${due.attempt.attempt}` : ""),
    "acquire-timeout": () => ("slot" in due ? `${due.slot.agent} ${due.slot.handle}` : ""),
    "slot-idle": () => ("slot" in due ? `${due.slot.agent} ${due.slot.handle}` : ""),
    forget: () => ("agent" in due ? due.agent : ""),
    hold: () => ("hold" in due ? `${due.hold.on} ${due.hold.name}` : ""),
  };
  return `${dueAt} ${order} ${due.kind} ${of[due.kind]()}`;
}

function inOrder<Item extends HeapItem>(
  heap: IndexedHeap<Item>,
  isBefore: (a: Item, b: Item) => boolean,
): Item[] {
  return [...heap.values()].sort((a, b) => (isBefore(a, b) ? -1 : 1));
}

/** Maps and sets as lists, timers and attempts' tasks by name, undefined left out. The order of setting fields is no
 *  part of a state. */
function plain(value: unknown): unknown {
  if (value instanceof Map || value instanceof AgedMap)
    return [...value].map(([key, item]) => [key, plain(item)]);
  if (value instanceof Set) return [...value];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  if (isTimer(value)) return describeTimer(value);
  const fields = value as Readonly<Record<string, unknown>>;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(fields).sort()) if (fields[key] !== undefined) copy[key] = plain(fields[key]);
  return copy;
}

function isTimer(value: object): value is Timer {
  return "dueAt" in value && "due" in value;
}
