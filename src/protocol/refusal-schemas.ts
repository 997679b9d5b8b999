// What a coded refusal says beside its sentence.

import * as z from "zod";

/** With `WAGGLE_BUDGET_EXCEEDED`, of a task or of slots: the budget. */
export const budgetRefusalSchema = z.object({
  /** Absent: the swarm's. */
  project: z.string().optional(),
  tokens: z.int(),
  windowMs: z.int(),
  spent: z.int(),
  reserved: z.int(),
  needed: z.int(),
});

/** With `WAGGLE_ON_HOLD`: the resource of the slots asked for, and the end of its hold, ms since the Unix epoch. */
export const holdRefusalSchema = z.object({ resource: z.string(), until: z.number() });
