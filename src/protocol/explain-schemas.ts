// The queries `explain` and `slots` with their answers: why a task waits, from scheduling/explain.ts, and which request
// for slots comes next, from scheduling/explain-slots.ts. The journal's assignment holds the agent of an assigned task,
// and the reason.

import * as z from "zod";
import { NAME_PATTERN } from "../ids.ts";
import { holdScopes } from "../state/hold.ts";
import { ineligibleReasons } from "../state/receipt.ts";
import { acceptedTaskSchema, agentIdSchema, codedErrorSchema, taskIdSchema, version } from "./schemas.ts";

export const explainQuerySchema = z.object({ v: version, task: taskIdSchema });

const ineligibleReason = z.enum(ineligibleReasons);

/** The terms of a score, rounded to 4 decimals. */
const candidateTermsSchema = z.object({
  agent: z.string(),
  score: z.number(),
  successRate: z.number(),
  load: z.number(),
  backlog: z.number().optional(),
  speed: z.number().optional(),
});

/** The standing of an agent for a task. */
export const agentStandingSchema = z.object({
  agent: z.string(),
  standing: z.union([z.enum(["feasible", "probe"]), ineligibleReason]),
  servesKind: z.boolean().describe("whether the agent serves the kind as which the task would run"),
  capacity: z.int().describe("max concurrent plus prefetch"),
  free: z.int(),
  until: z.number().optional().describe("time at which the obstacle ends by itself"),
  terms: candidateTermsSchema
    .optional()
    .describe("terms of the agent's score, rounded to 4 decimals; only of online agents that serve the kind"),
});
export type AgentStanding = z.infer<typeof agentStandingSchema>;

const needsRecord = z.record(z.string(), z.array(z.string()));

const hold = z.object({
  on: z.enum(holdScopes),
  name: z.string(),
  by: z.enum(["agent", "refusals", "operator"]),
  hold: z.string().optional().describe("the error of the refused attempt"),
});

const budgetFacts = {
  project: z.string().optional(),
  spent: z.int(),
  reserved: z.int(),
  tokens: z.int(),
  windowMs: z.int(),
  needed: z.int(),
  opensAt: z.number().optional(),
};

/** Why a task has no agent. */
export const obstacleSchema = z.discriminatedUnion("reason", [
  z.object({
    reason: z.literal("journal-tight"),
    bytes: z.int(),
    bytesMax: z.int(),
    remedy: z.string().optional(),
  }),
  z.object({ reason: z.literal("swarm-paused") }),
  z.object({ reason: z.literal("project-paused"), project: z.string() }),
  z.object({
    reason: z.literal("not-before"),
    until: z.number(),
    isRetry: z.boolean(),
    /** The attempt was a refused probe: another task makes the next probe of this hold. */
    probed: hold.optional(),
  }),
  z.object({
    reason: z.literal("no-agent-serves-kind"),
    kind: z.string(),
    nearMisses: z.array(z.string()),
    offline: z.int(),
    draining: z.int(),
  }),
  z.object({
    reason: z.literal("no-agent-has-role"),
    kind: z.string(),
    role: z.string(),
    nearMisses: z.array(z.string()),
    agents: z.int(),
    offline: z.int().default(0),
    draining: z.int().default(0),
    drained: z.string().optional(),
  }),
  z.object({
    reason: z.literal("no-agent-has-labels"),
    kind: z.string(),
    role: z.string().optional(),
    needs: needsRecord,
    unmet: needsRecord.describe("needs that the closest agents do not meet"),
    nearMisses: z.array(z.string()).describe("similar labels of agents, as `gpu=h100`"),
    agents: z.int(),
    offline: z.int(),
    draining: z.int(),
    drained: z.string().optional(),
  }),
  z.object({
    reason: z.literal("no-agent-of-type"),
    kind: z.string(),
    role: z.string().optional(),
    type: z.string(),
    nearMisses: z.array(z.string()),
    agents: z.int(),
    offline: z.int(),
    draining: z.int(),
    drained: z.string().optional(),
  }),
  z.object({ reason: z.literal("project-budget"), ...budgetFacts }),
  z.object({ reason: z.literal("global-budget"), ...budgetFacts }),
  z.object({ reason: z.literal("swarm-limit"), open: z.int(), topN: z.int() }),
  z.object({
    reason: z.literal("project-concurrency"),
    project: z.string(),
    open: z.int(),
    maxConcurrent: z.int(),
  }),
  z.object({ reason: z.literal("all-full"), agents: z.int(), taken: z.int(), capacity: z.int() }),
  z.object({
    reason: z.literal("rate-limited"),
    type: z.string(),
    used: z.int(),
    reserved: z.int().default(0),
    tokensMax: z.int(),
    window: z.enum(["per_minute", "per_hour", "per_day"]),
    agents: z.int(),
    opensAt: z.number().optional(),
  }),
  z.object({
    reason: z.literal("on-hold"),
    ...hold.shape,
    agents: z.int(),
    /** Absent: the probe is under way. */
    until: z.number().optional(),
  }),
  z.object({
    reason: z.literal("none-eligible"),
    counts: z.partialRecord(ineligibleReason, z.int()),
    until: z.number().optional(),
  }),
  z.object({
    reason: z.literal("room-kept"),
    task: z.string().optional(),
    project: z.string().optional(),
    user: z.string().optional(),
  }),
  z.object({ reason: z.literal("later-turn"), feasible: z.int() }),
]);

export type TaskObstacle = z.infer<typeof obstacleSchema>;

/** `place`: 1 is next, of `of`. */
/** `waited` and `starvationLimit`: for a project in ticks of the kind, for a user in turns of the project in the
 *  queue, for a task in turns of its user. */
const place = { place: z.int(), of: z.int(), waited: z.number(), starvationLimit: z.number().optional() };
const turnPlaceSchema = z.object({
  ...place,
  basis: z.enum(["starvation-limit", "guarantee", "rule"]),
  clock: z.number(),
  virtualTime: z.number(),
});

const positionSchema = z.object({
  project: turnPlaceSchema,
  user: turnPlaceSchema,
  task: z.object(place),
  waiting: z.int(),
  next: z.object({ task: z.string(), project: z.string(), user: z.string() }).optional(),
});

const waitExplanationSchema = z.object({
  obstacles: z.array(obstacleSchema),
  ageMs: z.number(),
  ageTicks: z.number(),
  runsAs: z.string().optional(),
  cheaperType: z.string().optional().describe("agent type to which a budget or a hold restricts the task"),
  agents: z.array(agentStandingSchema),
  position: positionSchema.optional(),
});
export type TaskWait = z.infer<typeof waitExplanationSchema>;

const awaitedSlotsSchema = z.object({
  resources: z.array(z.string()),
  sinceMs: z.number(),
  onHold: z
    .object({
      resource: z.string(),
      until: z.number().optional().describe("absent: the hold's time is over, and its probe decides"),
    })
    .optional()
    .describe("the first of the resources that is on hold"),
});
export type AwaitedSlots = z.infer<typeof awaitedSlotsSchema>;

/** `waiting` is present while the task is queued or delayed; `omitted` counts rows that do not fit the answer. */
export const explainResponseSchema = z.union([
  acceptedTaskSchema.extend({
    role: z.string().optional(),
    needs: needsRecord.optional(),
    affinity: z
      .object({ key: z.string(), agent: z.string().optional() })
      .optional()
      .describe("the task's affinity, and the agent that it prefers now"),
    waiting: waitExplanationSchema.optional(),
    slots: z
      .array(awaitedSlotsSchema)
      .optional()
      .describe("requests for slots that the running attempt waits for; absent without any"),
    omitted: z.object({ agents: z.int() }).optional(),
  }),
  codedErrorSchema,
]);
export type ExplainResponse = z.infer<typeof explainResponseSchema>;
export type ExplainedTask = Extract<ExplainResponse, { ok: true }>;

// --- requests for slots -----------------------------------------------------------------------------

export const slotWaitsQuerySchema = z.object({
  v: version,
  resource: z.string().regex(NAME_PATTERN, "must be 1–128 printable characters without spaces"),
  agent: agentIdSchema.optional().describe("only up to the last request of this agent"),
  handle: z.string().max(64).optional().describe("only up to this request of the agent"),
});

export const slotStandingSchema = z.object({
  place: z.int().describe("place in the order of this moment; 1 is next"),
  agent: z.string(),
  as: z.string().optional().describe("queue of its own within the agent"),
  handle: z.string(),
  holder: z.string().optional(),
  label: z.string().optional(),
  project: z.string().optional(),
  user: z.string().optional(),
  tokens: z.int().optional().describe("to be reserved at the grant"),
  waitsFor: z
    .enum(["project-budget", "global-budget", "rate"])
    .optional()
    .describe("what has too little left for the tokens"),
  weight: z.number(),
  waitedMs: z.number(),
  ageTicks: z.int().describe("releases of the resource since the request"),
  limitTicks: z.number().optional().describe("age after which the request comes first; absent: no limit"),
  by: z.enum(["starvation-limit", "load", "tokens", "unreachable"]),
  load: z.number().describe("L of the queue: the sum of the two terms; rounded to 4 decimals"),
  depthTerm: z.number().describe("α · Q / max Q"),
  ageTerm: z.number().describe("(1 − α) · D / max D"),
  queueDepth: z.number().describe("Q: weights of all waiting requests of the queue"),
  oldestAge: z.int().describe("D: age of the queue's oldest request, in ticks"),
  needs: z.array(z.object({ resource: z.string(), wanted: z.int(), free: z.int() })),
});
export type SlotStanding = z.infer<typeof slotStandingSchema>;

/** `omitted` counts requests that do not fit the answer. */
const acceptedSlotWaitsSchema = z.object({
  ok: z.literal(true),
  term: z.int(),
  idx: z.int(),
  at: z.number(),
  stale: z.literal(true).optional(),
  resource: z.string(),
  slots: z.int(),
  inUse: z.int(),
  waiting: z.int(),
  alpha: z.number(),
  alphaFrom: z.enum(["resource", "policy"]),
  tick: z.int().describe("releases so far"),
  maxQueueDepth: z.number().describe("max Q over the waiting agents"),
  maxOldestAge: z.int().describe("max D over the waiting agents, in ticks"),
  waiters: z.array(slotStandingSchema).describe("in the order of this moment"),
  omitted: z.object({ waiters: z.int() }).optional(),
});
export const slotWaitsResponseSchema = z.union([acceptedSlotWaitsSchema, codedErrorSchema]);
export type SlotWaitsResponse = z.infer<typeof slotWaitsResponseSchema>;
/** The requests that wait for a resource, ranked. */
export type SlotWaits = Omit<z.infer<typeof acceptedSlotWaitsSchema>, "ok">;
