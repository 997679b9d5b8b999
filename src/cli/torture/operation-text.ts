// A client's operation of a seed on one line, in the form of faults: `at 2.000 s: k1 set-project acme creditWeight=2`.

import type { Operation } from "../../sim/fault/workload.ts";

/** Shows every parameter, known or not: a file of operations may hold any. */
export function operationText({ atMs, client, does, ...asked }: Operation): string {
  const words = Object.values(asked)
    .filter((value) => value !== undefined)
    .map(wordsOf);
  return `at ${(atMs / 1_000).toFixed(3)} s: ${[client, does, ...words].join(" ")}`;
}

function wordsOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(wordsOf).join(", ");
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, part]) => `${name}=${isPlain(part) ? String(part) : JSON.stringify(part)}`)
    .join(" ");
}

function isPlain(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}
