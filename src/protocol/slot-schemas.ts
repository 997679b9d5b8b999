// Messages about slots of resources, v1, as zod schemas: acquire, touch, release, the lists in heartbeats, and pushes
// to agents. schemas.ts includes the pushes. docs/protocol.md is generated from both.

import * as z from "zod";
import {
  type Incarnation,
  type Instant,
  NAME_PATTERN,
  type ProjectId,
  type ResourceName,
  type SlotHandle,
  SUBJECT_TOKEN_PATTERN,
  type UserId,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { budgetRefusalSchema, holdRefusalSchema } from "./refusal-schemas.ts";

const branded = <Out>(schema: z.ZodType<unknown>) => schema as unknown as z.ZodType<Out>;

const token = z.string().regex(SUBJECT_TOKEN_PATTERN, "must be 1–64 characters of A–Z a–z 0–9 _ -");
const name = z.string().regex(NAME_PATTERN, "must be 1–128 printable characters without spaces");
const version = z.literal(1, { error: "this swarm speaks version 1" }).optional();
const incarnationSchema = branded<Incarnation>(token);
const handleSchema = branded<SlotHandle>(token).describe(
  "id of the slot lease, chosen by the agent and never reused",
);
const label = z
  .string()
  .regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, "must have a visible character, and no control characters")
  .max(limits.slotLabelCharactersMax);
const tokens = z.int().min(0).max(limits.tokensPerAttemptMax);
const handles = z.array(branded<SlotHandle>(token)).max(limits.slotLeasesPerAgentMax);

export const acquireRequestSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  handle: handleSchema,
  resources: z
    .array(branded<ResourceName>(name))
    .min(1)
    .max(limits.slotsPerLeaseMax)
    .describe("all are granted at once; one slot per mention"),
  weight: z
    .number()
    .min(1)
    .max(limits.taskWeightMax)
    .optional()
    .describe("cost in the load function; default 1"),
  holder: name
    .optional()
    .describe(
      "thread of work within the agent; the slots that it holds restrict the order of its further requests. In a handler `<incarnation>.<number of the assignment>`: then the slots are shown with the task, and holds are judged by the attempt",
    ),
  timeoutMs: z
    .int()
    .min(0)
    .max(limits.acquireTimeoutMsMax)
    .optional()
    .describe("maximum wait; absent: the request waits until it is granted or released"),
  tokens: z
    .int()
    .min(0)
    .max(limits.tokensPerSlotLeaseMax)
    .optional()
    .describe(
      "expected tokens: budgets and rates reserve them while the slots are held, and charge them without a report",
    ),
  project: branded<ProjectId>(token)
    .optional()
    .describe("whose budget is charged, beside the swarm's; not for the slots of an attempt"),
  user: branded<UserId>(name).optional().describe("for whom, for display"),
  label: label.optional().describe("what for, for display"),
  as: name
    .optional()
    .describe("queue of its own within the agent, in the load function; absent: the agent's"),
  idleTimeoutMs: z
    .int()
    .min(limits.slotIdleMsMin)
    .max(limits.slotIdleMsMax)
    .optional()
    .describe("longest time without a touch, from the grant on; then the leader takes the slots back"),
});
export type AcquireRequest = z.infer<typeof acquireRequestSchema>;

/** Tokens used under a slot lease. */
export const slotUsageSchema = z.object({
  tokens: tokens.describe("charged to the budgets and rates"),
  inputTokens: tokens.optional(),
  outputTokens: tokens.optional(),
  partial: z.literal(true).optional().describe("the work was cut off: more may have been used"),
});
export type SlotUsage = z.infer<typeof slotUsageSchema>;

/** The work under a slot lease was refused, such as with HTTP status 429. */
export const slotRefusalSchema = z
  .object({
    resource: branded<ResourceName>(name)
      .optional()
      .describe("default: all resources of the lease; required once it has ended"),
    forMs: z
      .int()
      .min(0)
      .max(limits.holdMsMax)
      .optional()
      .describe("time from now, ms. Without a time the third refusal in a row places a hold"),
    until: branded<Instant>(z.int().min(0)).optional().describe("instead of forMs; at most 7 days from now"),
    reason: z.string().optional().describe("for people; cut after 1,024 characters"),
  })
  .refine(({ forMs, until }) => forMs === undefined || until === undefined, {
    path: ["until"],
    error: "and forMs exclude each other",
  });
export type SlotRefusalClaim = z.infer<typeof slotRefusalSchema>;

export const releaseRequestSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  handle: handleSchema,
  usage: slotUsageSchema
    .optional()
    .describe("absent: the expected tokens. Also charged, once, where the lease was lost before"),
  refused: slotRefusalSchema
    .optional()
    .describe(
      "the provider refused the work: its resources are put on hold before the slots are free. Also after the end of the lease",
    ),
  unanswered: z
    .literal(true)
    .optional()
    .describe(
      "the work was cut off before the provider answered: the release is no success of its resources",
    ),
});

/** Starts the idle time of a slot lease anew. */
export const touchRequestSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  handle: handleSchema,
});

/** In a heartbeat. A handle in neither list is released, or no longer waits, unless its request is younger than
 *  `limits.slotUnlistedMs`. */
export const listedSlotsSchema = z.object({
  held: handles.describe("handles of granted slot leases"),
  waiting: handles.describe("handles of requests that wait or have no answer yet"),
});

export const slotEndings = [
  "released",
  "aborted",
  "timed-out",
  "lost",
  "agent-gone",
  "above-capacity",
  "on-hold",
  "idle",
] as const;

const term = z.int();
const idx = z.int();
const refusal = z.object({
  ok: z.literal(false),
  code: z.string(),
  message: z.string(),
  field: z.string().optional(),
  retryAfterMs: z.number().optional(),
  budget: budgetRefusalSchema
    .optional()
    .describe("with `WAGGLE_BUDGET_EXCEEDED`: the budget, the use of its window, and the tokens asked for"),
  hold: holdRefusalSchema
    .optional()
    .describe("with `WAGGLE_ON_HOLD`: the resource, and the end of its hold (ms since the Unix epoch)"),
});

export const acquireResponseSchema = z.union([
  z.object({
    term,
    idx,
    answer: z.union([
      z.object({
        ok: z.literal(true),
        state: z.enum(["granted", "waiting"]),
      }),
      refusal,
    ]),
  }),
  refusal,
]);
export type AcquireResponse = z.infer<typeof acquireResponseSchema>;

export const releaseResponseSchema = z.union([
  z.object({
    ok: z.literal(true),
    term,
    idx,
    was: z
      .enum(["held", "waiting", "ended"])
      .describe(
        "`held`: the slots are free now; `waiting`: the request no longer waits; `ended`: the lease or request had already ended",
      ),
    reason: z.enum(slotEndings).optional().describe("with `ended`: how the lease or request had ended"),
  }),
  refusal,
]);

export const touchResponseSchema = z.union([
  z.object({
    ok: z.literal(true),
    term,
    idx,
    state: z.enum(["held", "waiting", "ended"]),
    reason: z.enum(slotEndings).optional().describe("with `ended`: how the lease or request had ended"),
  }),
  refusal,
]);

const pushed = { term, incarnation: z.string() };

/** The agent holds every slot of the handles. Repeated until the agent's heartbeat lists the handles as held. */
export const slotsGrantedPushSchema = z.object({
  type: z.literal("slots-granted"),
  ...pushed,
  handles: z.array(z.string()),
});

/** The requests no longer wait and have no slots; `unknown`: the journal does not know the request, so the agent must
 *  ask again. */
export const slotWaitsEndedPushSchema = z.object({
  type: z.literal("slot-waits-ended"),
  ...pushed,
  waits: z.array(z.object({ handle: z.string(), reason: z.enum([...slotEndings, "unknown"]) })),
});

/** The agent believes that it holds the slots, but does not: their users must stop. */
export const slotsRevokedPushSchema = z.object({
  type: z.literal("slots-revoked"),
  ...pushed,
  handles: z.array(z.string()),
  reason: z.literal("idle").optional().describe("`idle`: the lease was not touched within its idle time"),
});

/** The attempt that slots serve. */
const servedTask = z.object({ project: z.string(), task: z.string(), attempt: z.int() });

const slotLease = z.object({
  agent: z.string(),
  handle: z.string(),
  /** Time since the grant or the request. */
  forMs: z.number(),
  as: z.string().optional(),
  label: z.string().optional(),
  project: z.string().optional().describe("of the task, where the slots serve an attempt"),
  user: z.string().optional(),
  task: servedTask.optional(),
  tokens: z.int().optional().describe("reserved, or to be reserved at the grant"),
  waitsFor: z
    .enum(["project-budget", "global-budget", "rate"])
    .optional()
    .describe("of a waiter: what has too little left for its tokens"),
  idleAt: z.number().optional().describe("of a holder: when the slots are taken back unless touched"),
});

/** In the answer to `query.status`. */
export const resourceStatusSchema = z.object({
  resource: z.string(),
  slots: z.int(),
  maxWaiters: z.int(),
  /** More than `slots` only after their number was lowered. */
  inUse: z.int(),
  waiting: z.int(),
  /** Sum of the waiting requests' weights. */
  waitingWeight: z.number(),
  /** Releases so far. */
  tick: z.int(),
  grants: z.int(),
  /** Share of the slots that was in use, over the time since the resource was first set. */
  utilisation: z.number(),
  /** Current value, if adjusted automatically. */
  alpha: z.number(),
  autoTune: z.boolean(),
  /** Origin of α. */
  alphaFrom: z.enum(["resource", "policy"]),
  /** The oldest few of each. */
  holders: z.array(slotLease),
  waiters: z.array(slotLease),
  onHold: z
    .object({ until: z.number(), phase: z.enum(["held", "due", "probing"]) })
    .optional()
    .describe("hold on the resource: nothing is granted until then, except one probe"),
});
export type ResourceStatus = z.infer<typeof resourceStatusSchema>;
