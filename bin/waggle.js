#!/usr/bin/env node
// The command `waggle`: starts the compiled command line. Committed, not built: npm links the command before dist
// exists. Plain JavaScript without dependencies, so that an old Node can print the error.

import { existsSync } from "node:fs";
import nodeModule from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const usage = 2;

const [major, minor] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`waggle needs Node 20.19 or newer; this is ${process.versions.node}.`);
  process.exit(usage);
}

const compiled = new URL("../dist/src/cli/main.js", import.meta.url);
if (!existsSync(compiled)) {
  const folder = fileURLToPath(new URL("..", import.meta.url));
  console.error(`waggle is not built: dist is missing. Run npm run build in ${folder}.`);
  process.exit(usage);
}

// Node 22.1 and newer keep compiled code, which makes the next start faster. In the user's own folder: code in a
// shared one, such as /tmp, could be another user's.
const { HOME, XDG_CACHE_HOME } = process.env;
const caches = XDG_CACHE_HOME || (HOME && join(HOME, ".cache"));
if (caches) nodeModule.enableCompileCache?.(join(caches, "waggle"));

await import(compiled.href); // runs the command line, then ends the process
