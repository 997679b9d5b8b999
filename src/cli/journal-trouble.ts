// Why a leader that is there may not answer: what is wrong with the journal's streams, as `waggle doctor` would say it.
// For verbs that were not answered.

import { findBroker } from "../broker/find-broker.ts";
import { UnreachableError, WaggleError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { inspectNatsStreams } from "../journal/nats.ts";
import { limits } from "../limits.ts";
import type { Check } from "./doctor/check.ts";
import { connectionOf } from "./doctor/checks.ts";
import { checkStreams } from "./doctor/stream.ts";
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
    const trouble = await journalTrouble(context, error.message);
    throw trouble === undefined
      ? error
      : new UnreachableError(`${error.message}. ${trouble}`, { cause: error });
  }
}

/** The first of what fails that `told` does not advise already, as a leader does whose journal is full. */
export function untoldTrouble(checks: Iterable<Check>, told: string): string | undefined {
  const trouble = [...checks].find((check) => check.status === "fail" && !isAdvised(check, told));
  return trouble && `${trouble.found}${trouble.advice === undefined ? "" : `; ${trouble.advice}`}`;
}

/** Sentences differ, the commands in them do not. */
function isAdvised({ advice = "" }: Check, told: string): boolean {
  const commands = advice.match(/`[^`]+`/g) ?? [];
  return commands.length > 0 && commands.every((command) => told.includes(command));
}

/** Undefined where nothing is, or it cannot be looked at in a moment. */
async function journalTrouble(context: VerbContext, told: string): Promise<string | undefined> {
  const { settings, shell, signal: interrupted } = context;
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(limits.journalAskMs)]);
  try {
    const broker = await findBroker({ mode: "find-only", ...settings, env: shell.env });
    if (broker.kind === "development") return undefined;
    const connection = { ...connectionOf(broker, context), signal };
    const found = await inspectNatsStreams({ connection, swarm: swarmId(settings.swarm), signal });
    return untoldTrouble(checkStreams(found), told);
  } catch {
    interrupted.throwIfAborted();
    return undefined; // what was asked failed, which is said all the same
  }
}
