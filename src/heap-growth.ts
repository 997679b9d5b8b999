// How far the heap of a process grows between two collections of the whole heap.

import { setFlagsFromString } from "node:v8";
import { limits } from "./limits.ts";

/** Lets the heap of this process grow as far after a pause as without one.
 *
 *  After half a minute with little work, V8 makes the heap small. From then on it lets the heap grow by 30 % between
 *  two collections of the whole heap, until the memory in use has grown by 10 MB. Garbage of a coordinator never gets
 *  as far: it would collect its whole heap several times per second for as long as it works. Without a pause, V8 lets
 *  a heap grow to four times its live size at most.
 *
 *  The setting is of the whole process, so call this only in a process of Waggle's own. */
export function growHeapAfterPauses(): void {
  setFlagsFromString(`--heap-growing-percent=${limits.heapGrowingPercent}`);
}
