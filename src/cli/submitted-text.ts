// The texts of `submit`: accepted tasks, warnings about kinds without agents, outcomes.

import { unreachable } from "../assert.ts";
import {
  ResultGoneError,
  TaskCancelledError,
  TaskExpiredError,
  TaskFailedError,
} from "../client/task-errors.ts";
import type { TaskHandle } from "../client/task-handle.ts";
import type { SubmitWarning } from "../client/task-warnings.ts";
import type { WaggleError } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";
import { type Output, printable } from "./output.ts";
import type { PrintedChunks } from "./streamed-text.ts";
import type { TaskFlags } from "./task-source.ts";

export interface SubmitFlags extends TaskFlags {
  readonly wait?: boolean;
  readonly waitTimeout?: number;
  readonly watch?: boolean;
  readonly failFast?: boolean;
}

export function staysUntilTheEnd(flags: SubmitFlags): boolean {
  return (
    flags.wait === true || flags.watch === true || flags.stream === true || flags.waitTimeout !== undefined
  );
}

/** The id is the datum, unless the result will be. */
export function printAccepted(
  handle: TaskHandle,
  kind: string,
  { output, isWaiting }: { readonly output: Output; readonly isWaiting: boolean },
): void {
  for (const warning of handle.ack?.warnings ?? []) output.note(warningText(kind, warning, output));
  if (output.json || !isWaiting) output.datum({ type: "accepted", ...handle.ack }, () => handle.id);
  else
    output.note(
      output.noteColors.dim(
        `${handle.id} ${handle.ack?.duplicate === true ? "was accepted before" : "accepted"}`,
      ),
    );
}

/** Warning: a task was accepted, but no agent serves its kind, or none of them has the labels. */
export function warningText(
  kind: string,
  { nearMisses, needs }: SubmitWarning,
  { noteColors }: Output,
): string {
  const near =
    nearMisses.length === 0 ? "" : ` Did you mean ${nearMisses.map((name) => printable(name)).join(" or ")}?`;
  const queued = "The task is queued until an agent for it joins";
  const lacking =
    needs === undefined
      ? `no agent serves the kind ${printable(kind)}`
      : `no agent that serves the kind ${printable(kind)} has the labels ${printable(needs)}`;
  return `${noteColors.yellow("warning:")} ${lacking}.${near} ${queued}`;
}

/** Prints a result. @throws TaskEndedError without a result */
export function printOutcome(outcome: Outcome, output: Output): void {
  if (output.json) output.datum(outcomeRecord(outcome), () => "");
  const error = errorOfOutcome(outcome);
  if (error !== undefined) throw error;
  if (!output.json)
    output.raw(
      outcome.encoding === "base64" ? Buffer.from(outcome.result ?? "", "base64") : (outcome.result ?? ""),
    );
}

/** As `tellOutcome`, after chunks of the result. */
export function printStreamed(outcome: Outcome, printed: PrintedChunks): void {
  const error = errorOfOutcome(outcome);
  if (error === undefined) return printed.printResult(outcome);
  printed.endLine();
  throw error;
}

export function outcomeRecord(outcome: Outcome): Record<string, unknown> {
  const { task, ...rest } = outcome;
  return { type: "outcome", taskId: task, ...rest };
}

/** `t1 completed 12`, `t2 dead-lettered exit 1`; with several files the file of the payload comes first. */
export function outcomeLine({ task, state, result, error, reason }: Outcome, file?: string): string {
  const place = file === undefined ? [] : [`${printable(file)}:`];
  return [...place, task, state, printable((result ?? error ?? reason ?? "").trimEnd())]
    .filter((part) => part !== "")
    .join(" ");
}

/** Undefined if the task has a result. */
export function errorOfOutcome(outcome: Outcome): WaggleError | undefined {
  switch (outcome.state) {
    case "completed":
      return ResultGoneError.applies(outcome) ? new ResultGoneError(outcome) : undefined;
    case "cancelled":
      return new TaskCancelledError(outcome);
    case "expired":
      return new TaskExpiredError(outcome);
    case "failed":
    case "dead-lettered":
      return new TaskFailedError(outcome);
    default:
      return unreachable(outcome.state);
  }
}
