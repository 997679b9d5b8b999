// Answers to queries of foreign agents, such as "Delete 200 files? (yes/no)". Without a decision the answer is no.

import { execHandler } from "../../agent/exec.ts";
import { type HandlerContext, HandlerTask } from "../../agent/handler.ts";
import { messageOf } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { Query } from "./messages.ts";

/** Answers a query that comes while an attempt runs. Never rejects. */
export type Decide = (query: Query, task: HandlerTask, context: HandlerContext) => Promise<string>;

/** The answer that refuses. */
export const DENIED = "no";

export const denyAll: Decide = async () => DENIED;

/** Asks a command, through `sh -c`: the question on standard input, the answer on standard output, the task in the
 *  environment. Any exit code but 0, no answer and an answer above `limits.decisionCharactersMax` refuse. */
export function decideBy(command: string): Decide {
  const run = execHandler({ command });
  return async ({ prompt }, { id, attempt, maxAttempts, kind, project, user }, context) => {
    const question = new HandlerTask({
      ...{ task: id, attempt, maxAttempts, kind, project, user, payload: prompt },
    });
    try {
      const said = String(await run(question, context)).trim();
      if (said.length > limits.decisionCharactersMax) throw new Error("the answer is too long");
      return said === "" ? DENIED : said;
    } catch (error) {
      context.log(`the decision failed, so the answer is ${DENIED}: ${messageOf(error)}`);
      return DENIED;
    }
  };
}
