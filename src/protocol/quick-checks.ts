// Checks by hand of the messages that a client receives for every task. `true` proves that the schema accepts the
// value as it is. `false` proves nothing: the schema decides, and words the error. A property test holds the checks
// equal to their schemas.

import type { z } from "zod";
import { parseText } from "./codec.ts";
import type { DonePush, Outcome, submitResponseSchema } from "./schemas.ts";

type SubmitResponse = z.infer<typeof submitResponseSchema>;

export type QuickCheck<Value> = (value: unknown) => value is Value;

/** The message if `isRight`. Undefined: decode the message with its schema. Needs no check of the depth, because a
 *  right message has a known shape. */
export function readQuickly<Value>(bytes: Uint8Array, isRight: QuickCheck<Value>): Value | undefined {
  try {
    const value = parseText(bytes);
    return isRight(value) ? value : undefined;
  } catch {
    return undefined; // decoding with the schema words the error
  }
}

/** Whether an answer refuses the whole message. */
export function isRefusal(value: unknown): boolean {
  return isRecord(value) && value["ok"] === false;
}

/** Quick check of `submitResponseSchema`: every task was accepted without a warning. */
export function isPlainSubmitResponse(value: unknown): value is SubmitResponse {
  return isListMessage(value, "answers", isPlainAcceptance);
}

/** Quick check of `donePushSchema`. */
export function isPlainDonePush(value: unknown): value is DonePush {
  return isListMessage(value, "ended", isPlainOutcome);
}

function isListMessage(value: unknown, list: string, isItem: (item: unknown) => boolean): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (name !== "term" && name !== "idx" && name !== list) return false;
  const items = value[list];
  if (!Number.isSafeInteger(value["term"]) || !Number.isSafeInteger(value["idx"])) return false;
  return Array.isArray(items) && items.every(isItem);
}

function isPlainAcceptance(answer: unknown): boolean {
  if (!isRecord(answer)) return false;
  for (const name in answer) {
    const isRight = name === "ok" || name === "task" || (name === "duplicate" && isFlag(answer[name]));
    if (!isRight) return false;
  }
  return answer["ok"] === true && typeof answer["task"] === "string";
}

function isPlainOutcome(outcome: unknown): outcome is Outcome {
  if (!isRecord(outcome)) return false;
  let required = 0;
  for (const name in outcome) {
    const field = outcome[name];
    switch (name) {
      case "project":
      case "task":
        if (typeof field !== "string") return false;
        required += 1;
        break;
      case "state":
        if (!isEndedState(field)) return false;
        required += 1;
        break;
      case "attempts":
        if (!Number.isSafeInteger(field)) return false;
        required += 1;
        break;
      case "agent":
      case "result":
      case "failureClass":
      case "reason":
      case "error":
        if (typeof field !== "string") return false;
        break;
      case "round":
      case "tokens":
        if (!Number.isSafeInteger(field)) return false;
        break;
      case "latencyMs":
        if (!Number.isFinite(field)) return false;
        break;
      case "encoding":
        if (field !== "base64") return false;
        break;
      case "resultDigest":
        if (!isDigest(field)) return false;
        break;
      case "gone":
        if (field !== true) return false;
        break;
      default:
        return false; // the schema drops an unknown field
    }
  }
  return required === 4;
}

function isDigest(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value["sha256"] === "string" &&
    Number.isSafeInteger(value["bytes"]) &&
    Object.keys(value).length === 2
  );
}

function isEndedState(state: unknown): boolean {
  switch (state) {
    case "completed":
    case "failed":
    case "cancelled":
    case "expired":
    case "dead-lettered":
      return true;
    default:
      return false;
  }
}

function isFlag(value: unknown): boolean {
  return value === true || value === false;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
