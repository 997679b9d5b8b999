// Asks once which agents of the Synadia Agent Protocol there are.

import type { Clock } from "../../clock.ts";
import { limits } from "../../limits.ts";
import type { Answer, RequestWire } from "../nats-service/nats.ts";
import { discoverySubject, type ForeignAgent, readDescription } from "./messages.ts";

export interface FoundAgents {
  /** One for each instance. */
  readonly agents: readonly ForeignAgent[];
  /** Why other answers are no agents. */
  readonly leftOut: readonly string[];
}

/** Collects answers for `limits.discoveryMs`; ends earlier when nobody listens.
 *  @throws ForbiddenError when the server permits no discovery; as `RequestWire.ask` */
export async function findAgents(wire: Pick<RequestWire, "ask">, clock: Clock): Promise<FoundAgents> {
  const agentById = new Map<string, ForeignAgent>();
  const leftOut: string[] = [];
  await new Promise<void>((resolve, reject) => {
    const end = (error?: Error) => {
      cancel();
      answers.unsubscribe();
      if (error === undefined) resolve();
      else reject(error);
    };
    const cancel = clock.after(limits.discoveryMs, end);
    const take = (answer: Answer) => {
      if (answer.isNoResponders) return end();
      const read = readDescription(answer.data);
      if (read.ok) agentById.set(read.value.instance, read.value);
      else leftOut.push(read.message);
    };
    const answers = wire.ask(discoverySubject, new Uint8Array(), take, end);
  });
  return { agents: [...agentById.values()], leftOut };
}
