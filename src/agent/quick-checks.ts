// Checks of the messages that reach an agent with each attempt, written by hand: several times as fast as the schemas.
// A message that passes is right by its schema (test/agent/quick-checks.test.ts). Any other message is left to the
// schema, which also words the error. Neither check goes deeper than the schema, so deep nesting does no harm.

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
  if (!isRecord(value)) return false;
  const { type, term, agent, others } = value;
  if (type !== "assign" || !isInt(term) || !hasAssignments(value)) return false;
  if (agent !== undefined && typeof agent !== "string") return false;
  return others === undefined || (Array.isArray(others) && others.every(isOtherAgent));
}

function isOtherAgent(value: unknown): boolean {
  return isRecord(value) && typeof value["agent"] === "string" && hasAssignments(value);
}

function hasAssignments({ incarnation, assignments }: Record<string, unknown>): boolean {
  return typeof incarnation === "string" && Array.isArray(assignments) && assignments.every(isAssignment);
}

/** True for right revocations; false for wrong revocations and for pushes of other types. Under load the leader revokes
 *  hundreds of ended attempts after each heartbeat, because the heartbeat crosses with answers to results. */
export function isRevokePush(value: unknown): value is RevokePush {
  if (!isRecord(value)) return false;
  const { type, term, incarnation, attempts, reason } = value;
  if (type !== "revoke" || !isInt(term) || typeof incarnation !== "string") return false;
  return typeof reason === "string" && Array.isArray(attempts) && attempts.every(isNamedAttempt);
}

function isNamedAttempt(value: unknown): boolean {
  if (!isRecord(value)) return false;
  return typeof value["project"] === "string" && typeof value["task"] === "string" && isInt(value["attempt"]);
}

function isAssignment(value: unknown): value is Assignment {
  if (!isRecord(value)) return false;
  const { encoding, stallMs, stream, attributes, revoked, traceparent, tracestate, waitedMs } = value;
  return (
    isInt(value["number"]) &&
    typeof value["project"] === "string" &&
    typeof value["task"] === "string" &&
    isInt(value["attempt"]) &&
    typeof value["token"] === "string" &&
    typeof value["kind"] === "string" &&
    typeof value["user"] === "string" &&
    typeof value["payload"] === "string" &&
    (encoding === undefined || encoding === "base64") &&
    isInt(value["timeoutMs"]) &&
    (stallMs === undefined || isInt(stallMs)) &&
    isInt(value["maxAttempts"]) &&
    (stream === undefined || stream === true) &&
    (attributes === undefined || areTexts(attributes)) &&
    (revoked === undefined || revoked === true) &&
    (traceparent === undefined || typeof traceparent === "string") &&
    (tracestate === undefined || typeof tracestate === "string") &&
    (waitedMs === undefined || Number.isFinite(waitedMs))
  );
}

function areTexts(value: unknown): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (name === "__proto__" || typeof value[name] !== "string") return false;
  return true;
}

/** True for a right response that accepts each result; false for wrong ones and for refusals. */
export function isUsualResultResponse(value: unknown): value is ResultResponse {
  if (!isRecord(value)) return false;
  const { ok, term, idx, answers, others } = value;
  return (
    ok === undefined &&
    others === undefined &&
    isInt(term) &&
    isInt(idx) &&
    Array.isArray(answers) &&
    answers.every(isAccepted)
  );
}

function isAccepted(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { ok, status } = value;
  return ok === true && (status === "ok" || status === "stale" || status === "gone");
}

function isInt(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
