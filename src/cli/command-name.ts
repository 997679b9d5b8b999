// What people type to run this command again: as it was run this time.

import { basename, relative } from "node:path";
import type { Shell } from "./shell.ts";

/** `npx waggle` where npm started us, `node bin/waggle.js` where Node did, else `waggle`. */
export function commandName({ env, script, cwd }: Shell): string {
  if (env["npm_lifecycle_event"] !== undefined || env["npm_command"] !== undefined) return "npx waggle";
  if (basename(script) !== "waggle.js") return "waggle";
  const path = relative(cwd, script);
  return `node ${path.startsWith("..") ? script : path}`;
}
