// A task of the swarm as a task of A2A, and the parts of a message as a payload. The swarm keeps the tasks, so a server
// that is started again answers for tasks of before.

import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type Task,
  TaskState,
  type TaskStatus,
} from "@a2a-js/sdk";
import { ContentTypeNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import { textOrBase64 } from "../../agent/result-text.ts";
import { resultOf } from "../../client/task-result.ts";
import { messageOf, WaggleError } from "../../errors.ts";
import { NAME_PATTERN } from "../../ids.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { ListedTask } from "../../protocol/task-list-schemas.ts";

const PREFIX = "a2a-";

/** Id of the task for a message. The same message is the same task, so a repeated request runs once. */
export function taskIdFor(messageId: string): string {
  const id = `${PREFIX}${messageId}`;
  if (NAME_PATTERN.test(id)) return id;
  return `${PREFIX}${createHash("sha256").update(messageId).digest("hex")}`;
}

/** True for tasks that came over A2A. */
export function isOfA2a(taskId: string): boolean {
  return taskId.startsWith(PREFIX);
}

/** Identity of a task for its client. */
export interface Named {
  readonly id: string;
  readonly contextId: string;
}

const CONTEXT = "a2a-context";

/** Attributes of a task, by which it is found again. @param contextId empty: of its own */
export function attributesFor(contextId: string): Readonly<Record<string, string>> {
  return { protocol: "a2a", ...(contextId === "" ? {} : { [CONTEXT]: contextId }) };
}

/** A task without a context is a context of its own. */
export function namedIn({ task: id, attributes }: Pick<ListedTask, "task" | "attributes">): Named {
  return { id, contextId: attributes?.[CONTEXT] ?? id };
}

const stateByState: Readonly<Record<ListedTask["state"], TaskState>> = {
  queued: TaskState.TASK_STATE_SUBMITTED,
  delayed: TaskState.TASK_STATE_SUBMITTED,
  assigned: TaskState.TASK_STATE_WORKING,
  running: TaskState.TASK_STATE_WORKING,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
  "dead-lettered": TaskState.TASK_STATE_FAILED,
  expired: TaskState.TASK_STATE_FAILED,
  cancelled: TaskState.TASK_STATE_CANCELED,
};

export function stateFor(state: string): TaskState {
  return stateByState[state as ListedTask["state"]] ?? TaskState.TASK_STATE_UNSPECIFIED;
}

/** States of the swarm that are a state of A2A. */
export function statesFor(wanted: TaskState): ListedTask["state"][] {
  const states = Object.keys(stateByState) as ListedTask["state"][];
  return states.filter((state) => stateByState[state] === wanted);
}

export const endStates: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);

export interface StatusDetails {
  readonly says?: string | undefined;
  /** Time since which the task has the state, ms since the Unix epoch. Default: now. */
  readonly at?: number | undefined;
}

/** A task that has not ended, or whose end needs no details. */
export function viewOf(named: Named, state: TaskState, details?: StatusDetails): Task {
  return { ...named, status: statusOf(named, state, details), artifacts: [], history: [], metadata: {} };
}

export function statusOf(
  named: Named,
  state: TaskState,
  { says, at = Date.now() }: StatusDetails = {},
): TaskStatus {
  return {
    state,
    message: says === undefined ? undefined : agentMessage(named, says),
    timestamp: new Date(at).toISOString(),
  };
}

function agentMessage({ id, contextId }: Named, text: string): Message {
  return {
    ...{ messageId: crypto.randomUUID(), contextId, taskId: id, role: Role.ROLE_AGENT },
    ...{ parts: [textPart(text)], metadata: {}, extensions: [], referenceTaskIds: [] },
  };
}

/** An ended task, with its result as an artifact or the reason of its end as a message.
 *  @param at time of the end, ms since the Unix epoch. Default: now */
export function endedView(named: Named, outcome: Outcome, at?: number): Task {
  const state = stateFor(outcome.state);
  try {
    const parts = [partOf(resultOf(outcome).bytes())];
    return { ...viewOf(named, state, { at }), artifacts: [resultArtifact(parts)] };
  } catch (error) {
    return viewOf(named, state, { says: errorText(error), at });
  }
}

/** The artifact of a task's result. Chunks of the result build the same artifact. */
export function resultArtifact(parts: Part[]): Artifact {
  return { artifactId: "result", name: "result", description: "", parts, metadata: {}, extensions: [] };
}

export function partOf(bytes: Uint8Array): Part {
  const text = textOrBase64(bytes);
  if (typeof text === "string") return textPart(text);
  const value = Buffer.from(bytes);
  return {
    ...{ content: { $case: "raw", value }, mediaType: "application/octet-stream" },
    ...{ filename: "", metadata: {} },
  };
}

export function textPart(text: string): Part {
  return {
    content: { $case: "text", value: text },
    ...{ mediaType: "text/plain", filename: "", metadata: {} },
  };
}

/** `WAGGLE_TASK_FAILED: …`. */
export function errorText(error: unknown): string {
  return error instanceof WaggleError ? `${error.code}: ${error.message}` : messageOf(error);
}

/** The payload of a task: one part, or several texts as lines.
 *  @throws RequestMalformedError for no content; ContentTypeNotSupportedError for other parts */
export function payloadOf({ parts }: Message): unknown {
  const contents = parts.map(({ content }) => content);
  const [only] = contents;
  if (only === undefined) throw new RequestMalformedError("the message has no part with content");
  if (contents.every((content) => content?.$case === "text"))
    return contents.map((content) => content?.value).join("\n");
  if (contents.length === 1 && only.$case === "data") return only.value;
  if (contents.length === 1 && only.$case === "raw") return new Uint8Array(only.value);
  throw new ContentTypeNotSupportedError(
    "a message must have parts of text, or a single part with data or raw bytes",
  );
}
