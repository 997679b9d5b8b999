// Puts payloads and results back into published events: live events leave them out, and the checkers compare them.
// Clients and agents have recorded what they sent.

import { taskKey } from "../../src/ids.ts";
import type { Observation } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import { refOf } from "../../src/state/task-rows.ts";
import type { PublishedBatch } from "./committed-log.ts";

export function withContents(
  publishedByIdx: ReadonlyMap<number, PublishedBatch>,
  observations: readonly Observation[],
): ReadonlyMap<number, PublishedBatch> {
  const payloadByTask = new Map<string, string>();
  const acceptedTasks = new Set<string>();
  const resultByAttempt = new Map<string, string>();
  for (const observed of observations) {
    if (observed.kind === "submit" && !acceptedTasks.has(observed.task)) {
      const isAccepted = observed.answer === "accepted" || observed.answer === "duplicate";
      const { task, content } = observed;
      // Clients submit other content under the id of a task, too. They do so after the task.
      if (isAccepted || !payloadByTask.has(task)) payloadByTask.set(task, String(content["payload"] ?? ""));
      if (isAccepted) acceptedTasks.add(task);
    }
    if (observed.kind === "result" && observed.result !== undefined)
      resultByAttempt.set(`${observed.task} ${observed.attempt}`, observed.result);
  }
  const filled = (event: Event): Event => {
    switch (event.type) {
      case "TaskSubmitted":
      case "TaskRetried": {
        const payload = payloadByTask.get(taskKey(refOf(event.task))) ?? "";
        return { ...event, task: { ...event.task, payload } };
      }
      case "TaskCompleted":
        return { ...event, result: resultByAttempt.get(`${taskKey(event)} ${event.attempt}`) ?? "" };
      default:
        return event;
    }
  };
  return new Map(
    [...publishedByIdx].map(([idx, batch]) => [idx, { ...batch, events: batch.events.map(filled) }]),
  );
}
