// A finding of a checker: the broken promise, the observation and the description.

import type { Observation } from "./observation.ts";

/** Numbers in `docs/invariants.md`, "Promises". */
export type PromiseNumber = "P1" | "P2" | "P3" | "P4" | "P5" | "P6" | "P7" | "P8" | "P12" | "P13";

export interface Violation {
  readonly promise: PromiseNumber;
  readonly checker: string;
  /** The finding, with the name of the observation. */
  readonly sentence: string;
}

export function violation(
  promise: PromiseNumber,
  checker: string,
  observed: Observation,
  sentence: string,
): Violation {
  return { promise, checker, sentence: `${nameOf(observed)} ${sentence}` };
}

function nameOf(observed: Observation): string {
  const task = observed.kind === "notified" ? observed.outcome.task : observed.task;
  const attempt = "attempt" in observed ? `#${observed.attempt}` : "";
  const when = "sentMs" in observed ? `sent at ${ms(observed.sentMs)}` : `heard at ${ms(observed.heardMs)}`;
  return `${observed.node}: ${observed.kind} ${task}${attempt}, ${when},`;
}

function ms(instant: number): string {
  return `${instant.toFixed(1)} ms`;
}
