// A process that runs one attempt by the compiled exec handler, to be killed by a test.
// argv: the command. Prints nothing itself: what the command prints to files is what the test looks at.

import { execHandler } from "../../dist/src/agent/exec.js";

const [command] = process.argv.slice(2);
const task = { id: "t1", attempt: 1, kind: "k", project: "p", user: "u", bytes: () => new Uint8Array() };
await execHandler({ command })(task, { task, signal: new AbortController().signal });
