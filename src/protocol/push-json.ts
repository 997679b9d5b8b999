// The JSON of the two messages that a leader sends for every task: assignments to agents and outcomes to clients.
// Written field by field; a property test holds the bytes equal to those of `JSON.stringify`.

import { type JsonWriter, type Piece, piece } from "../core/json-writer.ts";
import type { AgentPush, Assignment, DonePush, Outcome } from "./schemas.ts";

/** Assignments of one agent. */
interface AgentAssignments {
  readonly incarnation: string;
  readonly assignments: readonly Assignment[];
}
type AssignPush = Pick<Extract<AgentPush, { readonly type: "assign" }>, "term" | "agent"> &
  AgentAssignments & { readonly others?: readonly (AgentAssignments & { readonly agent: string })[] };
type EndedPush = Omit<DonePush, "ended"> & { readonly ended: readonly Outcome[] };

const END = piece("}");
const END_OF_LIST = piece("]}");
const AGENT = piece(',"agent":');
const ENCODING = piece(',"encoding":');
const TASK = piece(',"task":');

const ASSIGN = piece('{"type":"assign","term":');
const INCARNATION = piece(',"incarnation":');
const ASSIGNMENTS = piece(',"assignments":[');

/** The message as JSON. @param json lends its memory */
export function assignPushJson(json: JsonWriter, { term, agent, others, ...first }: AssignPush): Uint8Array {
  json.clear();
  json.number(ASSIGN, term);
  if (agent !== undefined) json.text(AGENT, agent);
  writeAssignments(json, first);
  if (others !== undefined) {
    for (let n = 0; n < others.length; n += 1) {
      const other = others[n] as (typeof others)[number];
      json.text(n === 0 ? OTHERS : NEXT_OTHER, other.agent);
      writeAssignments(json, other);
      json.raw(END);
    }
    json.raw(others.length === 0 ? NO_OTHERS : END_OF_ARRAY);
  }
  json.raw(END);
  return Buffer.from(json.written);
}

const OTHERS = piece(',"others":[{"agent":');
const NEXT_OTHER = piece(',{"agent":');
const NO_OTHERS = piece(',"others":[]');
const END_OF_ARRAY = piece("]");

function writeAssignments(json: JsonWriter, { incarnation, assignments }: AgentAssignments): void {
  json.text(INCARNATION, incarnation);
  json.raw(ASSIGNMENTS);
  for (let n = 0; n < assignments.length; n += 1)
    writeAssignment(json, n === 0 ? NUMBER : NEXT_NUMBER, assignments[n] as Assignment);
  json.raw(END_OF_ARRAY);
}

const NUMBER = piece('{"number":');
const NEXT_NUMBER = piece(',{"number":');
const PROJECT = piece(',"project":');
const ATTEMPT = piece(',"attempt":');
const TOKEN = piece(',"token":');
const KIND = piece(',"kind":');
const USER = piece(',"user":');
const PAYLOAD = piece(',"payload":');
const TIMEOUT_MS = piece(',"timeoutMs":');
const MAX_ATTEMPTS = piece(',"maxAttempts":');
const STALL_MS = piece(',"stallMs":');
const STREAM = piece(',"stream":true');
const ATTRIBUTES = piece(',"attributes":');
const REVOKED = piece(',"revoked":true');
const TRACEPARENT = piece(',"traceparent":');
const TRACESTATE = piece(',"tracestate":');
const WAITED_MS = piece(',"waitedMs":');

function writeAssignment(json: JsonWriter, begin: Piece, assignment: Assignment): void {
  json.number(begin, assignment.number);
  json.text(PROJECT, assignment.project);
  json.text(TASK, assignment.task);
  json.number(ATTEMPT, assignment.attempt);
  json.text(TOKEN, assignment.token);
  json.text(KIND, assignment.kind);
  json.text(USER, assignment.user);
  json.text(PAYLOAD, assignment.payload);
  if (assignment.encoding !== undefined) json.text(ENCODING, assignment.encoding);
  json.number(TIMEOUT_MS, assignment.timeoutMs);
  json.number(MAX_ATTEMPTS, assignment.maxAttempts);
  if (assignment.stallMs !== undefined) json.number(STALL_MS, assignment.stallMs);
  if (assignment.stream !== undefined) json.raw(STREAM);
  if (assignment.attributes !== undefined) json.value(ATTRIBUTES, assignment.attributes);
  if (assignment.revoked !== undefined) json.raw(REVOKED);
  if (assignment.traceparent !== undefined) json.text(TRACEPARENT, assignment.traceparent);
  if (assignment.tracestate !== undefined) json.text(TRACESTATE, assignment.tracestate);
  if (assignment.waitedMs !== undefined) json.number(WAITED_MS, assignment.waitedMs);
  json.raw(END);
}

const TERM = piece('{"term":');
const IDX = piece(',"idx":');
const ENDED = piece(',"ended":[');

/** The message as JSON. @param json lends its memory */
export function donePushJson(json: JsonWriter, { term, idx, ended }: EndedPush): Uint8Array {
  json.clear();
  json.number(TERM, term);
  json.number(IDX, idx);
  json.raw(ENDED);
  for (let n = 0; n < ended.length; n += 1)
    writeOutcome(json, n === 0 ? OUTCOME : NEXT_OUTCOME, ended[n] as Outcome);
  json.raw(END_OF_LIST);
  return Buffer.from(json.written);
}

const OUTCOME = piece('{"project":');
const NEXT_OUTCOME = piece(',{"project":');
const STATE = piece(',"state":');
const ATTEMPTS = piece(',"attempts":');
const ROUND = piece(',"round":');
const RESULT = piece(',"result":');
const RESULT_DIGEST = piece(',"resultDigest":');
const TOKENS = piece(',"tokens":');
const LATENCY_MS = piece(',"latencyMs":');
const FAILURE_CLASS = piece(',"failureClass":');
const REASON = piece(',"reason":');
const ERROR = piece(',"error":');
const GONE = piece(',"gone":true');

function writeOutcome(json: JsonWriter, begin: Piece, outcome: Outcome): void {
  json.text(begin, outcome.project);
  json.text(TASK, outcome.task);
  json.text(STATE, outcome.state);
  json.number(ATTEMPTS, outcome.attempts);
  if (outcome.round !== undefined) json.number(ROUND, outcome.round);
  if (outcome.agent !== undefined) json.text(AGENT, outcome.agent);
  if (outcome.result !== undefined) json.text(RESULT, outcome.result);
  if (outcome.resultDigest !== undefined) json.value(RESULT_DIGEST, outcome.resultDigest);
  if (outcome.encoding !== undefined) json.text(ENCODING, outcome.encoding);
  if (outcome.tokens !== undefined) json.number(TOKENS, outcome.tokens);
  if (outcome.latencyMs !== undefined) json.number(LATENCY_MS, outcome.latencyMs);
  if (outcome.failureClass !== undefined) json.text(FAILURE_CLASS, outcome.failureClass);
  if (outcome.reason !== undefined) json.text(REASON, outcome.reason);
  if (outcome.error !== undefined) json.text(ERROR, outcome.error);
  if (outcome.gone !== undefined) json.raw(GONE);
  json.raw(END);
}
