// Checks by hand of the messages that reach an agent with each attempt: several times as fast as the schemas. `true`
// proves that the schema accepts the message as it is. `false` proves nothing: the schema decides, and words the error
// (test/agent/quick-checks.test.ts). An unknown field is left to the schema, which drops it. So a right message is
// never nested deeply.

import type { z } from "zod";
import { type Decoded, decode } from "../protocol/codec.ts";
import { isRecord, readQuickly } from "../protocol/quick-checks.ts";
import {
  type AgentPush,
  type Assignment,
  agentPushSchema,
  type resultResponseSchema,
} from "../protocol/schemas.ts";

type AssignPush = Extract<AgentPush, { type: "assign" }>;
type RevokePush = Extract<AgentPush, { type: "revoke" }>;
type ResultResponse = z.infer<typeof resultResponseSchema>;

/** Reads a leader's push to an agent. */
export function readPush(bytes: Uint8Array): Decoded<AgentPush> {
  const value = readQuickly(bytes, isFrequentPush);
  return value === undefined ? decode(bytes, agentPushSchema) : { ok: true, value };
}

function isFrequentPush(value: unknown): value is AssignPush | RevokePush {
  return isAssignPush(value) || isRevokePush(value);
}

/** True for right assignments; false for wrong ones and for pushes of other types. */
export function isAssignPush(value: unknown): value is AssignPush {
  if (!isRecord(value) || value["type"] !== "assign" || !isInt(value["term"])) return false;
  for (const name in value)
    if (name !== "type" && name !== "term" && name !== "others" && !isNameInAssignments(name)) return false;
  const { agent, others } = value;
  if (agent !== undefined && typeof agent !== "string") return false;
  if (others !== undefined && !(Array.isArray(others) && others.every(isOtherAgent))) return false;
  return hasAssignments(value);
}

function isOtherAgent(value: unknown): boolean {
  if (!isRecord(value) || typeof value["agent"] !== "string") return false;
  for (const name in value) if (!isNameInAssignments(name)) return false;
  return hasAssignments(value);
}

function isNameInAssignments(name: string): boolean {
  return name === "agent" || name === "incarnation" || name === "assignments";
}

function hasAssignments({ incarnation, assignments }: Record<string, unknown>): boolean {
  return typeof incarnation === "string" && Array.isArray(assignments) && assignments.every(isAssignment);
}

/** True for right revocations; false for wrong revocations and for pushes of other types. Under load the leader revokes
 *  hundreds of ended attempts after each heartbeat, because the heartbeat crosses with answers to results. */
export function isRevokePush(value: unknown): value is RevokePush {
  if (!isRecord(value) || value["type"] !== "revoke") return false;
  for (const name in value) {
    const isKnown =
      name === "type" ||
      name === "term" ||
      name === "incarnation" ||
      name === "attempts" ||
      name === "reason";
    if (!isKnown) return false;
  }
  const { term, incarnation, attempts, reason } = value;
  if (!isInt(term) || typeof incarnation !== "string" || typeof reason !== "string") return false;
  return Array.isArray(attempts) && attempts.every(isNamedAttempt);
}

function isNamedAttempt(value: unknown): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (name !== "project" && name !== "task" && name !== "attempt") return false;
  return typeof value["project"] === "string" && typeof value["task"] === "string" && isInt(value["attempt"]);
}

function isAssignment(value: unknown): value is Assignment {
  if (!isRecord(value)) return false;
  let required = 0;
  for (const name in value) {
    const field = value[name];
    switch (name) {
      case "number":
      case "attempt":
      case "timeoutMs":
      case "maxAttempts":
        if (!isInt(field)) return false;
        required += 1;
        break;
      case "project":
      case "task":
      case "token":
      case "kind":
      case "user":
      case "payload":
        if (typeof field !== "string") return false;
        required += 1;
        break;
      case "stallMs":
        if (!isInt(field)) return false;
        break;
      case "waitedMs":
        if (!Number.isFinite(field)) return false;
        break;
      case "traceparent":
      case "tracestate":
        if (typeof field !== "string") return false;
        break;
      case "encoding":
        if (field !== "base64") return false;
        break;
      case "stream":
      case "revoked":
        if (field !== true) return false;
        break;
      case "attributes":
        if (!areTexts(field)) return false;
        break;
      default:
        return false;
    }
  }
  return required === 10;
}

function areTexts(value: unknown): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (name === "__proto__" || typeof value[name] !== "string") return false;
  return true;
}

/** True for a right response to one agent that accepts each result; false for wrong responses and for refusals. */
export function isUsualResultResponse(value: unknown): value is ResultResponse {
  if (!isRecord(value)) return false;
  for (const name in value) if (name !== "term" && name !== "idx" && name !== "answers") return false;
  const { term, idx, answers } = value;
  return isInt(term) && isInt(idx) && Array.isArray(answers) && answers.every(isAccepted);
}

function isAccepted(value: unknown): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (name !== "ok" && name !== "status") return false;
  const { ok, status } = value;
  return ok === true && (status === "ok" || status === "stale" || status === "gone");
}

function isInt(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
