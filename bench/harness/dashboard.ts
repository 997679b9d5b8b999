// `waggle dashboard` of the present checkout as a child process.

import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Children } from "./children.ts";

const LOOK_MS = 20;
const READY_MS = 30_000;

export interface StartedDashboard {
  readonly dashboard: ChildProcess;
  /** Signs in. */
  readonly url: string;
}

/** @param where flags that name the server and the swarm · folder: for the log */
export async function startDashboard(
  children: Children,
  { folder, where }: { readonly folder: string; readonly where: readonly string[] },
): Promise<StartedDashboard> {
  const log = join(folder, "dashboard.log");
  const launcher = fileURLToPath(new URL("../../bin/waggle.js", import.meta.url));
  const args = [launcher, "dashboard", "--port", "0", ...where];
  const dashboard = children.start(process.execPath, args, { log, cwd: folder });
  for (let waitedMs = 0; waitedMs < READY_MS; waitedMs += LOOK_MS) {
    const [url] = /http:\/\/127\.0\.0\.1:\d+\/enter\/\S+/.exec(readFileSync(log, "utf8")) ?? [];
    if (url !== undefined) return { dashboard, url };
    await delay(LOOK_MS);
  }
  throw new Error(`the dashboard did not start: ${readFileSync(log, "utf8")}`);
}
