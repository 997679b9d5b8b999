// What bin/waggle.js loads: runs the process's own command line, then ends the process when everything
// written has left it.

import { run } from "./run.ts";
import { processShell, type Shell } from "./shell.ts";

const code = await run(process.argv.slice(2), processShell);
await Promise.all([written(processShell.stdout), written(processShell.stderr)]);
process.exit(code);

function written(stream: Shell["stdout"]): Promise<void> {
  return new Promise((resolve) => {
    stream.on("error", () => resolve()); // the reader is gone: there is nothing left to wait for
    stream.write("", () => resolve());
  });
}
