// Submits the demo's tasks evenly by the clock, and waits for their outcomes. Where the machine stalls, tasks that are
// due go out together, but never more than the agents have slots for.

import { setTimeout } from "node:timers/promises";
import type { Swarm } from "../../client/swarm.ts";
import { limits } from "../../limits.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { DemoPlan, DemoTask } from "./scenario.ts";

export interface EndedTask {
  readonly task: DemoTask;
  readonly outcome: Outcome;
}

export interface SubmittingOptions extends Pick<DemoPlan, "everyMs" | "submitMs" | "openMax"> {
  /** Number of tasks between two attempts. They occupy no agent. */
  readonly delayed: () => number;
  /** Aborts the run with its reason. */
  readonly signal: AbortSignal;
  /** Ends submission and waiting; open tasks are left out. */
  readonly timeUp: AbortSignal;
  /** Once, with how many tasks were submitted, when no more will be. */
  readonly onSubmitted: (count: number) => void;
}

/** Number of tasks to submit by an instant: the due tasks, limited by the capacity of the agents. */
export function submittedBy(
  elapsedMs: number,
  {
    everyMs,
    openMax,
    ended,
    delayed,
  }: Pick<DemoPlan, "everyMs" | "openMax"> & { readonly ended: number; readonly delayed: number },
): number {
  const due = Math.ceil((elapsedMs + limits.demoStepMs) / everyMs);
  return Math.min(due, ended + delayed + openMax);
}

/** Resolves with the tasks that ended in time. @throws WaggleError when a task is refused; the signal's reason */
export async function submitEvenly(
  swarm: Swarm,
  tasks: readonly DemoTask[],
  { everyMs, submitMs, openMax, delayed, signal, timeUp, onSubmitted }: SubmittingOptions,
): Promise<EndedTask[]> {
  const ending = AbortSignal.any([signal, timeUp]);
  const waits: Promise<EndedTask | undefined>[] = [];
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  let ended = 0;
  while (waits.length < tasks.length && elapsedMs() < submitMs && !timeUp.aborted) {
    const count = submittedBy(elapsedMs(), { everyMs, openMax, ended, delayed: delayed() });
    const together = tasks.slice(waits.length, count);
    for (const handle of await submitTogether(swarm, together, signal)) {
      const wait = handle.outcome({ signal: ending }).then(
        (outcome) => {
          ended += 1;
          return { task: handle.task, outcome };
        },
        (error: unknown) => unlessTimeUp(error, { signal, timeUp }),
      );
      wait.catch(() => undefined); // thrown below, unless the submission is thrown out of before
      waits.push(wait);
    }
    if (waits.length < tasks.length) await setTimeout(limits.demoStepMs, undefined, { signal });
  }
  onSubmitted(waits.length);
  return (await Promise.all(waits)).filter((one) => one !== undefined);
}

async function submitTogether(swarm: Swarm, tasks: readonly DemoTask[], signal: AbortSignal) {
  const requests = tasks.map(({ id, kind, file }) => ({ id, kind, payload: { file } }));
  const taskById = new Map(tasks.map((task) => [task.id, task]));
  const handles: { task: DemoTask; outcome: (options: { signal: AbortSignal }) => Promise<Outcome> }[] = [];
  for await (const one of swarm.submitMany(requests, { signal })) {
    if (!one.ok) throw one.error;
    const { handle } = one;
    const task = taskById.get(handle.id);
    if (task !== undefined) handles.push({ task, outcome: (options) => handle.outcome(options) });
  }
  return handles;
}

function unlessTimeUp(
  error: unknown,
  { signal, timeUp }: Pick<SubmittingOptions, "signal" | "timeUp">,
): undefined {
  if (timeUp.aborted && !signal.aborted) return undefined;
  throw error;
}
