// A process that runs one attempt with the exec handler, to be killed by a test. argv: the command.
// The process prints nothing; the test reads the files that the command writes.

import { execHandler } from "../../src/agent/exec.ts";

const [command] = process.argv.slice(2);
const task = {
  id: "t1",
  attempt: 1,
  kind: "k",
  project: "p",
  user: "u",
  attributes: {},
  bytes: () => new Uint8Array(),
};
await execHandler({ command })(task, { task, signal: new AbortController().signal });
