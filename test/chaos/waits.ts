// Whoever waited for an accepted task hears how it ended. Of all tasks, also of those that a part does not record, by
// what clients counted.

import type { Violation } from "../../src/sim/history/violation.ts";
import type { ClientCounts } from "./swarm-processes.ts";

/** After everything was healed and no wait is open any more. One finding, however many waits: which they are, and what
 *  they were told, is among the leg's troubles. */
export function checkWaits({ accepted, ended }: ClientCounts): Violation[] {
  if (accepted === ended) return [];
  const sentence = `of ${accepted} accepted tasks, ${ended} waits ended with an outcome, and none is open`;
  return [{ promise: "P1", checker: "waits", sentence }];
}
