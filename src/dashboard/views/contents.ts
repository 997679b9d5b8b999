// Payload, result and output of a task, read only when a person asks for them.

import type { Swarm } from "../../client/swarm.ts";
import { hashOnlyText } from "../../client/task-errors.ts";
import type { TaskStory } from "../../client/task-stories.ts";
import { headOf } from "../../cut-text.ts";
import { defined } from "../../defined.ts";
import { limits } from "../../limits.ts";
import type { Event } from "../../state/event.ts";
import type { TaskContents, TextContent } from "../wire.ts";
import { sizeOf } from "./task.ts";

export async function contentsView(
  swarm: Pick<Swarm, "story" | "log">,
  { task, project }: { readonly task: string; readonly project: string | undefined },
): Promise<TaskContents> {
  const story = await swarm.story(task, { ...defined({ project }), timeoutMs: limits.dashboardActionMs });
  const { spec } = story;
  const completed = story.events.findLast(({ event }) => event.type === "TaskCompleted")?.event;
  const payload = spec === undefined ? undefined : contentOf(spec.payload, spec.encoding);
  const result =
    completed?.type === "TaskCompleted" && completed.result !== undefined
      ? contentOf(completed.result, completed.encoding)
      : undefined;
  return {
    ...defined({ payload, result }),
    missing: {
      ...(payload === undefined ? { payload: "the journal no longer keeps its submission" } : {}),
      ...(result === undefined ? { result: missingResult(story, completed) } : {}),
    },
    logs: await logsOf(swarm, story),
  };
}

function missingResult({ status }: TaskStory, completed: Event | undefined): string {
  if (completed?.type === "TaskCompleted" && completed.resultDigest !== undefined)
    return hashOnlyText(completed.resultDigest);
  if (status.endedIdx === undefined) return "the task has not ended";
  if (status.state !== "completed")
    return `the task ended as ${status.state}: only a completed task has a result`;
  return "the journal no longer keeps it";
}

async function logsOf(swarm: Pick<Swarm, "log">, story: TaskStory): Promise<TaskContents["logs"]> {
  if (story.attempts.length === 0) return [];
  const logs = await swarm.log(story);
  return logs.map((log) => {
    const { attempt, agent, text, missing } = log;
    return missing === undefined ? { attempt, agent, text } : { attempt, agent, missing };
  });
}

function contentOf(text: string, encoding: "base64" | undefined): TextContent {
  const shown = headOf(text, limits.dashboardContentBytesMax);
  return {
    text: shown,
    bytes: sizeOf(text, encoding),
    isCut: shown.length < text.length,
    ...defined({ encoding }),
  };
}
