// Warnings about a task that was accepted. The leader's answer carries some; this machine's clock finds the
// others.

import type { Logger } from "pino";
import { limits } from "../limits.ts";
import type { SubmitAnswer } from "../protocol/schemas.ts";

/** A warning in the leader's answer. */
export type SubmitWarning = NonNullable<(SubmitAnswer & { readonly ok: true })["warnings"]>[number];

export interface TaskWarning {
  /** `no-agent-serves-kind`, `no-agent-has-labels`: the task waits. `deadline-passed`: the task expires at once.
   *  `deadline-before-start`: the task expires before it may start. */
  readonly code: "no-agent-serves-kind" | "no-agent-has-labels" | "deadline-passed" | "deadline-before-start";
  /** A sentence for users. */
  readonly message: string;
  /** Kinds that agents serve at present and whose names are similar, or similar labels (`gpu=h100`). Only with
   *  `no-agent-serves-kind` and `no-agent-has-labels`. */
  readonly nearMisses?: readonly string[];
  /** The needs that no agent meets, alone or together. Only with `no-agent-has-labels`. */
  readonly needs?: string;
}

/** @param times ms since the Unix epoch, as prepared */
export function timeWarnings(
  { deadline, notBefore }: { readonly deadline?: Date | number; readonly notBefore?: Date | number },
  now: number,
): readonly TaskWarning[] {
  if (deadline === undefined) return [];
  const [ends, starts] = [Number(deadline), Number(notBefore ?? 0)];
  const at = new Date(ends).toISOString();
  if (ends <= now)
    return [
      {
        code: "deadline-passed",
        message: `the deadline ${at} has passed by this machine's clock: the task expires`,
      },
    ];
  if (ends > starts) return [];
  const message = `the deadline ${at} is not after notBefore: the task expires before it may start`;
  return [{ code: "deadline-before-start", message }];
}

/** The text of the leader's warning. */
export function leaderWarning(kind: string, { code, nearMisses, needs }: SubmitWarning): TaskWarning {
  const near = nearMisses.length === 0 ? "" : ` (did you mean ${nearMisses.join(" or ")}?)`;
  if (needs !== undefined) {
    const message = `no agent that serves the kind ${kind} has labels ${needs} at present${near}: the task waits until one joins`;
    return { code, message, nearMisses, needs };
  }
  const message = `no agent serves the kind ${kind} at present${near}: the task waits until one joins`;
  return { code, message, nearMisses };
}

/** Logs each warning once per kind of task, not once per task. */
export class WarningLog {
  readonly #logger: Logger;
  readonly #logged = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note(kind: string, { code, message, needs = "" }: TaskWarning, task: string): void {
    const key = `${code} ${kind} ${needs}`;
    if (this.#logged.has(key)) return;
    if (this.#logged.size >= limits.warningsLoggedMax) this.#logged.clear();
    this.#logged.add(key);
    this.#logger.warn({ kind, code, task }, message);
  }
}
