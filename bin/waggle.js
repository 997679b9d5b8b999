#!/usr/bin/env node
// The command `waggle`: starts the compiled command line. Committed, not built: npm links the command before dist
// exists. Plain JavaScript without dependencies, so that an old Node can print the error.

import { existsSync } from "node:fs";
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

await import(compiled.href); // runs the command line, then ends the process
