// Messages about logs of attempts: a client asks a coordinator, and the leader asks the agent.

import * as z from "zod";
import { limits } from "../limits.ts";
import { agentIdSchema, codedErrorSchema, projectIdSchema, taskIdSchema, version } from "./schemas.ts";

const attempt = z.int().min(1);

/** On `project.<p>.query.log`. */
export const logQuerySchema = z.object({
  v: version,
  task: taskIdSchema,
  agent: agentIdSchema
    .optional()
    .describe("agent that ran the attempt; default: the agent that runs the task now"),
  attempt: attempt
    .optional()
    .describe("number of the attempt; default: every attempt that the agent still holds"),
});

/** The leader's request on `agent.<g>.<a>.log`. */
export const logRequestSchema = z.object({
  v: version,
  project: projectIdSchema.describe(
    "project of the asking client; an agent shows no attempt of another project",
  ),
  task: taskIdSchema,
  attempt: attempt
    .optional()
    .describe("number of the attempt; default: every attempt that the agent still holds"),
});

export const attemptTextSchema = z.object({
  attempt,
  text: z.string().max(limits.attemptLogBytes).describe("last part of the attempt's log"),
  droppedBytes: z.int().min(0).describe("earlier bytes that are no longer kept"),
});
export type AttemptText = z.infer<typeof attemptTextSchema>;

/** An agent's answer: the attempts of the task that the agent still holds, newest first, as many as fit. */
export const heldLogsSchema = z.object({ logs: z.array(attemptTextSchema) });

export const logResponseSchema = z.union([
  z.object({ ok: z.literal(true), agent: agentIdSchema, logs: z.array(attemptTextSchema) }),
  codedErrorSchema,
]);
