// Priority of a thread that works beside the thread that schedules.

import { getPriority, setPriority } from "node:os";

/** Lowers the priority of the calling thread, where the system has a priority for each thread. Linux does, and 0 names
 *  the calling thread there. Elsewhere 0 names the whole process.
 *  @param niceness from 0, the usual priority, to 19, the lowest; a thread that is lower already stays there */
export function yieldToOthers(niceness: number): void {
  if (process.platform === "linux") setPriority(0, Math.max(getPriority(0), niceness));
}
