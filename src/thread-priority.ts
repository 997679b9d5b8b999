// The priority of threads that work beside the threads which serve.

import { setPriority } from "node:os";

/** Lowers the priority of the calling thread: on busy cores other threads go first. Linux
 *  has a priority for each thread, and 0 names the calling thread. Elsewhere 0 names the process: nothing changes.
 *  @param nice 1 to 19; a thread of 10 gets about a tenth, a thread of 19 about a hundredth of a busy core */
export function lowerThreadPriority(nice: number): void {
  if (process.platform === "linux") setPriority(0, nice);
}
