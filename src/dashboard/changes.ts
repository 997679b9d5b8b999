// Who performs the changes of a dashboard: a connection with the rights for changes, apart from the one that reads.
// Without such a connection every change is refused with a sentence. The page still shows its effect and the equal
// command.

import type { Swarm } from "../client/swarm.ts";
import { actionVerbs } from "./requests.ts";
import type { ActionVerb } from "./wire.ts";

export type ChangingSwarm = Pick<
  Swarm,
  "submit" | "cancel" | "retry" | "revoke" | "reschedule" | "drain" | "undrain" | "pause" | "resume"
>;

export interface Changes {
  /** Undefined: every verb has a refusal. */
  readonly swarm: ChangingSwarm | undefined;
  /** The verbs that are refused, each with a sentence for the user that says what to do. */
  readonly refusals: Readonly<Partial<Record<ActionVerb, string>>>;
}

/** @param refusal one or more sentences without the last period */
export function noChanges(refusal: string): Changes {
  return {
    swarm: undefined,
    refusals: Object.fromEntries(actionVerbs.map((verb) => [verb, refusal])),
  };
}
