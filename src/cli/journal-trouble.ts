// Why a leader does not answer: problems of the journal's streams, as in `waggle doctor`. For verbs without an
// answer.

import { findBroker } from "../broker/find-broker.ts";
import { UnreachableError, WaggleError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { connectionOf } from "./connection.ts";
import type { Check } from "./doctor/check.ts";
import type { VerbContext } from "./verb.ts";

/** Runs `question`. If a coordinator was present but did not answer, the error also names the journal's problem.
 *  @throws the errors of `question` */
export async function withJournalTrouble<Value>(
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

/** The first failed check whose advice is not yet part of `message`; a leader with a full journal already advises. */
export function unreportedTrouble(checks: Iterable<Check>, message: string): string | undefined {
  const trouble = [...checks].find((check) => check.status === "fail" && !isAdvised(check, message));
  return trouble && `${trouble.found}${trouble.advice === undefined ? "" : `; ${trouble.advice}`}`;
}

/** Compares commands, because sentences differ. */
function isAdvised({ advice = "" }: Check, message: string): boolean {
  const commands = advice.match(/`[^`]+`/g) ?? [];
  return commands.length > 0 && commands.every((command) => message.includes(command));
}

/** Undefined without a problem, or if the check takes too long. */
async function journalTrouble(context: VerbContext, message: string): Promise<string | undefined> {
  const { settings, shell, signal: interrupted } = context;
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(limits.journalAskMs)]);
  try {
    const broker = await findBroker({ mode: "find-only", ...settings, env: shell.env });
    if (broker.kind === "development") return undefined;
    const connection = connectionOf(broker, { ...context, signal }, "waggle doctor");
    // Loaded where a leader does not answer.
    const { inspectNatsStreams } = await import("../journal/nats.ts");
    const { checkStreams } = await import("./doctor/stream.ts");
    const found = await inspectNatsStreams({ connection, swarm: swarmId(settings.swarm), signal });
    return unreportedTrouble(checkStreams(found), message);
  } catch {
    interrupted.throwIfAborted();
    return undefined; // the error of `question` is thrown in any case
  }
}
