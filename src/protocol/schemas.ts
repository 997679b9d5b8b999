// The messages of the wire, v1, as zod schemas: the only definition of valid messages. docs/protocol.md and the
// AsyncAPI document are generated from here. Unknown fields are ignored, so that older and newer programs understand
// each other. For the same reason a field that was added to an answer after the first version is optional, or has a
// default. Ids of sender and project come from the subject.

import * as z from "zod";
import type {
  AgentId,
  AssignmentNumber,
  AttemptNumber,
  GroupId,
  Incarnation,
  Instant,
  Kind,
  ProjectId,
  ResourceName,
  TaskId,
  Token,
  UserId,
} from "../ids.ts";
import { NAME_PATTERN, SUBJECT_TOKEN_PATTERN } from "../ids.ts";
import { limits } from "../limits.ts";
import { holdScopes } from "../state/hold.ts";
import { budgetModes } from "../state/settings.ts";
import { budgetRefusalSchema, holdRefusalSchema } from "./refusal-schemas.ts";
import {
  listedSlotsSchema,
  resourceStatusSchema,
  slotsGrantedPushSchema,
  slotsRevokedPushSchema,
  slotWaitsEndedPushSchema,
} from "./slot-schemas.ts";
import { isInbox } from "./subjects.ts";

export const branded = <Out>(schema: z.ZodType<unknown>) => schema as unknown as z.ZodType<Out>;

const subjectToken = z.string().regex(SUBJECT_TOKEN_PATTERN, "must be 1–64 characters of A–Z a–z 0–9 _ -");
export const name = z.string().regex(NAME_PATTERN, "must be 1–128 printable characters without spaces");

export const agentIdSchema = branded<AgentId>(subjectToken);
export const groupIdSchema = branded<GroupId>(subjectToken);
export const incarnationSchema = branded<Incarnation>(subjectToken);
export const projectIdSchema = branded<ProjectId>(subjectToken);
export const taskIdSchema = branded<TaskId>(name);
export const userIdSchema = branded<UserId>(name);
export const kindSchema = branded<Kind>(name);
export const attemptSchema = branded<AttemptNumber>(z.int().min(1));
export const instantSchema = branded<Instant>(z.int().min(0).max(8.64e15)).describe(
  "milliseconds since the Unix epoch",
);
const inboxSchema = z
  .string()
  .max(limits.inboxCharactersMax)
  .refine(isInbox, "must be an inbox of the client, such as _INBOX.ann.x7, without wildcards")
  .describe("inbox of the client, such as `_INBOX.ann.x7`");
const role = name.describe("only agents of this role");
const encoding = z.literal("base64");

/** Bytes of a batch beside a payload or result. */
const EVENT_OVERHEAD_BYTES = 16 * 1024;

/** A string of at most `limits.payloadBytesMax` bytes of UTF-8 that, escaped as JSON, still fits a batch. */
const text = z
  .string()
  .refine(
    fitsBatch,
    `must be at most ${limits.payloadBytesMax / 1024} KiB, and ${limits.batchBytesMax / 1024} KiB as JSON; store it ` +
      "elsewhere and submit a reference",
  );

export function fitsBatch(value: string): boolean {
  const escapedCharacterBytesMax = 6;
  if (value.length * escapedCharacterBytesMax <= limits.payloadBytesMax) return true;
  return (
    Buffer.byteLength(value) <= limits.payloadBytesMax &&
    Buffer.byteLength(JSON.stringify(value)) <= limits.batchBytesMax - EVENT_OVERHEAD_BYTES
  );
}

export const BASE64_PATTERN = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Optional protocol version: absent or 1. */
export const version = z.literal(1, { error: "this swarm speaks version 1" }).optional();

/** A name of a label or an attribute. */
export const LABEL_PATTERN = /^(?!__proto__$)[A-Za-z0-9_./-]{1,64}$/;
const labelName = z.string().regex(LABEL_PATTERN, "must be 1–64 characters of A–Z a–z 0–9 _ . / -");

const labelValue = z
  .string()
  .max(limits.labelCharactersMax, `must have a value of at most ${limits.labelCharactersMax} characters`);

export const labelsSchema = z
  .record(labelName, labelValue)
  .refine((labels) => Object.keys(labels).length <= limits.labelsMax, `at most ${limits.labelsMax} labels`);

/** Accepted values by label. */
export const needsSchema = z
  .record(
    labelName,
    z.union(
      [labelValue, z.array(labelValue).min(1).max(limits.needValuesMax)],
      `must be text, or a list of 1–${limits.needValuesMax} texts, each of at most ${limits.labelCharactersMax} characters`,
    ),
  )
  .refine(hasFewNeeds, `must name at most ${limits.needsMax} labels`)
  .refine(areNeedsShort, `must be at most ${limits.needsBytesMax / 1024} KiB as JSON`);

/** Whether a value is one accepted value of a label, or a list of them. */
export function isNeed(value: unknown): value is string | readonly string[] {
  if (!Array.isArray(value)) return isLabelValue(value);
  return value.length > 0 && value.length <= limits.needValuesMax && value.every(isLabelValue);
}

function isLabelValue(value: unknown): boolean {
  return isTextUpTo(value, limits.labelCharactersMax);
}

/** Whether a value is text of at most so many code points, which is how `z.string().max` counts. */
export function isTextUpTo(value: unknown, charactersMax: number): value is string {
  if (typeof value !== "string") return false;
  if (value.length <= charactersMax) return true;
  return value.length <= charactersMax * 2 && Array.from(value).length <= charactersMax;
}

export function hasFewNeeds(needs: object): boolean {
  return Object.keys(needs).length <= limits.needsMax;
}

export function areNeedsShort(needs: object): boolean {
  return Buffer.byteLength(JSON.stringify(needs)) <= limits.needsBytesMax;
}

export const attributesSchema = z
  .record(labelName, z.string())
  .refine(
    areAttributesShort,
    `must be at most ${limits.attributesBytesMax / 1024} KiB as JSON; store more elsewhere and submit a reference`,
  );

export function areAttributesShort(attributes: object): boolean {
  return Buffer.byteLength(JSON.stringify(attributes)) <= limits.attributesBytesMax;
}

// --- tasks: client → leader -------------------------------------------------------------------------

export const TRACEPARENT_PATTERN =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
export const TRACESTATE_PATTERN = /^[ -~]{1,512}$/;

/** Where the sender stands in a trace (W3C Trace Context). */
const traceContext = {
  traceparent: z
    .string()
    .regex(TRACEPARENT_PATTERN, "must be as in W3C Trace Context: 00-<32 hex>-<16 hex>-<2 hex>")
    .optional()
    .describe("W3C Trace Context of the sender"),
  tracestate: z
    .string()
    .regex(TRACESTATE_PATTERN, "must be 1–512 printable ASCII characters, as in W3C Trace Context")
    .optional()
    .describe("tracing systems on the way, as in W3C Trace Context"),
};

/** A submitted task; every field except `kind` has a default. */
export const taskInputSchema = z
  .object({
    id: taskIdSchema.optional().describe("idempotency key: the same id and content is the same task"),
    kind: kindSchema,
    role: role.optional(),
    needs: needsSchema
      .optional()
      .describe("only agents with these labels: by label the accepted value, or a list of accepted values"),
    affinity: name
      .optional()
      .describe(
        "a key of the project: the agent that ran the last task with the key is preferred while it has free capacity",
      ),
    user: userIdSchema.optional(),
    weight: z.number().min(1).max(limits.taskWeightMax).optional().describe("cost of the task; default 1"),
    priority: z
      .int()
      .min(-limits.priorityMagnitudeMax)
      .max(limits.priorityMagnitudeMax)
      .optional()
      .describe("lower priority runs first; default 100"),
    payload: text.optional(),
    encoding: encoding.optional(),
    tokens: z
      .int()
      .min(0)
      .max(limits.tokensPerAttemptMax)
      .optional()
      .describe(
        `estimated tokens; an estimate above a budget in mode wait or reject is refused. Default: the mean of its kind so far, else the policy's tokensDefault, ${limits.tokensPerAttemptDefault}`,
      ),
    deadline: instantSchema.optional(),
    notBefore: instantSchema.optional(),
    maxAttempts: z.int().min(1).max(limits.maxAttemptsMax).optional(),
    timeoutMs: z
      .int()
      .min(1)
      .max(limits.attemptTimeoutMsMax)
      .optional()
      .describe(`maximum time of one attempt; default ${limits.attemptTimeoutMs}, 1 h`),
    stallMs: z
      .int()
      .min(limits.stallMsMin)
      .max(limits.stallMsMax)
      .optional()
      .describe("maximum time without a progress report, counted from the start of the attempt"),
    stream: z
      .literal(true)
      .optional()
      .describe("the agent sends chunks of the result while it runs; not part of the content"),
    attributes: attributesSchema
      .optional()
      .describe("the submitter's own values by name, which travel with the task; at most 4 KiB as JSON"),
    ...traceContext,
  })
  .refine((task) => task.encoding === undefined || BASE64_PATTERN.test(task.payload ?? ""), {
    path: ["payload"],
    error: "is not base64 though encoding says so",
  });
export type TaskInput = z.infer<typeof taskInputSchema>;

/** Items are checked separately: a bad task does not refuse the neighbours. */
const items = z.array(z.unknown()).min(1).max(limits.itemsPerMessageMax);

export const submitRequestSchema = z.object({
  v: version,
  tasks: items.describe("TaskInput, 1…n"),
  notify: inboxSchema.optional(),
  failFast: z.boolean().optional().describe("refuse a task whose kind no agent serves"),
});

/** Cancels a round of a task. */
export const cancelItemSchema = z.object({
  task: taskIdSchema,
  round: z
    .int()
    .min(1)
    .describe("round to end: the task's present round. A repeated request ends no later round"),
});

export const cancelRequestSchema = z.object({ v: version, tasks: items.describe("CancelItem, 1…n") });

/** Opens a round of a task. */
export const retryItemSchema = z.object({
  task: taskIdSchema,
  round: z
    .int()
    .min(2)
    .describe("round to open: the task's present round plus 1. A repeated request opens no further round"),
});

/** Opens the next round of ended tasks that did not complete. Their payload is read from the journal; if the batch was
 *  purged, the answer is `WAGGLE_GONE`. */
export const retryRequestSchema = z.object({
  v: version,
  tasks: items.describe("RetryItem, 1…n"),
  deadline: instantSchema
    .optional()
    .describe("deadline of all tasks of the request; absent: no deadline, also for tasks that had one"),
});

/** Takes an attempt from its agent. */
export const revokeItemSchema = z.object({
  task: taskIdSchema,
  attempt: attemptSchema.describe(
    "attempt to revoke: the task's present number of attempts. A repeated request revokes no later attempt; ≥ 1",
  ),
});

export const revokeRequestSchema = z.object({ v: version, tasks: items.describe("RevokeItem, 1…n") });

/** Changes the earliest start of a waiting task. */
export const rescheduleItemSchema = z.object({
  task: taskIdSchema,
  round: z.int().min(1).describe("the task's present round. A repeated request changes no later round"),
});

export const rescheduleRequestSchema = z.object({
  v: version,
  tasks: items.describe("RescheduleItem, 1…n"),
  notBefore: instantSchema.describe("earliest start of all tasks of the request; a past time: at once"),
});

export const awaitRequestSchema = z.object({
  v: version,
  tasks: items.describe("task ids"),
  notify: inboxSchema,
});

// --- agents → leader --------------------------------------------------------------------------------

/** An attempt with the project, because task ids are unique only within a project. */
export const heldAttemptSchema = z.object({
  project: projectIdSchema,
  task: taskIdSchema,
  attempt: attemptSchema,
});
/** Running attempts up to the capacity, and attempts with results that the leader has received but not yet answered. */
export const HELD_MAX =
  limits.maxConcurrentMax * 2 + limits.resultMessagesInFlightMax * limits.itemsPerMessageMax;
const held = z.array(heldAttemptSchema).max(HELD_MAX);
const listedAttemptSchema = heldAttemptSchema.extend({
  waiting: z.literal(true).optional().describe("not started: the agent has no free capacity for it"),
});
const seen = branded<AssignmentNumber>(z.int().min(0)).describe(
  "highest assignment number with none missing",
);

export const joinRequestSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  after: incarnationSchema.optional().describe("the agent's newest session before, named by a refused join"),
  kinds: z.array(kindSchema).max(limits.kindsPerAgentMax),
  role: name.optional(),
  type: name.optional(),
  labels: labelsSchema.optional(),
  maxConcurrent: z.int().min(1).max(limits.maxConcurrentMax),
  prefetch: z.int().min(0).max(limits.maxConcurrentMax).optional(),
  held: held.optional(),
  seen: seen.optional(),
});
export type JoinRequest = z.infer<typeof joinRequestSchema>;

export const leaveRequestSchema = z.object({ v: version, incarnation: incarnationSchema });

/** In a message for several agents of a connection: the first agent. */
const speaker = agentIdSchema.optional().describe("the agent; absent: the id in the subject");
const OTHERS = "the same of further agents of the connection";

const heartbeatFields = {
  incarnation: incarnationSchema,
  status: z.enum(["ready", "busy", "offline"]),
  saturated: z.boolean().optional().describe("no free capacity"),
  inFlight: z.int().min(0),
  successRate: z.number().min(0).max(1).optional(),
  latencyMs: z.number().min(0).optional(),
  draining: z.boolean().optional().describe("the agent accepts no new tasks, by its own decision"),
  maxConcurrent: z
    .int()
    .min(1)
    .max(limits.maxConcurrentMax)
    .optional()
    .describe("maximum number of attempts that run at once from now on; absent: unchanged"),
  seen,
  held: z.array(listedAttemptSchema).max(HELD_MAX),
  slots: listedSlotsSchema.optional().describe("slot leases of the agent; absent: none"),
  asksTermStarts: z.literal(true).optional().describe("the answer is to name the starts of recent terms"),
};
const agentHeartbeatSchema = z.object(heartbeatFields);
/** The heartbeat of one agent. */
export type Heartbeat = z.infer<typeof agentHeartbeatSchema>;

export const heartbeatSchema = z.object({
  v: version,
  agent: speaker,
  ...heartbeatFields,
  others: z
    .array(z.object({ agent: agentIdSchema, ...heartbeatFields }))
    .max(limits.agentsPerMessageMax)
    .optional()
    .describe(OTHERS),
});

export const progressSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  ...heldAttemptSchema.shape,
  fraction: z.number().min(0).max(1).optional(),
  message: z.string().max(limits.errorCharactersMax).optional(),
});
export type Progress = z.infer<typeof progressSchema>;

/** A part of a result, sent while the attempt runs. */
const chunkSchema = z.object({ text: z.string(), encoding: encoding.optional() });
export type Chunk = z.infer<typeof chunkSchema>;

/** On `agent.<g>.<a>.chunk`. Not journaled, may be lost. */
export const chunksSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  ...heldAttemptSchema.shape,
  first: z.int().min(0).describe("number of the first chunk; chunks of an attempt are numbered from 0"),
  chunks: z.array(chunkSchema).min(1),
});
export type Chunks = z.infer<typeof chunksSchema>;

/** What refused an attempt's work, and for how long. Without a time, refusals in a row place a hold. */
export const holdClaimSchema = z
  .object({
    scope: z
      .union([z.enum(["agent", "type"]), z.object({ resource: branded<ResourceName>(name) })])
      .optional()
      .describe("what to put on hold: the agent, all agents of its type, or a resource; default agent"),
    forMs: z.int().min(0).max(limits.holdMsMax).optional().describe("time from now, ms"),
    until: instantSchema.optional().describe("instead of forMs; at most 7 days from now"),
  })
  .refine((hold) => hold.forMs === undefined || hold.until === undefined, {
    path: ["until"],
    error: "and forMs exclude each other",
  });
export type HoldClaim = z.infer<typeof holdClaimSchema>;

export const resultSchema = z
  .object({
    ...heldAttemptSchema.shape,
    token: branded<Token>(z.string().min(1).max(64)),
    outcome: z.enum(["completed", "failed", "infrastructure", "invalid", "revoked"]),
    result: text.optional(),
    encoding: encoding.optional(),
    error: z.string().optional(),
    tokens: z
      .int()
      .min(0)
      .max(limits.tokensPerAttemptMax)
      .optional()
      .describe("tokens used, whatever the outcome"),
    hold: holdClaimSchema.optional().describe("with infrastructure only: the work was refused"),
    ...traceContext,
  })
  .refine((report) => report.hold === undefined || report.outcome === "infrastructure", {
    path: ["hold"],
    error: "belongs to the outcome infrastructure only",
  })
  .refine((report) => report.encoding === undefined || BASE64_PATTERN.test(report.result ?? ""), {
    path: ["result"],
    error: "is not base64 though encoding says so",
  });
export type ResultReport = z.infer<typeof resultSchema>;

const resultFields = { incarnation: incarnationSchema, results: items.describe("Result, 1…n") };

export const resultRequestSchema = z.object({
  v: version,
  agent: speaker,
  ...resultFields,
  others: z
    .array(z.object({ agent: agentIdSchema, ...resultFields }))
    .max(limits.agentsPerMessageMax)
    .optional()
    .describe(OTHERS),
});

// --- operator → leader ------------------------------------------------------------------------------

export const agentRequestSchema = z.object({ v: version, agent: agentIdSchema });
const coordinatorIdSchema = z.string().min(1).max(limits.coordinatorIdCharactersMax);

/** Transfers the lead to `to`, or to any standby. `of` is the term that is to end. A later term is not ended, so that
 *  the request may be repeated. */
export const transferRequestSchema = z.object({
  v: version,
  of: z.int().min(1),
  to: coordinatorIdSchema.optional(),
});

// --- queries: anyone → any coordinator --------------------------------------------------------------

/** Tables that `status` returns page by page. */
export const statusTables = ["agents", "queues", "projects", "users", "resources", "rates"] as const;
export type StatusTable = (typeof statusTables)[number];

/** With `rows`: only the named table, without the first `from` rows, in no particular order. For rows that the full
 *  answer left out. */
export const statusQuerySchema = z.object({
  v: version,
  rows: z.object({ table: z.enum(statusTables), from: z.int().min(0) }).optional(),
});
export const taskQuerySchema = z.object({ v: version, task: taskIdSchema });
/** A page of raw batches: from the idx `from` on, or from the first batch at or after `since`. Without either, and
 *  with `since: 0`, from the first batch that is kept. An earlier `from` is refused with `WAGGLE_AUDIT_TRIMMED` and
 *  `firstIdx`. */
export const journalQuerySchema = z.object({
  v: version,
  from: z.int().min(1).optional(),
  since: instantSchema.optional(),
});

export const eventsQuerySchema = journalQuerySchema.extend({
  withContent: z.boolean().optional().describe("with payloads and results; default false"),
});

/** Stored records of a segment, byte by byte. */
export const recordsQuerySchema = z.object({
  v: version,
  segment: z.int().min(1).optional().describe("number of a segment; absent: the answer lists the segments"),
  from: z
    .int()
    .min(1)
    .optional()
    .describe(
      "position of the first record; without `from` and `opened` the answer has the end of the segment",
    ),
  opened: z.literal(true).optional().describe("the record that opens the segment, in place of `from`"),
  offset: z.int().min(0).optional().describe("first byte of the first record; default 0"),
  limit: z.int().min(1).optional().describe("maximum number of records; default: as many as fit an answer"),
});

// --- answers and pushes: leader → anyone ------------------------------------------------------------
// What we send ourselves is typed here and not validated when sent; receivers parse it with these schemas.

export const codedErrorSchema = z.object({
  ok: z.literal(false),
  code: z.string(),
  message: z.string(),
  field: z.string().optional(),
  retryAfterMs: z.number().optional(),
  /** With `WAGGLE_AUDIT_TRIMMED`: the first batch that is kept. */
  firstIdx: z.int().optional(),
  /** With `WAGGLE_BUDGET_EXCEEDED`: the budget, the use of its window, and the task's estimate. Tokens. */
  budget: budgetRefusalSchema.optional(),
  /** With `WAGGLE_ON_HOLD`. */
  hold: holdRefusalSchema.optional(),
  /** With `WAGGLE_UNKNOWN_AGENT`, for a join: the agent's newest session. */
  newest: incarnationSchema.optional(),
});
/** A refusal: nothing was changed. */
export type CodedError = z.infer<typeof codedErrorSchema>;

const term = z.int();
const idx = z.int();
/** The first batch of a term, and the beginning of its hash: two terms may share a number, but not the hash. */
const termStartSchema = z.object({ term, idx, opened: z.string().max(limits.openedCharacters) });
export type TermStart = z.infer<typeof termStartSchema>;
/** Recent terms, oldest first: shows whether the log lost a batch of an earlier term. */
const termStartsSchema = z.array(termStartSchema).max(limits.rememberedTerms);

export const submitWarningSchema = z.object({
  code: z.enum(["no-agent-serves-kind", "no-agent-has-labels"]),
  nearMisses: z.array(z.string()),
  needs: z
    .string()
    .optional()
    .describe(
      "with `no-agent-has-labels`: the needs that no agent of the kind meets, alone or together, as `gpu=a100 or gpu=h100`",
    ),
});

export const submitAnswerSchema = z.union([
  z.object({
    ok: z.literal(true),
    task: z.string(),
    duplicate: z.boolean().optional(),
    warnings: z.array(submitWarningSchema).optional(),
  }),
  codedErrorSchema,
]);
export type SubmitAnswer = z.infer<typeof submitAnswerSchema>;

export const endedTaskStateSchema = z.enum(["completed", "failed", "cancelled", "expired", "dead-lettered"]);

/** How a task ended. `result` is absent when the journal no longer has it (`gone`), or never had it. */
export const outcomeSchema = z.object({
  project: z.string(),
  task: z.string(),
  state: endedTaskStateSchema,
  round: z.int().optional().describe("round of the task, from 2; absent: round 1"),
  attempts: z.int().describe("attempts of all rounds"),
  agent: z.string().optional(),
  result: z.string().optional(),
  resultDigest: z
    .object({ sha256: z.string(), bytes: z.int() })
    .optional()
    .describe(
      "SHA-256 and length in bytes of the result; present where the project journals results as hash. Then `result` reaches only clients that await the task when it ends",
    ),
  encoding: encoding.optional(),
  tokens: z.int().optional(),
  latencyMs: z.number().optional(),
  failureClass: z.string().optional(),
  reason: z.string().optional(),
  error: z.string().optional(),
  gone: z.literal(true).optional(),
});
export type Outcome = z.infer<typeof outcomeSchema>;

/** How the round ended: cancelled, now or before, or otherwise before. */
export const cancelAnswerSchema = z.union([
  z.object({ ok: z.literal(true), task: z.string(), state: endedTaskStateSchema }),
  codedErrorSchema,
]);
export type CancelAnswer = z.infer<typeof cancelAnswerSchema>;

/** `round` was opened, now or by an earlier request. */
export const retryAnswerSchema = z.union([
  z.object({ ok: z.literal(true), task: z.string(), round: z.int() }),
  codedErrorSchema,
]);
export type RetryAnswer = z.infer<typeof retryAnswerSchema>;

/** The attempt has ended: revoked now (`revoked`), or by any means before. */
export const revokeAnswerSchema = z.union([
  z.object({
    ok: z.literal(true),
    task: z.string(),
    attempt: z.int(),
    revoked: z.boolean(),
    state: z.string().describe("state of the task afterwards"),
  }),
  codedErrorSchema,
]);
export type RevokeAnswer = z.infer<typeof revokeAnswerSchema>;

export const rescheduleAnswerSchema = z.union([
  z.object({
    ok: z.literal(true),
    task: z.string(),
    round: z.int(),
    notBefore: z.number(),
    state: z.string().describe("state of the task afterwards: `delayed`, or `queued` when it is due"),
  }),
  codedErrorSchema,
]);
export type RescheduleAnswer = z.infer<typeof rescheduleAnswerSchema>;

export const awaitAnswerSchema = z.union([
  z.object({ ok: z.literal(true), live: z.literal(true) }),
  z.object({ ok: z.literal(true), outcome: outcomeSchema }),
  codedErrorSchema,
]);
export type AwaitAnswer = z.infer<typeof awaitAnswerSchema>;

/** Every definite answer has the journal's point: a client that knows a later point knows that records were lost. */
const answerOf = <Item extends z.ZodType>(item: Item) => z.object({ term, idx, answers: z.array(item) });

export const submitResponseSchema = answerOf(submitAnswerSchema);
export const cancelResponseSchema = answerOf(cancelAnswerSchema);
export const retryResponseSchema = answerOf(retryAnswerSchema);
export const revokeResponseSchema = answerOf(revokeAnswerSchema);
export const rescheduleResponseSchema = answerOf(rescheduleAnswerSchema);
export const awaitResponseSchema = answerOf(awaitAnswerSchema);

export const resultAnswerSchema = z.union([
  z.object({ ok: z.literal(true), status: z.enum(["ok", "stale", "gone"]) }),
  codedErrorSchema,
]);
export type ResultAnswer = z.infer<typeof resultAnswerSchema>;
export const resultResponseSchema = answerOf(resultAnswerSchema).extend({
  others: z
    .array(z.union([z.object({ answers: z.array(resultAnswerSchema) }), codedErrorSchema]))
    .optional()
    .describe("of the request's `others`, in order"),
});

const namedAttemptSchema = z.object({ project: z.string(), task: z.string(), attempt: z.int() });

export const joinResponseSchema = z.union([
  z.object({
    ok: z.literal(true),
    term,
    idx,
    /** Held attempts of other agents, or no longer held: the agent aborts them. */
    unknown: z.array(namedAttemptSchema),
    /** Whether the leader already knew this incarnation. */
    resumed: z.boolean(),
    heartbeatMs: z.int(),
    leaseTtlMs: z.int(),
  }),
  codedErrorSchema,
]);
export type JoinResponse = z.infer<typeof joinResponseSchema>;

/** Answer to a heartbeat that was sent as a request: every listed lease is renewed. */
export const heartbeatResponseSchema = z.object({
  term,
  renewed: z.literal(true),
  termStarts: termStartsSchema.optional().describe("if the heartbeat asks: starts of recent terms"),
  others: z
    .array(z.object({ renewed: z.literal(true).optional(), termStarts: termStartsSchema.optional() }))
    .optional()
    .describe("of the heartbeat's `others`, in order; without `renewed`: not confirmed"),
});

export const okResponseSchema = z.union([z.object({ ok: z.literal(true), term, idx }), codedErrorSchema]);

/** An attempt to run. */
export const assignmentSchema = z.object({
  number: z.int(),
  project: z.string(),
  task: z.string(),
  attempt: z.int(),
  token: z.string(),
  kind: z.string(),
  user: z.string(),
  payload: z.string(),
  encoding: encoding.optional(),
  timeoutMs: z.int(),
  stallMs: z.int().optional(),
  stream: z.literal(true).optional().describe("send chunks of the result"),
  attributes: z.record(z.string(), z.string()).optional().describe("of the submitter; absent: none"),
  maxAttempts: z.int().describe("maximum number of attempts of the task; 1: at most once"),
  revoked: z
    .literal(true)
    .optional()
    .describe("revoked before arrival: report `revoked`, do not run the attempt"),
  traceparent: z.string().optional().describe("of the submission; absent for a task without a trace"),
  tracestate: z.string().optional(),
  waitedMs: z
    .number()
    .optional()
    .describe("wait from the entry into the queue to this assignment; absent for a task without a trace"),
});
export type Assignment = z.infer<typeof assignmentSchema>;

const assignFields = { incarnation: z.string(), assignments: z.array(assignmentSchema) };

/** On `agent.<g>.<a>.assign`. An agent ignores messages for another incarnation, terms below the highest it has seen,
 *  and a (task, attempt) that it has already started. `fenced` is final. `rejoin`: the attempts were reassigned; the
 *  agent aborts them and joins as a new incarnation. */
export const agentPushSchema = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("assign"),
    term,
    agent: z.string().optional().describe("the agent; absent: the id in the subject"),
    ...assignFields,
    others: z
      .array(z.object({ agent: z.string(), ...assignFields }))
      .optional()
      .describe(OTHERS),
  }),
  z.object({
    type: z.literal("revoke"),
    term,
    incarnation: z.string(),
    attempts: z.array(namedAttemptSchema),
    reason: z.string(),
  }),
  z.object({ type: z.literal("drain"), term, incarnation: z.string() }),
  z.object({ type: z.literal("undrain"), term, incarnation: z.string() }),
  z.object({ type: z.literal("fenced"), term, incarnation: z.string() }),
  z.object({
    type: z.literal("rejoin"),
    term,
    incarnation: z.string(),
    refusal: codedErrorSchema
      .optional()
      .describe("`WAGGLE_FORBIDDEN`: the agent may not join again as it is, and ends"),
  }),
  slotsGrantedPushSchema,
  slotWaitsEndedPushSchema,
  slotsRevokedPushSchema,
]);
export type AgentPush = z.infer<typeof agentPushSchema>;

/** On `<notify>.done`. */
export const donePushSchema = z.object({ term, idx, ended: z.array(outcomeSchema) });
export type DonePush = z.infer<typeof donePushSchema>;

/** On `client.<token>.progress`. Not journaled, may be lost. */
export const progressPushSchema = z.object({
  project: z.string(),
  task: z.string(),
  attempt: z.int(),
  agent: z.string(),
  fraction: z.number().optional(),
  message: z.string().optional(),
});
export type ProgressPush = z.infer<typeof progressPushSchema>;

/** On `<notify>.chunk`: parts of a result. Chunks of an attempt are void when a later attempt begins. Not journaled,
 *  may be lost: then a number is missing. */
export const chunksPushSchema = z.object({
  project: z.string(),
  task: z.string(),
  attempt: z.int(),
  agent: z.string(),
  first: z.int(),
  chunks: z.array(chunkSchema),
});
export type ChunksPush = z.infer<typeof chunksPushSchema>;

/** On `event.<project or _>.<noun>.<verb>`: the events of one batch for this subject, without `task.payload` and
 *  `result`.
 *  `prevIdx` is the last batch with an event on this subject since the leader's term began, 0 if none: a receiver sees
 *  gaps. */
export const eventPushSchema = z.object({
  term,
  idx,
  prevIdx: idx,
  at: z.number(),
  events: z.array(z.looseObject({ type: z.string() })),
});

const counts = z.record(z.string(), z.int());

const holdPhase = z.enum(["held", "due", "probing"]);

/** A hold that has not ended. `held`: nothing runs until `until`; `due`: the next task or grant is the probe;
 *  `probing`: the probe is under way. */
export const holdStatusSchema = z.object({
  on: z.enum(holdScopes),
  name: z.string(),
  until: z.number(),
  /** Time at which the hold was placed first. */
  since: z.number(),
  phase: holdPhase,
  by: z.enum(["agent", "refusals", "operator"]),
  /** The error of the refused attempt. */
  reason: z.string().optional(),
});
export type HoldStatus = z.infer<typeof holdStatusSchema>;

export const agentStatusSchema = z.object({
  id: z.string(),
  /** Absent: none. */
  group: z.string().optional(),
  status: z.enum(["ready", "busy", "offline"]),
  /** Every slot is taken. */
  saturated: z.boolean(),
  draining: z.boolean(),
  unresponsive: z.boolean(),
  kinds: z.array(
    z.object({
      kind: z.string(),
      successRate: z
        .number()
        .describe("success rate as scores use it: recent attempts weigh more, few attempts weigh little"),
      completed: z.int().describe("completed attempts in total"),
      attempts: z.int(),
      latencyMs: z.number(),
      suspendedUntil: z.number().optional(),
    }),
  ),
  role: z.string().optional(),
  type: z.string().optional(),
  labels: z.record(z.string(), z.string()),
  inFlight: z.int(),
  maxConcurrent: z.int(),
  prefetch: z.int(),
  load: z.number(),
  completed: z.int(),
  /** As the agent says of itself: shown, never scored. */
  reported: z
    .object({
      status: z.enum(["ready", "busy", "offline"]),
      saturated: z.boolean(),
      successRate: z.number().optional(),
      latencyMs: z.number().optional(),
      inFlight: z.int(),
    })
    .optional(),
  /** Time since the agent's last message, ms; absent on a standby. */
  silentMs: z.number().optional(),
  onHold: z
    .object({ on: z.enum(["agent", "type"]), until: z.number(), phase: holdPhase })
    .optional()
    .describe(
      "hold on the agent or its type that ends last: no task is assigned until then, except one probe",
    ),
  /** Time at which a later start under the same id last fenced a session. */
  fencedAt: z.number().optional(),
  /** Time since the last message of a fenced process, ms: two processes use the id. Absent after ten minutes, and on a
   *  standby. */
  outlivedMs: z.number().optional(),
});

/** Tokens of a budget's window. `reserved` is held back for open attempts. */
const returnFields = {
  freesAt: z
    .number()
    .optional()
    .describe(
      "when the next of the counted tokens leave the window; absent without such, and from older coordinators",
    ),
  emptyAt: z.number().optional().describe("when all of them have left, if nothing is added"),
};

const budgetStatusSchema = z.object({
  spent: z.int(),
  reserved: z.int(),
  tokens: z.int(),
  windowMs: z.int(),
  mode: z.enum(budgetModes),
  ...returnFields,
});

/** VAPORA's ADR-018: over all agents; offline agents count as idle and in the means. */
export const swarmMetricsSchema = z.object({
  totalAgents: z.int(),
  idleAgents: z.int().describe("agents with nothing in flight, offline agents included"),
  busyAgents: z.int().describe("agents with attempts in flight"),
  offlineAgents: z.int(),
  totalInFlight: z.int(),
  avgSuccessRate: z.number().describe("0 to 1; 0 without agents"),
  avgLoad: z.number().describe("in flight / max concurrent; 0 without agents"),
});

/** Times of recent turns or appends, ms. */
const timingSchema = z.object({
  count: z.int().describe("turns or appends in the window, at most 512"),
  p50: z.number().describe("median"),
  p99: z.number(),
  max: z.number(),
});

export const processFiguresSchema = z.object({
  windowMs: z.int().describe("the lag is that of the last one to two windows of this length"),
  loopLagP99Ms: z.number().describe("how much later than due the event loop ran a timer: 99th percentile"),
  loopLagMaxMs: z.number().describe("the longest lag"),
  rssBytes: z.int().describe("resident memory"),
  heapUsedBytes: z.int().describe("heap of JavaScript in use"),
  heapTotalBytes: z.int().describe("heap of JavaScript"),
});

/** Observations of the leader since its term began; not journaled. */
export const observedSchema = z.object({
  windowMs: z.int().describe("window in which bottlenecks are counted"),
  bottlenecks: z
    .array(z.object({ agent: z.string(), share: z.number(), observedMs: z.number() }))
    .describe(
      "agents that were full while a task for them waited: share of the observed time, highest first",
    ),
  concentration: z
    .array(
      z.object({
        kind: z.string(),
        agent: z.string(),
        share: z.number(),
        threshold: z.number(),
        assignments: z.int(),
        since: z.number(),
      }),
    )
    .describe("kinds with one agent that got more of the last 200 to 1,000 assignments than the threshold"),
  soleAgents: z
    .array(z.object({ kind: z.string(), agent: z.string() }))
    .describe("kinds with a single possible agent in the last 200 assignments or more"),
  /** Absent from older coordinators. */
  timings: z
    .object({
      windowMs: z.int().describe("window of both times"),
      decision: timingSchema.optional().describe("time of a turn, with its planning and encoding"),
      append: timingSchema
        .optional()
        .describe("time from sending a batch to the acknowledgement by the journal"),
    })
    .optional(),
  process: processFiguresSchema
    .optional()
    .describe("event loop and memory of the leader's process; absent from older coordinators"),
});

export const statusResponseSchema = z.object({
  term,
  idx,
  at: z.number(),
  swarm: z.string(),
  leader: z.string(),
  /** Ids of the standbys that the leader heard within T. Absent on a standby, and from older coordinators. */
  standbys: z.array(z.string()).optional(),
  /** Answered by a standby; the leader may know more. */
  stale: z.literal(true).optional(),
  /** No task is assigned until an operator resumes the swarm. */
  paused: z.literal(true).optional(),
  tasks: counts,
  /** Absent from older coordinators. */
  metrics: swarmMetricsSchema.optional(),
  /** Absent on a standby. */
  observed: observedSchema.optional(),
  agents: z.array(agentStatusSchema),
  queues: z.array(
    z.object({
      kind: z.string(),
      role: z.string().optional(),
      needs: z
        .record(z.string(), z.array(z.string()))
        .optional()
        .describe("accepted values by label; absent: tasks without needs"),
      waiting: z.int(),
      oldestMs: z.number(),
      /** Online agents that serve the kind and meet the needs. */
      agents: z.int(),
    }),
  ),
  projects: z.array(
    z.object({
      project: z.string(),
      paused: z.literal(true).optional(),
      tasks: counts,
      /** Absent without a budget. */
      budget: budgetStatusSchema.optional(),
      users: z.array(
        z.object({
          user: z.string(),
          tasks: counts,
          started: z.int().optional().describe("tasks that were assigned at least once"),
          waitMsMean: z
            .number()
            .describe("mean time from submission to the first assignment; 0 without assigned tasks"),
          waitMsMax: z
            .number()
            .describe(
              "longest time from submission to the first assignment, or until now for a waiting task",
            ),
        }),
      ),
    }),
  ),
  /** The first to end first, at most 100; absent without holds. */
  holds: z.array(holdStatusSchema).optional(),
  /** Budget of the swarm; absent without one. */
  budget: budgetStatusSchema.optional(),
  /** Rates of agent types; absent without rates. `opensAt`: time at which agents of a used up type get tasks again. */
  rates: z
    .array(
      z.object({
        type: z.string(),
        window: z.enum(["per_minute", "per_hour", "per_day"]),
        sliding: z.boolean(),
        tokensMax: z.int(),
        used: z.int(),
        reserved: z.int().optional().describe("reserved for open attempts; absent from older coordinators"),
        opensAt: z.number().optional(),
        ...returnFields,
      }),
    )
    .optional(),
  /** Older coordinators have none. */
  resources: z.array(resourceStatusSchema).default([]),
  /** Number of rows that did not fit the answer, the least important ones (docs/operations.md). Absent for a complete
   *  answer. */
  omitted: z
    .object({
      agents: z.int(),
      queues: z.int(),
      projects: z.int(),
      users: z.int(),
      resources: z.int().default(0),
      rates: z.int().default(0),
    })
    .optional(),
  journal: z.object({
    id: z.string(),
    durability: z.string(),
    sentence: z.string(),
    bytes: z.number(),
    bytesMax: z.number().optional(),
    /** Foreign records since the answering coordinator read the journal, and the journal time of the batch before the
     *  last record. Absent without foreign records. */
    foreignRecords: z.object({ count: z.int(), lastAt: z.number() }).optional(),
    /** First batch that the journal still has. */
    auditFirstIdx: z.int().default(1),
    /** Newest base of the journal that the leader knows. */
    base: z.object({ idx, at: z.number(), bytes: z.number() }).optional(),
    /** Why the next segment could not be made, or old segments could not be removed, until that succeeds. */
    baseFailure: z.string().optional(),
    verified: z
      .object({
        idx: idx.describe("the last batch found to be as it was written"),
        at: z.number().optional().describe("when the last whole run ended; absent during the first run"),
        fault: z
          .object({
            segment: z.int(),
            idx: idx.optional().describe("the first bad batch"),
            text: z.string(),
          })
          .optional()
          .describe("why the journal cannot be trusted from a batch on"),
      })
      .optional()
      .describe(
        "the leader's verification of the whole journal in the background; absent until it has begun",
      ),
  }),
  counters: counts,
});
export type StatusResponse = z.infer<typeof statusResponseSchema>;

/** State of a task. The journal holds the history, from `submittedIdx` on. */
export const acceptedTaskSchema = z.object({
  ok: z.literal(true),
  term,
  idx,
  at: z.number(),
  stale: z.literal(true).optional(),
  task: z.string(),
  project: z.string(),
  user: z.string(),
  kind: z.string(),
  state: z.string(),
  round: z.int().default(1).describe("number of submits and retries of the task, from 1"),
  attempts: z.int().describe("attempts of all rounds"),
  submittedIdx: idx,
  endedIdx: idx.optional(),
  endedAt: z.number().optional().describe("time at which the task ended; absent for a live task"),
  agent: z.string().optional(),
  attributes: z.record(z.string(), z.string()).optional().describe("absent: none, or no longer kept"),
});
export const taskStatusSchema = z.union([acceptedTaskSchema, codedErrorSchema]);
export type TaskStatus = z.infer<typeof taskStatusSchema>;

/** A page of the journal: raw batches, in order; `next` is where the next page starts, `last` the newest idx. */
export const journalPageSchema = z.object({
  next: idx,
  last: idx,
  changed: z
    .array(idx)
    .optional()
    .describe("batches of the page that are not as they were written: the batch after names another hash"),
  batches: z.array(
    z.looseObject({ idx, term, at: z.number(), events: z.array(z.looseObject({ type: z.string() })) }),
  ),
});

/** Stored records of a segment. */
export const recordsPageSchema = z.object({
  segments: z.array(z.int()).optional().describe("numbers of all segments, ascending"),
  end: z
    .object({ position: z.int(), bytes: z.number(), isSealed: z.boolean(), missing: z.int() })
    .nullable()
    .optional()
    .describe("of the segment; null: there is no such segment"),
  records: z
    .array(
      z.object({
        position: z.int(),
        base64: z.string(),
        size: z.int().optional().describe("bytes of the whole record, if this is a part of it"),
      }),
    )
    .optional()
    .describe("in order and without gaps; empty: there are no such records"),
});
export type RecordsPage = z.infer<typeof recordsPageSchema>;

/** On `coordinator`, each T/3. */
export const coordinatorHeartbeatSchema = z.object({
  id: z.string(),
  term,
  idx,
  leading: z.boolean(),
  /** The coordinator has just begun to lead: earlier requests went to a former leader. */
  began: z.literal(true).optional(),
  /** From a leader: the starts of recent terms, oldest first. */
  termStarts: termStartsSchema.optional(),
  /** The leader's journal has no room for its next batch, of this size; a new leader would find no room either. */
  neededBytes: z.number().int().nonnegative().optional(),
  /** The standby cannot read this segment of the journal: the leader continues in a new segment. */
  cannotRead: z.number().int().positive().optional(),
  /** The coordinator ends, and is no longer a standby. */
  leaves: z.literal(true).optional(),
});
export type CoordinatorHeartbeat = z.infer<typeof coordinatorHeartbeatSchema>;
