// Walks a chart through every state and every signal and compares with a table written by hand. What the table
// does not name must change nothing.

import { expect } from "vitest";
import {
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventFromLogic,
  getNextSnapshot,
  type SnapshotFrom,
} from "xstate";

/** `"busy.available": { FULL: "busy.saturated" }`: where each signal leads; all others lead nowhere. */
export type EdgeTable = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Signals by the name the table uses; the name tells apart signals of one type that differ in a guard. */
export type SignalTable<Machine extends AnyStateMachine> = Readonly<Record<string, EventFromLogic<Machine>>>;

/** @throws an assertion error naming the state and the signal that disagree with the table */
export function walkEveryEdge<Machine extends AnyStateMachine>(
  machine: Machine,
  signals: SignalTable<Machine>,
  table: EdgeTable,
): void {
  expect(leavesOf(machine), "the table names every state").toEqual(Object.keys(table).sort());
  for (const [from, edges] of Object.entries(table)) {
    for (const [name, signal] of Object.entries(signals)) {
      const next: AnyMachineSnapshot = getNextSnapshot<AnyStateMachine>(
        machine,
        snapshotIn(machine, from),
        signal,
      );
      const reached = pathOf(next.value);
      expect(reached, `${from} ─${name}→`).toBe(edges[name] ?? from);
    }
  }
}

/** A snapshot in the state that a path names. */
export function snapshotIn<Machine extends AnyStateMachine>(
  machine: Machine,
  path: string,
): SnapshotFrom<Machine> {
  const value = path
    .split(".")
    .reduceRight<unknown>((inner, key) => (inner === undefined ? key : { [key]: inner }), undefined);
  return machine.resolveState({ value: value as never, context: {} }) as SnapshotFrom<Machine>;
}

function leavesOf(machine: AnyStateMachine): string[] {
  const leaves: string[] = [];
  const visit = (state: AnyStateMachine["root"]) => {
    const inner = Object.values(state.states);
    if (inner.length === 0) leaves.push(state.path.join("."));
    for (const child of inner) visit(child);
  };
  visit(machine.root);
  return leaves.sort();
}

function pathOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries(value as Record<string, unknown>)
    .map(([key, inner]) => `${key}.${pathOf(inner)}`)
    .join();
}
