// Answers the requests of A2A from the swarm: the tasks of A2A are tasks of the swarm. Attributes of a task say that it
// came over A2A, and in which context. So a killed server loses nothing, and several servers answer for one another.

import {
  type AgentCard,
  type ListTasksResponse,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  TaskState,
} from "@a2a-js/sdk";
import {
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { A2ARequestHandler, ServerCallContext } from "@a2a-js/sdk/server";
import type { ProjectSwarm } from "../../client/swarm.ts";
import type { TaskHandle } from "../../client/task-handle.ts";
import type { AcceptedTaskStatus } from "../../client/task-stories.ts";
import { WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import { nearMisses } from "../../state/near-miss.ts";
import { type CardOptions, cardOf } from "./card.ts";
import { feedOf } from "./task-feed.ts";
import {
  attributesFor,
  endedView,
  endStates,
  errorText,
  isOfA2a,
  type Named,
  namedIn,
  payloadOf,
  stateFor,
  statesFor,
  taskIdFor,
  viewOf,
} from "./task-view.ts";

type Params<Method extends keyof A2ARequestHandler> = Parameters<A2ARequestHandler[Method]>[0];

/** Key in the state of a call: the signal that aborts when the client is gone. */
export const GONE = "waggle.gone";

export class SwarmRequestHandler implements A2ARequestHandler {
  /** The served project: clients see no task of another project. */
  readonly #swarm: ProjectSwarm;
  readonly #card: CardOptions;

  constructor(swarm: ProjectSwarm, card: CardOptions) {
    this.#swarm = swarm;
    this.#card = card;
  }

  async getAgentCard(): Promise<AgentCard> {
    return cardOf(this.#card);
  }

  async getAuthenticatedExtendedAgentCard(): Promise<never> {
    throw new UnsupportedOperationError("there is no extended agent card");
  }

  async sendMessage(request: SendMessageRequest, context: ServerCallContext): Promise<Task> {
    const { named, handle, rejected } = await this.#submit(request);
    if (handle === undefined) return rejected;
    if (request.configuration?.returnImmediately === true)
      return await this.#view(await this.#statusOf(named.id));
    const at = await this.#endBefore(handle, named);
    const outcome = await coded(() => handle.outcome({ signal: goneOf(context) }));
    return endedView(named, outcome, at);
  }

  async *sendMessageStream(
    request: SendMessageRequest,
    context: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { named, handle, rejected } = await this.#submit(request);
    const first = handle === undefined ? rejected : viewOf(named, TaskState.TASK_STATE_SUBMITTED);
    yield { payload: { $case: "task", value: first } };
    if (handle === undefined) return;
    const endedAt = await this.#endBefore(handle, named);
    yield* feedOf(handle, named, { signal: goneOf(context), endedAt });
  }

  async *resubscribe(
    { id }: Params<"resubscribe">,
    context: ServerCallContext,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const status = await this.#statusOf(id);
    if (endStates.has(stateFor(status.state)))
      throw new UnsupportedOperationError(`task ${id} has ended: ask for it with GetTask`);
    const named = namedIn(status);
    yield { payload: { $case: "task", value: viewOf(named, stateFor(status.state)) } };
    yield* feedOf(this.#swarm.task(id), named, { signal: goneOf(context) });
  }

  async getTask({ id }: Params<"getTask">): Promise<Task> {
    return await this.#view(await this.#statusOf(id));
  }

  async cancelTask({ id }: Params<"cancelTask">): Promise<Task> {
    const status = await this.#statusOf(id);
    const { state } = await coded(() => this.#swarm.cancel(id));
    if (state !== "cancelled") throw new TaskNotCancelableError(`task ${id} has ended before: ${state}`);
    return viewOf(namedIn(status), TaskState.TASK_STATE_CANCELED);
  }

  /** Without artifacts: GetTask has them. */
  async listTasks({
    status,
    pageSize = 50,
    pageToken,
    contextId,
  }: Params<"listTasks">): Promise<ListTasksResponse> {
    if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > 100)
      throw new RequestMalformedError("pageSize must be a whole number from 1 to 100");
    const wanted = status === TaskState.TASK_STATE_UNSPECIFIED ? {} : { state: statesFor(status) };
    if (wanted.state?.length === 0) return { tasks: [], nextPageToken: "", pageSize, totalSize: 0 };
    const page = await coded(() =>
      this.#swarm.taskPage({
        ...{ kind: this.#card.kinds, limit: pageSize, attributes: attributesFor(contextId), ...wanted },
        ...(pageToken === "" ? {} : { after: pageToken }),
      }),
    );
    const tasks = page.tasks.map((listed) => {
      const state = stateFor(listed.state);
      return viewOf(namedIn(listed), state, endStates.has(state) ? { at: listed.since } : {});
    });
    return { tasks, nextPageToken: page.next ?? "", pageSize, totalSize: page.total };
  }

  async createTaskPushNotificationConfig(): Promise<never> {
    throw new PushNotificationNotSupportedError(
      "push notifications are not supported: subscribe to the task",
    );
  }

  async getTaskPushNotificationConfig(): Promise<never> {
    return await this.createTaskPushNotificationConfig();
  }

  async listTaskPushNotificationConfigs(): Promise<never> {
    return await this.createTaskPushNotificationConfig();
  }

  async deleteTaskPushNotificationConfig(): Promise<never> {
    return await this.createTaskPushNotificationConfig();
  }

  /** A refused submission is a rejected task. @throws the errors of A2A for a malformed request */
  async #submit({ message, metadata }: SendMessageRequest): Promise<Submitted> {
    if (message === undefined || message.messageId === "")
      throw new RequestMalformedError("message.messageId is required");
    if (message.taskId !== "") {
      await this.#statusOf(message.taskId);
      throw new UnsupportedOperationError(
        `task ${message.taskId} takes no further message: send a message without taskId`,
      );
    }
    const kind = this.#kindOf(message, metadata);
    const payload = payloadOf(message);
    const id = taskIdFor(message.messageId);
    const attributes = attributesFor(message.contextId);
    const named = namedIn({ task: id, attributes });
    try {
      const request = { kind, payload, id, attributes, stream: true };
      const handle = await this.#swarm.submit(request, { failFast: true });
      return { named, handle, rejected: undefined };
    } catch (error) {
      if (!(error instanceof WaggleError) || notRejected.has(error.code)) throw codedError(error);
      return {
        ...{ named, handle: undefined },
        rejected: viewOf(named, TaskState.TASK_STATE_REJECTED, { says: errorText(error) }),
      };
    }
  }

  /** The kind named as `skill` in the metadata, or else the only one. @throws RequestMalformedError */
  #kindOf(message: Message, metadata: SendMessageRequest["metadata"]): string {
    const { kinds } = this.#card;
    const [only = ""] = kinds;
    const skill: unknown = metadata?.skill ?? message.metadata?.skill;
    if (skill === undefined && kinds.length === 1) return only;
    if (typeof skill === "string" && kinds.includes(skill)) return skill;
    const near = nearMisses(String(skill ?? ""), kinds);
    const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : `there are ${kinds.join(", ")}`;
    const what = skill === undefined ? "is missing" : "is unknown";
    throw new RequestMalformedError(`metadata.skill ${what}; ${hint}`);
  }

  /** @throws TaskNotFoundError, also for tasks that did not come over A2A */
  async #statusOf(id: string): Promise<AcceptedTaskStatus> {
    if (!isOfA2a(id)) throw new TaskNotFoundError(`task not found: ${id}`);
    const status = await coded(() => this.#swarm.taskStatus(id));
    if (!this.#card.kinds.includes(status.kind)) throw new TaskNotFoundError(`task not found: ${id}`);
    return status;
  }

  /** Time at which the task of a repeated message ended, if it has ended. */
  async #endBefore({ ack }: TaskHandle, { id }: Named): Promise<number | undefined> {
    return ack?.duplicate === true ? (await this.#statusOf(id)).endedAt : undefined;
  }

  async #view(status: AcceptedTaskStatus): Promise<Task> {
    const named = namedIn(status);
    const state = stateFor(status.state);
    if (!endStates.has(state)) return viewOf(named, state);
    const handle = this.#swarm.task(named.id);
    const outcome = await coded(() => handle.outcome({ timeoutMs: limits.askTimeoutMs }));
    return endedView(named, outcome, status.endedAt);
  }
}

type Submitted =
  | { readonly named: Named; readonly handle: TaskHandle; readonly rejected: undefined }
  | { readonly named: Named; readonly handle: undefined; readonly rejected: Task };

/** Codes of requests that are an error, and no rejected task. */
const notRejected: ReadonlySet<string> = new Set([
  ...["WAGGLE_INVALID_MESSAGE", "WAGGLE_INVALID_VALUE", "WAGGLE_CONFLICT"],
  ...["WAGGLE_NO_LEADER", "WAGGLE_UNREACHABLE", "WAGGLE_OUTCOME_UNKNOWN"],
]);

/** With the errors of A2A in place of those of the swarm. */
async function coded<Value>(ask: () => Promise<Value>): Promise<Value> {
  try {
    return await ask();
  } catch (error) {
    throw codedError(error);
  }
}

function codedError(error: unknown): unknown {
  if (!(error instanceof WaggleError)) return error;
  switch (error.code) {
    case "WAGGLE_INVALID_MESSAGE":
    case "WAGGLE_INVALID_VALUE":
    case "WAGGLE_CONFLICT":
      return new RequestMalformedError(errorText(error));
    case "WAGGLE_UNKNOWN_TASK":
    case "WAGGLE_AMBIGUOUS_TASK":
      return new TaskNotFoundError(errorText(error));
    default:
      return new Error(errorText(error)); // -32603, an internal error
  }
}

function goneOf({ state }: ServerCallContext): AbortSignal {
  const signal = state.get(GONE);
  return signal instanceof AbortSignal ? signal : new AbortController().signal;
}
