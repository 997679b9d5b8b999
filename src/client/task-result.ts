// The result of a completed task. Every other outcome throws an error.

import { unreachable } from "../assert.ts";
import { InvalidMessageError } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";
import { ResultGoneError, TaskCancelledError, TaskExpiredError, TaskFailedError } from "./task-errors.ts";

export class TaskResult {
  readonly taskId: string;
  /** Number of attempts in all rounds of the task. The last attempt succeeded. */
  readonly attempts: number;
  /** Id of the agent that completed the task. */
  readonly agent: string;
  /** Tokens used, if the agent reported them. */
  readonly tokens: number | undefined;
  /** Duration of the last attempt from assignment to result, ms. */
  readonly latencyMs: number;
  readonly #result: string;
  readonly #isBase64: boolean;

  constructor(outcome: Outcome) {
    this.taskId = outcome.task;
    this.attempts = outcome.attempts;
    this.agent = outcome.agent ?? "";
    this.tokens = outcome.tokens;
    this.latencyMs = outcome.latencyMs ?? 0;
    this.#result = outcome.result ?? "";
    this.#isBase64 = outcome.encoding === "base64";
  }

  /** The result as text; bytes are decoded as UTF-8. */
  text(): string {
    return this.#isBase64 ? Buffer.from(this.#result, "base64").toString("utf8") : this.#result;
  }

  bytes(): Uint8Array {
    return this.#isBase64 ? Buffer.from(this.#result, "base64") : Buffer.from(this.#result, "utf8");
  }

  /** The result parsed as JSON. The type parameter is not checked.
   *  @throws InvalidMessageError when the result is not JSON */
  json<Value = unknown>(): Value {
    try {
      return JSON.parse(this.text()) as Value;
    } catch (cause) {
      throw new InvalidMessageError(`The result of task ${this.taskId} is not JSON; read it with text()`, {
        cause,
      });
    }
  }
}

/** The result of a task whose kind `defineKind` made. */
export class TypedTaskResult<Value> extends TaskResult {
  /** The result, checked against the kind's output schema. */
  readonly value: Value;

  constructor(outcome: Outcome, value: Value) {
    super(outcome);
    this.value = value;
  }
}

/** @throws TaskFailedError, TaskCancelledError, TaskExpiredError, ResultGoneError */
export function resultOf(outcome: Outcome): TaskResult {
  switch (outcome.state) {
    case "completed":
      if (ResultGoneError.applies(outcome)) throw new ResultGoneError(outcome);
      return new TaskResult(outcome);
    case "failed":
    case "dead-lettered":
      throw new TaskFailedError(outcome);
    case "cancelled":
      throw new TaskCancelledError(outcome);
    case "expired":
      throw new TaskExpiredError(outcome);
    default:
      return unreachable(outcome.state);
  }
}
