// Outlives the driver for a moment, whatever ended that, and ends what it left running: coordinators and servers would
// go on for ever and take the machine's time from the run that goes on. Ends only processes that it was told of, and
// that are still the same.

import { rmSync } from "node:fs";
import { type Reaped, startTimeOf } from "../reaper.ts";
import { unmount } from "../small-disk.ts";

const startTimeByPid = new Map<number, string>();
const folders: string[] = [];
const mounts: string[] = [];

process.on("message", (told: Reaped) => {
  if (told.type === "folder") folders.push(told.folder);
  else if (told.type === "mount") mounts.push(told.folder);
  else startTimeByPid.set(told.pid, told.startTime);
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined); // the driver decides
process.once("disconnect", () => {
  for (const [pid, startTime] of startTimeByPid) if (startTimeOf(pid) === startTime) end(pid);
  // Where the driver has unmounted it, this finds nothing, which is as well.
  for (const mount of mounts) unmount(mount);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
});

process.send?.("ready");

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // it has just ended by itself
  }
}
