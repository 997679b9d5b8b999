// Submits the demo's tasks evenly over its time, and waits for their outcomes. Evenly by the clock: where the machine
// stalls, what is due then goes out together.

import { setTimeout } from "node:timers/promises";
import type { Swarm } from "../../client/swarm.ts";
import { limits } from "../../limits.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { DemoTask } from "./scenario.ts";

export interface EndedTask {
  readonly task: DemoTask;
  readonly outcome: Outcome;
}

export interface SubmittingOptions {
  /** Over how long, ms. */
  readonly submitMs: number;
  /** Ends everything with its reason. */
  readonly signal: AbortSignal;
  /** Ends submission and waiting: what has not ended by then is left out. */
  readonly timeUp: AbortSignal;
  /** Once, when all that will be submitted was. */
  readonly onSubmitted: () => void;
}

/** Resolves with the tasks that ended in time. @throws WaggleError when a task is refused; the signal's reason */
export async function submitEvenly(
  swarm: Swarm,
  tasks: readonly DemoTask[],
  { submitMs, signal, timeUp, onSubmitted }: SubmittingOptions,
): Promise<EndedTask[]> {
  const ending = AbortSignal.any([signal, timeUp]);
  const waits: Promise<EndedTask | undefined>[] = [];
  const startedAt = performance.now();
  for (let sent = 0; sent < tasks.length && !timeUp.aborted; ) {
    const due = Math.ceil(((performance.now() - startedAt + limits.demoStepMs) / submitMs) * tasks.length);
    const together = tasks.slice(sent, due);
    sent += together.length;
    for (const handle of await submitTogether(swarm, together, signal)) {
      const wait = handle.outcome({ signal: ending }).then(
        (outcome) => ({ task: handle.task, outcome }),
        (error: unknown) => unlessTimeUp(error, { signal, timeUp }),
      );
      wait.catch(() => undefined); // thrown below, unless the submission is thrown out of before
      waits.push(wait);
    }
    if (sent < tasks.length) await setTimeout(limits.demoStepMs, undefined, { signal });
  }
  onSubmitted();
  return (await Promise.all(waits)).filter((ended) => ended !== undefined);
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
