// What one user of the demo does: submits at the user's own pace, and waits for everything to end.

import { setTimeout } from "node:timers/promises";
import type { Swarm } from "../../client/swarm.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { DemoTask, DemoUser } from "./scenario.ts";

export interface EndedTask {
  readonly task: DemoTask;
  readonly outcome: Outcome;
}

export interface AskingHooks {
  readonly signal: AbortSignal;
  /** Before the tasks are sent: from here on any of them may be accepted, whether its answer comes or not. */
  readonly onSubmit: (tasks: readonly DemoTask[]) => void;
  readonly onEnd: (task: DemoTask) => void;
}

/** All of one user's tasks, at the user's own pace. Resolves when all have ended. */
export async function submitFor(
  swarm: Swarm,
  { user, tasks, startsAfterMs, atOnce, pauseMs }: DemoUser,
  { signal, onSubmit, onEnd }: AskingHooks,
): Promise<EndedTask[]> {
  const taskById = new Map(tasks.map((task) => [task.id, task]));
  const waits: Promise<EndedTask>[] = [];
  await setTimeout(startsAfterMs, undefined, { signal });
  for (let at = 0; at < tasks.length; at += atOnce) {
    if (at > 0) await setTimeout(pauseMs, undefined, { signal });
    const together = tasks.slice(at, at + atOnce);
    const requests = together.map(({ id, kind, file }) => ({ id, kind, user, payload: { file } }));
    onSubmit(together);
    for await (const one of swarm.submitMany(requests, { signal })) {
      if (!one.ok) throw one.error;
      const task = taskById.get(one.handle.id);
      if (task === undefined) continue;
      const wait = one.handle.outcome({ signal }).then((outcome) => ({ task, outcome }));
      wait.then(
        () => onEnd(task),
        () => undefined, // what went wrong is thrown below, when its turn comes
      );
      waits.push(wait);
    }
  }
  return await Promise.all(waits);
}
