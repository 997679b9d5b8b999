// The list of tasks on the wire: the query, and a page of its answer.

import * as z from "zod";
import { limits } from "../limits.ts";
import {
  agentIdSchema,
  attributesSchema,
  instantSchema,
  kindSchema,
  userIdSchema,
  version,
} from "./schemas.ts";

export const taskStates = [
  "queued",
  "delayed",
  "assigned",
  "running",
  "completed",
  "failed",
  "cancelled",
  "expired",
  "dead-lettered",
] as const;
export const taskSorts = ["newest", "oldest", "submitted", "attempts"] as const;
export type TaskSort = (typeof taskSorts)[number];

const some = <Item extends z.ZodType>(item: Item) =>
  z.array(item).min(1).max(limits.filterNamesMax).optional();

/** Every given condition must hold; within a list, any value. */
export const taskFilterShape = {
  states: some(z.enum(taskStates)),
  kinds: some(kindSchema),
  users: some(userIdSchema),
  agents: some(agentIdSchema).describe("agents of the last attempt"),
  attributes: attributesSchema
    .optional()
    .describe(
      "values that the task's attributes must have; of ended tasks, newer ones keep their attributes longer",
    ),
  olderThanMs: z
    .int()
    .min(0)
    .max(limits.rememberMsMax)
    .optional()
    .describe("minimum time since the task ended or, for a live task, since its round began"),
};
const taskFilterSchema = z.object(taskFilterShape);
export type TaskFilter = z.infer<typeof taskFilterSchema>;

export const tasksQuerySchema = z.object({
  v: version,
  ...taskFilterShape,
  sort: z
    .enum(taskSorts)
    .optional()
    .describe(
      "`newest` (default): live tasks first, running before waiting; `submitted`: in order of submission",
    ),
  limit: z.int().min(1).max(limits.tasksPageMax).optional().describe(`default ${limits.tasksPageDefault}`),
  after: z
    .string()
    .max(limits.cursorCharactersMax)
    .optional()
    .describe("`next` of the previous page, with the same sort"),
});

export const listedTaskSchema = z.object({
  task: z.string(),
  project: z.string(),
  user: z.string(),
  kind: z.string(),
  state: z.enum(taskStates),
  round: z.int(),
  attempts: z.int().describe("attempts of all rounds"),
  agent: z.string().optional().describe("agent of the last attempt; absent without attempts"),
  since: instantSchema.describe("time at which the task ended or, for a live task, at which its round began"),
  ageMs: z.number().describe("time from `since` to now, in journal time"),
  submittedIdx: z.int(),
  endedIdx: z.int().optional(),
  attributes: z.record(z.string(), z.string()).optional().describe("absent: none, or no longer kept"),
});
export type ListedTask = z.infer<typeof listedTaskSchema>;

export const tasksResponseSchema = z.object({
  term: z.int(),
  idx: z.int(),
  at: z.number(),
  stale: z.literal(true).optional(),
  tasks: z.array(listedTaskSchema),
  total: z.int().describe("number of tasks that match the filter"),
  more: z.int().describe("number of matching tasks after this page"),
  next: z.string().optional().describe("`after` for the next page; absent on the last page"),
});
export type TasksResponse = z.infer<typeof tasksResponseSchema>;
