// Every waiter for an accepted task learns the outcome. Covers all tasks, including unrecorded tasks, by the
// clients' counts.

import type { Violation } from "../../src/sim/history/violation.ts";
import type { ClientCounts } from "./swarm-processes.ts";

/** Checked after everything is healed and no wait is open. One finding for any number of waits; the leg's
 *  troubles list the waits and their answers. */
export function checkWaits({ accepted, ended }: ClientCounts): Violation[] {
  if (accepted === ended) return [];
  const sentence = `of ${accepted} accepted tasks, ${ended} waits ended with an outcome, and none is open`;
  return [{ promise: "P1", checker: "waits", sentence }];
}
