// Checks by hand of the messages that reach a leader with each task and each heartbeat: several times as fast as the
// schemas. `true` proves that the schema accepts the message as it is. `false` proves nothing: the schema decides, and
// words the error (test/requests/quick-checks.test.ts). An unknown field is left to the schema, which drops it. So a
// right message is never nested deeply.

import type { z } from "zod";
import {
  type AgentId,
  INBOX_PATTERN,
  type Incarnation,
  NAME_PATTERN,
  SUBJECT_TOKEN_PATTERN,
  type TaskId,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { check, type Decoded, decode } from "../protocol/codec.ts";
import { isRecord, type QuickCheck, readQuickly } from "../protocol/quick-checks.ts";
import {
  areAttributesShort,
  areNeedsShort,
  type awaitRequestSchema,
  BASE64_PATTERN,
  fitsBatch,
  HELD_MAX,
  hasFewNeeds,
  type heartbeatSchema,
  isNeed,
  isTextUpTo,
  LABEL_PATTERN,
  type Progress,
  type ResultReport,
  type resultRequestSchema,
  type submitRequestSchema,
  type TaskInput,
  TRACEPARENT_PATTERN,
  TRACESTATE_PATTERN,
} from "../protocol/schemas.ts";

/** Reads a message by its quick check, or else by its schema. */
export function readMessage<Value>(
  bytes: Uint8Array,
  schema: z.ZodType<Value>,
  isRight: QuickCheck<Value>,
): Decoded<Value> {
  const value = readQuickly(bytes, isRight);
  return value === undefined ? decode(bytes, schema) : { ok: true, value };
}

/** Reads an id that is a token of a subject. */
export function readToken<Id>(token: string | undefined, schema: z.ZodType<Id>, name: string): Decoded<Id> {
  return isToken(token) ? { ok: true, value: token as Id } : check(token, schema, name);
}

type SubmitRequest = z.infer<typeof submitRequestSchema>;
type ResultRequest = z.infer<typeof resultRequestSchema>;
type AwaitRequest = z.infer<typeof awaitRequestSchema>;
type Check = (value: unknown) => boolean;

const isVersion: Check = (value) => value === 1;
const isFlag: Check = (value) => value === true || value === false;
const isCount = intOf(0);
const isTokens = intOf(0, limits.tokensPerAttemptMax);
const isInstant = intOf(0, 8.64e15);
const isCapacity = intOf(1, limits.maxConcurrentMax);
const isShare = numberOf(0, 1);
const isEncoding = oneOf("base64");
const isInbox: Check = (value) => isTextUpTo(value, limits.inboxCharactersMax) && INBOX_PATTERN.test(value);

const traceContext = { traceparent: matching(TRACEPARENT_PATTERN), tracestate: matching(TRACESTATE_PATTERN) };

const attempt = { project: isToken, task: isName, attempt: intOf(1) };

const isTaskRecord = recordOf(
  { kind: isName },
  {
    id: isName,
    user: isName,
    role: isName,
    needs: isNeeds,
    affinity: isName,
    payload: isText,
    encoding: isEncoding,
    weight: numberOf(1, limits.taskWeightMax),
    priority: intOf(-limits.priorityMagnitudeMax, limits.priorityMagnitudeMax),
    tokens: isTokens,
    deadline: isInstant,
    notBefore: isInstant,
    maxAttempts: intOf(1, limits.maxAttemptsMax),
    timeoutMs: intOf(1, limits.attemptTimeoutMsMax),
    stallMs: intOf(limits.stallMsMin, limits.stallMsMax),
    stream: (value) => value === true,
    attributes: isAttributes,
    ...traceContext,
  },
);

const isResultRecord = recordOf(
  {
    ...attempt,
    token: (value) => isTextUpTo(value, 64) && value !== "",
    outcome: oneOf("completed", "failed", "infrastructure", "invalid", "revoked"),
  },
  {
    result: isText,
    encoding: isEncoding,
    error: (value) => typeof value === "string",
    tokens: isTokens,
    ...traceContext,
  },
);

/** Quick check of `submitRequestSchema`: every task is right. */
export const isRightSubmitRequest = recordOf(
  { tasks: listOf(isTask, limits.itemsPerMessageMax, 1) },
  { v: isVersion, notify: isInbox, failFast: isFlag },
) as QuickCheck<SubmitRequest & { readonly tasks: readonly TaskInput[] }>;

const resultFields = { incarnation: isToken, results: listOf(isResult, limits.itemsPerMessageMax, 1) };

/** Quick check of `resultRequestSchema`: every result is right and claims no hold. */
export const isRightResultRequest = recordOf(resultFields, {
  v: isVersion,
  agent: isToken,
  others: listOf(recordOf({ agent: isToken, ...resultFields }, {}), limits.agentsPerMessageMax),
}) as QuickCheck<RightResultRequest>;

type RightResultRequest = Pick<ResultRequest, "v" | "agent"> &
  RightResults & {
    readonly others?: readonly (RightResults & { readonly agent: AgentId })[];
  };

type RightResults = { readonly incarnation: Incarnation; readonly results: readonly ResultReport[] };

/** Quick check of `awaitRequestSchema`: every task id is right. */
export const isRightAwaitRequest = recordOf(
  { tasks: listOf(isName, limits.itemsPerMessageMax, 1), notify: isInbox },
  { v: isVersion },
) as QuickCheck<AwaitRequest & { readonly tasks: readonly TaskId[] }>;

const heartbeatFields = {
  incarnation: isToken,
  status: oneOf("ready", "busy", "offline"),
  inFlight: isCount,
  seen: isCount,
  held: listOf(recordOf(attempt, { waiting: (value) => value === true }), HELD_MAX),
};
const optionalHeartbeatFields = {
  saturated: isFlag,
  successRate: isShare,
  latencyMs: numberOf(0, Number.MAX_VALUE),
  draining: isFlag,
  maxConcurrent: isCapacity,
};

/** Quick check of `heartbeatSchema`: a heartbeat that lists no slots and asks for no term starts. */
export const isPlainHeartbeat = recordOf(heartbeatFields, {
  ...optionalHeartbeatFields,
  v: isVersion,
  agent: isToken,
  others: listOf(
    recordOf({ agent: isToken, ...heartbeatFields }, optionalHeartbeatFields),
    limits.agentsPerMessageMax,
  ),
}) as QuickCheck<z.infer<typeof heartbeatSchema>>;

/** Quick check of `progressSchema`. */
export const isProgress = recordOf(
  { incarnation: isToken, ...attempt },
  { v: isVersion, fraction: isShare, message: (value) => isTextUpTo(value, limits.errorCharactersMax) },
) as QuickCheck<Progress>;

function isTask(value: unknown): boolean {
  return isTaskRecord(value) && isRightIfBase64(value, value["payload"]);
}

function isNeeds(value: unknown): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (!LABEL_PATTERN.test(name) || !isNeed(value[name])) return false;
  return hasFewNeeds(value) && areNeedsShort(value);
}

function isAttributes(value: unknown): boolean {
  if (!isRecord(value)) return false;
  for (const name in value) if (!LABEL_PATTERN.test(name) || typeof value[name] !== "string") return false;
  return areAttributesShort(value);
}

function isResult(value: unknown): boolean {
  return isResultRecord(value) && isRightIfBase64(value, value["result"]);
}

function isRightIfBase64({ encoding }: Record<string, unknown>, text: unknown): boolean {
  return encoding === undefined || BASE64_PATTERN.test((text as string | undefined) ?? "");
}

/** Check of an object with all `required` fields, any `optional` fields, and no others. */
function recordOf(
  required: Readonly<Record<string, Check>>,
  optional: Readonly<Record<string, Check>>,
): QuickCheck<Record<string, unknown>> {
  const fields = [...fieldsOf(required, 1), ...fieldsOf(optional, 0)];
  const fieldByName = new Map(fields.map((field) => [field.name, field]));
  const requiredCount = Object.keys(required).length;
  return (value): value is Record<string, unknown> => {
    if (!isRecord(value)) return false;
    let found = 0;
    for (const name in value) {
      const field = fieldByName.get(name);
      if (field === undefined || !field.isRight(value[name])) return false;
      found += field.requiredCount;
    }
    return found === requiredCount;
  };
}

function fieldsOf(checks: Readonly<Record<string, Check>>, requiredCount: 0 | 1) {
  return Object.entries(checks).map(([name, isRight]) => ({ name, isRight, requiredCount }));
}

function listOf(isItem: Check, lengthMax: number, lengthMin = 0): Check {
  return (value) => {
    if (!Array.isArray(value) || value.length < lengthMin || value.length > lengthMax) return false;
    for (const item of value) if (!isItem(item)) return false;
    return true;
  };
}

function intOf(min: number, max: number = Number.MAX_SAFE_INTEGER): Check {
  return (value) => Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** Check of a finite number within bounds. */
function numberOf(min: number, max: number): Check {
  return (value) => typeof value === "number" && value >= min && value <= max;
}

function oneOf(...words: readonly string[]): Check {
  return (value) => words.includes(value as string);
}

function matching(pattern: RegExp): Check {
  return (value) => typeof value === "string" && pattern.test(value);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && fitsBatch(value);
}

function isToken(value: unknown): boolean {
  return typeof value === "string" && SUBJECT_TOKEN_PATTERN.test(value);
}

/** By `NAME_PATTERN`. A loop decides on printable ASCII, because the pattern takes several times as long. */
function isName(value: unknown): boolean {
  if (typeof value !== "string") return false;
  return isPrintableAscii(value) ? value.length > 0 && value.length <= 128 : NAME_PATTERN.test(value);
}

function isPrintableAscii(value: string): boolean {
  for (let at = 0; at < value.length; at += 1) {
    const code = value.charCodeAt(at);
    if (code <= 0x20 || code >= 0x7f) return false;
  }
  return true;
}
