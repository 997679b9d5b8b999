// The budget in a refusal with code `WAGGLE_BUDGET_EXCEEDED`: of a task or of slots.

import * as z from "zod";

export const budgetRefusalSchema = z.object({
  /** Absent: the swarm's. */
  project: z.string().optional(),
  tokens: z.int(),
  windowMs: z.int(),
  spent: z.int(),
  reserved: z.int(),
  needed: z.int(),
});
