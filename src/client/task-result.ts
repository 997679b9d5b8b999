// What a completed task gave back, and the error that stands for any other ending.

import { unreachable } from "../assert.ts";
import { InvalidMessageError } from "../errors.ts";
import type { Outcome } from "../protocol/schemas.ts";
import { ResultGoneError, TaskCancelledError, TaskExpiredError, TaskFailedError } from "./task-errors.ts";

export class TaskResult {
  readonly taskId: string;
  /** How many attempts it took, in all its rounds; the last one succeeded. */
  readonly attempts: number;
  /** Who did it. */
  readonly agent: string;
  /** Tokens it took, if the agent said so. */
  readonly tokens: number | undefined;
  /** Of the last attempt, from assignment to result. */
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

  /** Bytes are read as UTF-8. */
  text(): string {
    return this.#isBase64 ? Buffer.from(this.#result, "base64").toString("utf8") : this.#result;
  }

  bytes(): Uint8Array {
    return this.#isBase64 ? Buffer.from(this.#result, "base64") : Buffer.from(this.#result, "utf8");
  }

  /** The type is what the caller says it is; nobody checks.
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

/** Of a task whose kind `defineKind` made. */
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
      if (outcome.gone === true) throw new ResultGoneError(outcome);
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
