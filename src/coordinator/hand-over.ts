// Who may lead next when the leader steps down for another: one of those that stand by, as far as they were heard.

import type { CodedError } from "../protocol/schemas.ts";
import { codedError } from "./answers.ts";

/** Why nobody can take over, or not the one that is named; undefined when somebody can.
 *  @param standbys ids of the coordinators that were heard within T */
export function whyNotTo(to: string | undefined, standbys: readonly string[]): CodedError | undefined {
  if (standbys.length === 0) {
    const sentence =
      "no other coordinator stands by: start one (`waggle up`) on the same server and swarm, with its journal in " +
      "JetStream, and try again";
    return codedError("WAGGLE_NO_STANDBY", sentence);
  }
  if (to === undefined || standbys.includes(to)) return undefined;
  const sentence = `no coordinator ${to} stands by; there ${standbys.length === 1 ? "is" : "are"} ${standbys.join(", ")}`;
  return codedError("WAGGLE_NO_STANDBY", sentence, { field: "to" });
}
