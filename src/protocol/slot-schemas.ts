// Messages about slots of resources, v1, as zod schemas: acquire, release, the lists in heartbeats, and pushes to
// agents. schemas.ts includes the pushes. docs/protocol.md is generated from both.

import { z } from "zod";
import {
  type Incarnation,
  NAME_PATTERN,
  type ResourceName,
  type SlotHandle,
  SUBJECT_TOKEN_PATTERN,
} from "../ids.ts";
import { limits } from "../limits.ts";

const branded = <Out>(schema: z.ZodType<unknown>) => schema as unknown as z.ZodType<Out>;

const token = z.string().regex(SUBJECT_TOKEN_PATTERN, "must be 1–64 characters of A–Z a–z 0–9 _ -");
const name = z.string().regex(NAME_PATTERN, "must be 1–128 printable characters without spaces");
const version = z.literal(1, { error: "this swarm speaks version 1" }).optional();
const incarnationSchema = branded<Incarnation>(token);
const handleSchema = branded<SlotHandle>(token).describe(
  "id of the slot lease, chosen by the agent and never reused",
);
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
      "thread of work within the agent; the slots that it holds restrict the order of its further requests",
    ),
  timeoutMs: z
    .int()
    .min(0)
    .max(limits.acquireTimeoutMsMax)
    .optional()
    .describe("maximum wait; absent: the request waits until it is granted or released"),
});
export type AcquireRequest = z.infer<typeof acquireRequestSchema>;

export const releaseRequestSchema = z.object({
  v: version,
  incarnation: incarnationSchema,
  handle: handleSchema,
});

/** In a heartbeat. A handle in neither list is released, or no longer waits. */
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
] as const;

const term = z.int();
const idx = z.int();
const refusal = z.object({
  ok: z.literal(false),
  code: z.string(),
  message: z.string(),
  field: z.string().optional(),
  retryAfterMs: z.number().optional(),
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
});

const party = z.object({
  agent: z.string(),
  handle: z.string(),
  /** Time since the grant or the request. */
  forMs: z.number(),
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
  holders: z.array(party),
  waiters: z.array(party),
  onHold: z
    .object({ until: z.number(), phase: z.enum(["held", "due", "probing"]) })
    .optional()
    .describe("hold on the resource: nothing is granted until then, except one probe"),
});
export type ResourceStatus = z.infer<typeof resourceStatusSchema>;
