// A snapshot in the format of the budget document: read and checked, or refused with its place and field. No field
// has a default: a misspelt budget must not mean no budget.

import * as z from "zod";
import { InvalidMessageError } from "../errors.ts";
import { check, parseJson } from "../protocol/codec.ts";
import type { BudgetSnapshot } from "../scheduling/exact/budget-snapshot.ts";

/** Error texts for an invalid or missing field. */
function must(be: string) {
  return {
    error: ({ input }: { readonly input?: unknown }) =>
      input === undefined ? `is missing: it must be ${be}` : `must be ${be}`,
  };
}

const id = z.string(must("text")).min(1, "must not be empty");
const word = z
  .string(must("text"))
  .regex(/^[a-z][a-z_-]*$/, "must be a word in lower case, like ready, idle or active");
const amount = z.number(must("a number from 0")).min(0, must("a number from 0"));
const count = z.int(must("a whole number from 0")).min(0, must("a whole number from 0"));
const limit = z
  .int(must("a whole number from 0, or null for no limit"))
  .min(0, must("a whole number from 0, or null for no limit"))
  .nullable();
const counts = z.record(z.string(), count, must("an object of whole numbers by project"));

function list<Item extends z.ZodType>(item: Item, things: string) {
  return z.array(item, must(`a list of ${things}`));
}

const snapshotSchema = z.object(
  {
    projects: list(
      z.object(
        { id, creditWeight: amount, status: word, budgetLimit: limit, maxConcurrentAgents: count },
        must("an object"),
      ),
      "projects",
    ),
    tasks: list(
      z.object({ id, projectId: id, status: word, priority: z.number(must("a number")) }, must("an object")),
      "tasks",
    ),
    agents: list(z.object({ id, state: word }, must("an object")), "agents"),
    projectTokenUsage: counts,
    projectActiveAgentCounts: counts,
    tasksCompletedInWindow: counts,
    globalBudget: limit,
    globalTokensUsed: count,
  },
  must("an object"),
);

/**
 * @param place named in errors: `standard input:3`
 * @throws InvalidMessageError naming the place and the field
 */
export function parseSnapshot(bytes: Uint8Array, place: string): BudgetSnapshot {
  const parsed = parseJson(bytes);
  const checked = parsed.ok ? check(parsed.value, snapshotSchema) : parsed;
  if (!checked.ok) {
    const sentence = checked.message.replace(/^the message: /, "");
    const options = checked.field === undefined ? {} : { field: checked.field };
    throw new InvalidMessageError(`${place}: ${sentence}`, options);
  }
  // The parsed value instead of the schema's output, which drops a project called __proto__ from the counts.
  return (parsed as { readonly value: BudgetSnapshot }).value;
}
