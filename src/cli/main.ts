// Entry point of bin/waggle.js: runs the process's command line, and ends the process after all output is written.

import { run } from "./run.ts";
import { processShell, type Shell } from "./shell.ts";

// Stacks name the source. Not always: reading the maps takes time.
if (process.argv.includes("--verbose")) process.setSourceMapsEnabled(true);
const code = await run(process.argv.slice(2), processShell);
await Promise.all([written(processShell.stdout), written(processShell.stderr)]);
process.exit(code);

function written(stream: Shell["stdout"]): Promise<void> {
  return new Promise((resolve) => {
    stream.on("error", () => resolve()); // the reader is gone: no output to wait for
    stream.write("", () => resolve());
  });
}
