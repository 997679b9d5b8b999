// Outlives the driver for a moment, however the driver ended, and ends its remaining processes. Otherwise
// coordinators and servers would run on and slow down the next run. Ends only registered processes with an
// unchanged identity.

import { rmSync } from "node:fs";
import { type Reaped, startTimeOf } from "../reaper.ts";
import { unmount } from "../small-disk.ts";

const startTimeByPid = new Map<number, string>();
const folders: string[] = [];
const mounts: string[] = [];

process.on("message", (order: Reaped) => {
  if (order.type === "folder") folders.push(order.folder);
  else if (order.type === "mount") mounts.push(order.folder);
  else startTimeByPid.set(order.pid, order.startTime);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined); // the driver decides
process.once("disconnect", () => {
  for (const [pid, startTime] of startTimeByPid) if (startTimeOf(pid) === startTime) end(pid);
  // Finds nothing where the driver has unmounted already, which is harmless.
  for (const mount of mounts) unmount(mount);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
});

process.send?.("ready");

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // has just ended by itself
  }
}
