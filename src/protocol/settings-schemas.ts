// Messages about settings: requests on `operator.<verb>`, their answers, and the query `settings`. A request has only
// the changed fields; the answer has the complete settings. The ranges are the ranges of core/next-settings.ts, which
// also refuses invalid combinations.

import * as z from "zod";
import {
  GRANT_LABEL_PATTERN,
  NO_PROJECT,
  type ProjectId,
  type ResourceName,
  SUBJECT_TOKEN_PATTERN,
  type UserId,
} from "../ids.ts";
import { limits } from "../limits.ts";
import { holdScopes } from "../state/hold.ts";
import { budgetModes, rateWindows, resultsKept } from "../state/settings.ts";
import {
  branded,
  codedErrorSchema,
  groupIdSchema,
  instantSchema,
  kindSchema,
  name,
  projectIdSchema,
  version,
} from "./schemas.ts";

const resourceNameSchema = branded<ResourceName>(name);
const settableProject = branded<ProjectId>(
  projectIdSchema.refine((project) => project !== NO_PROJECT, "_ stands for no project"),
);

const range = z.object({ min: z.number(), max: z.number() });
const weight = z.number().min(limits.settingWeightMin).max(limits.settingWeightMax);
const tokens = z.int().min(1).max(limits.tokensMax);
const openAttempts = z.int().min(1).max(limits.openAttemptsMax);
const alphaValue = z.number().min(0).max(1);
const alphaPreset = z.enum(["latency", "balanced", "throughput"]);
const windowMs = z.int().min(limits.budgetWindowMsMin).max(limits.budgetWindowMsMax);
const budgetMode = z.enum(budgetModes);
const rateWindow = z.enum(rateWindows);

export const budgetSchema = z.object({ tokens, windowMs, mode: budgetMode });
const budgetPatch = budgetSchema
  .partial()
  .nullable()
  .optional()
  .describe(
    "tokens in a rolling window; only the given fields change; mode wait (default), reject, alert or downgrade; null: no budget",
  );

// --- requests ---------------------------------------------------------------------------------------

export const projectPatchSchema = z.object({
  creditWeight: weight.optional().describe("share of the project while other projects wait; default 1"),
  maxConcurrent: openAttempts
    .nullable()
    .optional()
    .describe("maximum number of open attempts; null: no limit"),
  budget: budgetPatch,
  queueMax: z
    .int()
    .min(1)
    .max(limits.queuedTasksPerProjectMax)
    .nullable()
    .optional()
    .describe("maximum number of waiting tasks; null: the highest possible maximum"),
  results: z
    .enum(resultsKept)
    .optional()
    .describe(
      "what the journal keeps of a result: whole (default), or hash: SHA-256 and length. With hash, a result reaches only clients that await the task when it ends",
    ),
  priorityRange: range
    .nullable()
    .optional()
    .describe("permitted priorities of submissions, both ends included; null: any"),
  weightRange: range
    .nullable()
    .optional()
    .describe("permitted weights of submissions, both ends included; null: any"),
  user: branded<UserId>(name)
    .nullable()
    .optional()
    .describe("the only user of submissions, and their default; null: any"),
  inboxUsers: z
    .array(z.string().regex(SUBJECT_TOKEN_PATTERN, "must be 1–64 characters of A–Z a–z 0–9 _ -"))
    .min(1)
    .max(limits.grantNamesMax)
    .readonly()
    .nullable()
    .optional()
    .describe(
      "users with the inboxes `_INBOX.<user>` or `_INBOX_<user>`: with the policy `security: strict`, no other inbox gets answers about the project; null: none is named",
    ),
});
export const kindPatchSchema = z.object({
  importance: weight.optional().describe("factor on how fast waiting tasks rise in the queue; default 1"),
  cheaper: kindSchema
    .nullable()
    .optional()
    .describe(
      "kind as which its tasks run in mode downgrade, and while all its agents are on hold; null: no kind",
    ),
  cheaperType: name
    .nullable()
    .optional()
    .describe("type of agents to which its tasks are restricted in mode downgrade; null: any type"),
});
export const resourcePatchSchema = z.object({
  slots: z
    .int()
    .min(1)
    .max(limits.slotsPerResourceMax)
    .optional()
    .describe("maximum number of slots held at once; required for a new resource"),
  maxWaiters: z
    .int()
    .min(0)
    .max(limits.maxWaitersMax)
    .optional()
    .describe("maximum number of waiting requests"),
  alpha: alphaValue
    .nullable()
    .optional()
    .describe("α of the resource; excludes optimizeFor; null: use the policy's α and autoTune"),
  optimizeFor: alphaPreset.optional().describe("α of the resource as a preset: 0, 0.25, 0.5"),
  autoTune: z
    .boolean()
    .optional()
    .describe("adjust the resource's α automatically; requires α of at most 0.5"),
});
export const ratePatchSchema = z.object({
  window: rateWindow
    .optional()
    .describe(
      "window of the rate: a type may have one rate per window, and all apply. Required to set a rate",
    ),
  tokensMax: tokens.optional().describe("maximum number of tokens per window; required for a new rate"),
  sliding: z
    .boolean()
    .optional()
    .describe(
      "true: sliding window; false (default): fixed window that restarts with the first use after it ends",
    ),
});
export const policyPatchSchema = z.object({
  rules: z
    .enum(["waggle", "budget", "loco", "vapora", "lucio"])
    .optional()
    .describe("preset of the rules below; rules in the same request override it"),
  projectTurn: z
    .enum(["clock", "recency", "deficit", "load", "fifo", "none"])
    .optional()
    .describe("none: projects have no turns"),
  userTurn: z
    .enum(["clock", "recency", "load", "fifo"])
    .optional()
    .describe("clock requires a projectTurn other than none"),
  agentRule: z.enum(["score", "first-idle"]).optional(),
  lambda: z.number().min(0).max(limits.lambdaMax).optional(),
  speedExponent: z.literal([0, 0.5, 1, 2]).optional(),
  alpha: alphaValue.optional().describe("excludes optimizeFor"),
  optimizeFor: alphaPreset.optional().describe("α of 0, 0.25, 0.5"),
  autoTune: z.boolean().optional().describe("adjust α automatically; requires α of at most 0.5"),
  starvationLimit: z
    .int()
    .min(0)
    .max(limits.starvationLimitTicksMax)
    .optional()
    .describe("maximum wait before a task jumps the queue, in ticks per competing waiter; 0 disables it"),
  guaranteeMs: z.int().min(limits.guaranteeMsMin).max(limits.guaranteeMsMax).optional(),
  topN: openAttempts
    .nullable()
    .optional()
    .describe("maximum number of open attempts in the swarm; null: no limit"),
  budget: budgetPatch,
  tokensDefault: z
    .int()
    .min(1)
    .max(limits.tokensPerAttemptMax)
    .optional()
    .describe("estimated tokens of an attempt whose kind has no reports yet"),
  rememberMs: z
    .int()
    .min(limits.rememberMsMin)
    .max(limits.rememberMsMax)
    .optional()
    .describe("time for which ended tasks are remembered, counted while a leader is active"),
  rememberedTasks: z
    .int()
    .min(limits.rememberedTasksMin)
    .max(limits.rememberedTasksMax)
    .optional()
    .describe("maximum number of ended tasks that are remembered"),
  projects: z.enum(["open", "declared"]).optional().describe("declared: only projects that were set exist"),
  resources: z
    .enum(["open", "declared"])
    .optional()
    .describe("open: the first request for an unknown resource makes it; declared: it is refused"),
  slotsDefault: z
    .int()
    .min(1)
    .max(limits.slotsPerResourceMax)
    .optional()
    .describe("slots of a resource that a request makes"),
  agents: z
    .enum(["open", "declared"])
    .optional()
    .describe("declared: agents join only in groups with a grant"),
  security: z
    .enum(["open", "strict"])
    .optional()
    .describe(
      "strict: answers and pushes go only to inboxes of the asker's group, or of the users set for the project",
    ),
});

const namesOf = <Name extends z.ZodType>(of: Name, description: string) =>
  z.array(of).max(limits.grantNamesMax).optional().describe(description);

export const grantSchema = z
  .strictObject({
    kinds: namesOf(kindSchema, "kinds the group's agents may serve"),
    roles: namesOf(name, "roles the group's agents may have; an agent without a role is permitted"),
    types: namesOf(name, "types the group's agents may have; an agent without a type is refused"),
    labels: namesOf(
      z.string().regex(GRANT_LABEL_PATTERN, "must be name=value, or name for any value"),
      "labels the group's agents may have: `name=value`, or `name` for any value",
    ),
    projects: namesOf(
      settableProject,
      "projects the group's agents may get tasks of, and whose budgets they may charge",
    ),
    resources: namesOf(resourceNameSchema, "resources the group's agents may hold slots of"),
    maxConcurrent: z
      .int()
      .min(0)
      .max(limits.maxConcurrentMax)
      .optional()
      .describe("of each of its agents, prefetched tasks included; 0: none may join"),
    tokens: z
      .int()
      .min(0)
      .max(limits.tokensPerAttemptMax)
      .optional()
      .describe("that one attempt or one slot lease may charge: a report of more counts as this many"),
  })
  .describe("what a group of agents may do; an absent field is unbounded, an empty list permits nothing");

export const policyRequestSchema = z.object({ v: version, ...policyPatchSchema.shape });
export const projectRequestSchema = z.object({
  v: version,
  project: settableProject,
  ...projectPatchSchema.shape,
  remove: z
    .literal(true)
    .optional()
    .describe("remove the project's settings; refused while the project has tasks that have not ended"),
});
/** A project owner's request to set its own project, which the subject names. The share and the limits are absent:
 *  only operators set them. */
export const ownerSetRequestSchema = z.object({ v: version, ...projectPatchSchema.shape });
export const ownerPauseRequestSchema = z.object({ v: version });
export const kindRequestSchema = z.object({ v: version, kind: kindSchema, ...kindPatchSchema.shape });
export const resourceRequestSchema = z.object({
  v: version,
  resource: resourceNameSchema,
  ...resourcePatchSchema.shape,
  remove: z
    .literal(true)
    .optional()
    .describe("remove the resource; refused while slots are held or requests wait"),
});
export const rateRequestSchema = z.object({
  v: version,
  type: name.describe("type of agents"),
  ...ratePatchSchema.shape,
  remove: z
    .literal(true)
    .optional()
    .describe("remove the rate of this window; without `window`, all rates of the type"),
});
export const grantRequestSchema = z.object({
  v: version,
  group: groupIdSchema.describe("`_`: agents without a group"),
  grant: grantSchema.nullable().describe("replaces the whole grant; null: removes it"),
});
export const pauseRequestSchema = z.object({
  v: version,
  project: settableProject.optional().describe("absent: the whole swarm"),
});
const holdTarget = {
  on: z.enum(holdScopes).describe("an agent, all agents of a type, or a resource"),
  name: name.describe("of the agent, the type or the resource"),
};
export const holdRequestSchema = z.object({
  v: version,
  ...holdTarget,
  forMs: z
    .int()
    .min(limits.holdMsMin)
    .max(limits.holdMsMax)
    .optional()
    .describe("time from now, ms; one of `forMs` and `until` is required"),
  until: instantSchema.optional().describe("end of the hold, at most 7 days from now"),
  lengthen: z
    .boolean()
    .optional()
    .describe("true: a hold in force that ends later is kept as it is; default false"),
});
export const unholdRequestSchema = z.object({ v: version, ...holdTarget });
export const settingsQuerySchema = z.object({
  v: version,
  name: name.optional().describe("only the project, kind, resource and agent type of this name"),
});

// --- answers ----------------------------------------------------------------------------------------

const policySchema = z.object({
  rules: z.string(),
  projectTurn: z.string(),
  userTurn: z.string(),
  agentRule: z.string(),
  lambda: z.number(),
  speedExponent: z.number(),
  alpha: z.number(),
  autoTune: z.boolean(),
  starvationLimit: z.number(),
  guaranteeMs: z.number(),
  topN: z.number().optional(),
  budget: budgetSchema.optional(),
  tokensDefault: z.number(),
  /** Absent from an older coordinator. */
  rememberMs: z.number().optional(),
  rememberedTasks: z.number().optional(),
  projects: z.enum(["open", "declared"]),
  /** Absent from an older coordinator. */
  resources: z.enum(["open", "declared"]).optional(),
  slotsDefault: z.number().optional(),
  /** Absent from an older coordinator. */
  agents: z.enum(["open", "declared"]).optional(),
  security: z.enum(["open", "strict"]).optional(),
});
/** Settings of the whole swarm. */
export type PolicySettings = z.infer<typeof policySchema>;

const projectSettingsSchema = z.object({
  creditWeight: z.number(),
  maxConcurrent: z.number().optional(),
  budget: budgetSchema.optional(),
  queueMax: z.number(),
  results: z.literal("hash").optional().describe("absent: the journal keeps whole results"),
  priorityRange: range.optional(),
  weightRange: range.optional(),
  user: z.string().optional(),
  inboxUsers: z.array(z.string()).readonly().optional(),
});
const kindSettingsSchema = z.object({
  importance: z.number(),
  cheaper: z.string().optional(),
  cheaperType: z.string().optional(),
});
const resourceSettingsSchema = z.object({
  slots: z.number(),
  maxWaiters: z.number(),
  ownAlpha: z
    .object({ value: z.number(), autoTune: z.boolean() })
    .optional()
    .describe("absent: the policy's α and autoTune apply"),
});
/** Origin of a resource's α. */
export const alphaOriginSchema = z.enum(["resource", "policy"]);
const alphaInForceSchema = z.object({ value: z.number(), autoTune: z.boolean(), from: alphaOriginSchema });
const rateSettingsSchema = z.object({ window: rateWindow, tokensMax: z.number(), sliding: z.boolean() });

/** @param settings complete, after the request · `changed`: whether the request changed them */
const setAnswerOf = <Settings extends z.ZodType>(settings: Settings) =>
  z.union([
    z.object({
      ok: z.literal(true),
      term: z.int(),
      idx: z.int(),
      changed: z.boolean(),
      settings,
      warnings: z
        .array(z.string())
        .optional()
        .describe("effects that the setting does not have, although a user may expect them"),
    }),
    codedErrorSchema,
  ]);

export const policyAnswerSchema = setAnswerOf(policySchema);
export const projectSetAnswerSchema = setAnswerOf(projectSettingsSchema);
/** The answer to a set or remove request for one name; likewise for resources and rates. */
export const projectAnswerSchema = setAnswerOf(projectSettingsSchema.nullable());
export const kindAnswerSchema = setAnswerOf(kindSettingsSchema);
export const resourceSetAnswerSchema = setAnswerOf(resourceSettingsSchema);
export const resourceAnswerSchema = setAnswerOf(resourceSettingsSchema.nullable());
export const rateSetAnswerSchema = setAnswerOf(rateSettingsSchema);
const grantSettingsSchema = z.object({
  kinds: z.array(z.string()).readonly().optional(),
  roles: z.array(z.string()).readonly().optional(),
  types: z.array(z.string()).readonly().optional(),
  labels: z.array(z.string()).readonly().optional(),
  projects: z.array(z.string()).readonly().optional(),
  resources: z.array(z.string()).readonly().optional(),
  maxConcurrent: z.number().optional(),
  tokens: z.number().optional(),
});
/** A group's grant, as in force. */
export type GrantSettings = z.infer<typeof grantSettingsSchema>;
export const grantSetAnswerSchema = setAnswerOf(grantSettingsSchema);
export const grantAnswerSchema = setAnswerOf(grantSettingsSchema.nullable());
export const removedAnswerSchema = setAnswerOf(z.null());
export const rateAnswerSchema = setAnswerOf(rateSettingsSchema.nullable());
export const pauseAnswerSchema = setAnswerOf(
  z.object({ project: z.string().optional(), paused: z.boolean() }),
);
export const holdAnswerSchema = setAnswerOf(
  z.object({ on: z.enum(holdScopes), name: z.string(), until: z.number() }),
);

/** All settings: each project, kind, resource and agent type with settings. */
export const settingsResponseSchema = z.object({
  term: z.int(),
  idx: z.int(),
  at: z.number(),
  /** Answered by a standby; the leader may know more. */
  stale: z.literal(true).optional(),
  paused: z.boolean(),
  policy: policySchema,
  projects: z.array(
    z.object({
      project: z.string(),
      paused: z.boolean(),
      /** False: the project is only paused, and the defaults apply. */
      declared: z.boolean(),
      settings: projectSettingsSchema,
    }),
  ),
  kinds: z.array(z.object({ kind: z.string(), settings: kindSettingsSchema })),
  resources: z.array(
    z.object({
      resource: z.string(),
      /** α as set for the resource or by the policy. `status` has the automatically adjusted value. */
      alpha: alphaInForceSchema,
      settings: resourceSettingsSchema,
    }),
  ),
  rates: z.array(z.object({ type: z.string(), settings: rateSettingsSchema })),
  /** Absent from an older coordinator. */
  grants: z.array(z.object({ group: z.string(), settings: grantSettingsSchema })).default([]),
  /** Values that apply without settings. */
  defaults: z.object({ project: projectSettingsSchema, kind: kindSettingsSchema }),
  /** Rows left out because the answer would not fit a message; absent when it is whole. Ask by `name`. */
  omitted: z
    .object({
      projects: z.int(),
      kinds: z.int(),
      resources: z.int(),
      rates: z.int(),
      grants: z.int().default(0),
    })
    .optional(),
});
export type SettingsResponse = z.infer<typeof settingsResponseSchema>;
