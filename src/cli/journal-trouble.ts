// Why a leader that is there may not answer: what is wrong with the journal's streams, as `waggle doctor` would say it.
// For verbs that were not answered.

import { findBroker } from "../broker/find-broker.ts";
import { UnreachableError, WaggleError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { inspectNatsStreams } from "../journal/nats.ts";
import { limits } from "../limits.ts";
import { connectionOf } from "./doctor-checks.ts";
import { checkStreams } from "./doctor-stream.ts";
import type { VerbContext } from "./verb.ts";

/** Runs `question`; where somebody was there to answer and did not, its error says what is wrong with the journal, too.
 *  @throws what `question` throws */
export async function tellingTrouble<Value>(
  context: VerbContext,
  question: () => Promise<Value>,
): Promise<Value> {
  try {
    return await question();
  } catch (error) {
    if (!(error instanceof WaggleError) || error.name !== UnreachableError.name) throw error;
    const trouble = await journalTrouble(context);
    throw trouble === undefined
      ? error
      : new UnreachableError(`${error.message}. ${trouble}`, { cause: error });
  }
}

/** Undefined where nothing is, or it cannot be looked at in a moment. */
async function journalTrouble(context: VerbContext): Promise<string | undefined> {
  const { settings, shell, signal: interrupted } = context;
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(limits.journalAskMs)]);
  try {
    const broker = await findBroker({ mode: "find-only", ...settings, env: shell.env });
    if (broker.kind === "development") return undefined;
    const connection = { ...connectionOf(broker, context), signal };
    const found = await inspectNatsStreams({ connection, swarm: swarmId(settings.swarm), signal });
    const trouble = [...checkStreams(found)].find(({ status }) => status === "fail");
    return trouble && `${trouble.found}${trouble.advice === undefined ? "" : `; ${trouble.advice}`}`;
  } catch {
    interrupted.throwIfAborted();
    return undefined; // what was asked failed, which is said all the same
  }
}
