// The JSON of events in the journal. The four events of every task, and retries, are written field by field, all others
// by `JSON.stringify`. A property test holds the bytes equal. Live events leave out what `JsonWriter.contents` wrote.

import type { Event, EventOf, TaskSpec } from "../state/event.ts";
import type { CandidateTerms, Receipt } from "../state/receipt.ts";
import { type JsonWriter, type Piece, piece } from "./json-writer.ts";

const NOTHING = piece("");
const END = piece("}");
const AGENT = piece(',"agent":');
const ATTEMPT = piece(',"attempt":');
const ENCODING = piece(',"encoding":');
const PROJECT = piece(',"project":');
const TASK = piece(',"task":');
const TOKENS = piece(',"tokens":');

/** Adds the JSON of an event. */
export function writeEvent(json: JsonWriter, event: Event): void {
  switch (event.type) {
    case "TaskSubmitted":
      return writeSubmitted(json, event);
    case "TaskRetried":
      return writeRetried(json, event);
    case "TaskAssigned":
      return writeAssigned(json, event);
    case "TaskCompleted":
      return writeCompleted(json, event);
    case "AssignmentsConfirmed":
      return writeConfirmed(json, event);
    default:
      json.value(NOTHING, event);
  }
}

const SUBMITTED = piece('{"type":"TaskSubmitted","task":');
const HASH = piece(',"hash":');

function writeSubmitted(json: JsonWriter, { task, hash }: EventOf<"TaskSubmitted">): void {
  json.raw(SUBMITTED);
  writeSpec(json, task);
  json.text(HASH, hash);
  json.raw(END);
}

const RETRIED = piece('{"type":"TaskRetried","task":');
const ROUND = piece(',"round":');

function writeRetried(json: JsonWriter, { task, hash, round }: EventOf<"TaskRetried">): void {
  json.raw(RETRIED);
  writeSpec(json, task);
  json.text(HASH, hash);
  json.number(ROUND, round);
  json.raw(END);
}

const ID = piece('{"id":');
const KIND = piece(',"kind":');
const ROLE = piece(',"role":');
const NEEDS = piece(',"needs":');
const AFFINITY = piece(',"affinity":');
const USER = piece(',"user":');
const WEIGHT = piece(',"weight":');
const PRIORITY = piece(',"priority":');
const PAYLOAD = piece(',"payload":');
const DEADLINE = piece(',"deadline":');
const NOT_BEFORE = piece(',"notBefore":');
const MAX_ATTEMPTS = piece(',"maxAttempts":');
const TIMEOUT_MS = piece(',"timeoutMs":');
const STALL_MS = piece(',"stallMs":');
const STREAM = piece(',"stream":true');
const ATTRIBUTES = piece(',"attributes":');
const TRACEPARENT = piece(',"traceparent":');
const TRACESTATE = piece(',"tracestate":');

function writeSpec(json: JsonWriter, spec: TaskSpec): void {
  json.text(ID, spec.id);
  json.text(KIND, spec.kind);
  if (spec.role !== undefined) json.text(ROLE, spec.role);
  if (spec.needs !== undefined) json.value(NEEDS, spec.needs);
  if (spec.affinity !== undefined) json.text(AFFINITY, spec.affinity);
  json.text(PROJECT, spec.project);
  json.text(USER, spec.user);
  json.number(WEIGHT, spec.weight);
  json.number(PRIORITY, spec.priority);
  json.contents(PAYLOAD, spec.payload);
  if (spec.encoding !== undefined) json.text(ENCODING, spec.encoding);
  if (spec.tokens !== undefined) json.number(TOKENS, spec.tokens);
  if (spec.deadline !== undefined) json.number(DEADLINE, spec.deadline);
  if (spec.notBefore !== undefined) json.number(NOT_BEFORE, spec.notBefore);
  json.number(MAX_ATTEMPTS, spec.maxAttempts);
  json.number(TIMEOUT_MS, spec.timeoutMs);
  if (spec.stallMs !== undefined) json.number(STALL_MS, spec.stallMs);
  if (spec.stream !== undefined) json.raw(STREAM);
  if (spec.attributes !== undefined) json.value(ATTRIBUTES, spec.attributes);
  if (spec.traceparent !== undefined) json.text(TRACEPARENT, spec.traceparent);
  if (spec.tracestate !== undefined) json.text(TRACESTATE, spec.tracestate);
  json.raw(END);
}

const COMPLETED = piece('{"type":"TaskCompleted","project":');
const RESULT = piece(',"result":');
const RESULT_DIGEST = piece(',"resultDigest":');
const LATENCY_MS = piece(',"latencyMs":');

function writeCompleted(json: JsonWriter, event: EventOf<"TaskCompleted">): void {
  json.text(COMPLETED, event.project);
  json.text(TASK, event.task);
  json.number(ATTEMPT, event.attempt);
  json.text(AGENT, event.agent);
  if (event.result !== undefined) json.contents(RESULT, event.result);
  if (event.resultDigest !== undefined) json.value(RESULT_DIGEST, event.resultDigest);
  json.number(LATENCY_MS, event.latencyMs);
  if (event.encoding !== undefined) json.text(ENCODING, event.encoding);
  if (event.tokens !== undefined) json.number(TOKENS, event.tokens);
  json.raw(END);
}

const CONFIRMED = piece('{"type":"AssignmentsConfirmed","agent":');
const UP_TO = piece(',"upTo":');

function writeConfirmed(json: JsonWriter, { agent, upTo }: EventOf<"AssignmentsConfirmed">): void {
  json.text(CONFIRMED, agent);
  json.number(UP_TO, upTo);
  json.raw(END);
}

const ASSIGNED = piece('{"type":"TaskAssigned","project":');
const INCARNATION = piece(',"incarnation":');
const NUMBER = piece(',"number":');
const TOKEN = piece(',"token":');
const RUNS_AS = piece(',"runsAs":');
const CHEAPER_TYPE = piece(',"cheaperType":');
const TOKENS_RESERVED = piece(',"tokensReserved":');

function writeAssigned(json: JsonWriter, event: EventOf<"TaskAssigned">): void {
  json.text(ASSIGNED, event.project);
  json.text(TASK, event.task);
  json.number(ATTEMPT, event.attempt);
  json.text(AGENT, event.agent);
  json.text(INCARNATION, event.incarnation);
  json.number(NUMBER, event.number);
  json.text(TOKEN, event.token);
  writeReceipt(json, event.receipt);
  if (event.tokensReserved !== undefined) json.number(TOKENS_RESERVED, event.tokensReserved);
  if (event.runsAs !== undefined) json.text(RUNS_AS, event.runsAs);
  if (event.cheaperType !== undefined) json.text(CHEAPER_TYPE, event.cheaperType);
  json.raw(END);
}

const FEASIBLE = piece(',"receipt":{"feasible":');
const CANDIDATES = piece(',"candidates":[');
const NONE_INELIGIBLE = piece('],"ineligible":{}');
const INELIGIBLE = piece('],"ineligible":');
const DECIDED_BY = piece(',"decidedBy":');
const QUEUE = piece(',"queue":');
const WAITING = piece(',"waiting":');
const WAITED_MS = piece(',"waitedMs":');
const TURN = piece(',"turn":');
const BUDGET = piece(',"budget":');

function writeReceipt(json: JsonWriter, receipt: Receipt): void {
  const { candidates, ineligible } = receipt;
  json.number(FEASIBLE, receipt.feasible);
  json.raw(CANDIDATES);
  for (let n = 0; n < candidates.length; n += 1)
    writeCandidate(json, n === 0 ? CANDIDATE : NEXT_CANDIDATE, candidates[n] as CandidateTerms);
  if (isEmpty(ineligible)) json.raw(NONE_INELIGIBLE);
  else json.value(INELIGIBLE, ineligible);
  json.text(DECIDED_BY, receipt.decidedBy);
  json.text(QUEUE, receipt.queue);
  json.number(WAITING, receipt.waiting);
  json.number(WAITED_MS, receipt.waitedMs);
  if (receipt.turn !== undefined) json.value(TURN, receipt.turn);
  if (receipt.budget !== undefined) json.value(BUDGET, receipt.budget);
  json.raw(END);
}

const CANDIDATE = piece('{"agent":');
const NEXT_CANDIDATE = piece(',{"agent":');
const SCORE = piece(',"score":');
const SUCCESS_RATE = piece(',"successRate":');
const LOAD = piece(',"load":');
const BACKLOG = piece(',"backlog":');
const SPEED = piece(',"speed":');

function writeCandidate(json: JsonWriter, begin: Piece, terms: CandidateTerms): void {
  json.text(begin, terms.agent);
  json.number(SCORE, terms.score);
  json.number(SUCCESS_RATE, terms.successRate);
  json.number(LOAD, terms.load);
  if (terms.backlog !== undefined) json.number(BACKLOG, terms.backlog);
  if (terms.speed !== undefined) json.number(SPEED, terms.speed);
  json.raw(END);
}

function isEmpty(counts: Receipt["ineligible"]): boolean {
  for (const _ in counts) return false;
  return true;
}
