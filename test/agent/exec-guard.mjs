// A process that runs one command as the exec handler does, to be killed by a test. argv: the command and its mark. The
// shells' standard error is the test's, and so stays open after the kill.

import { spawn } from "node:child_process";
import { markedCommand } from "../../src/agent/exec.ts";

const [command, mark] = process.argv.slice(2);
spawn("sh", ["-c", markedCommand, "sh", command, mark], {
  detached: true,
  stdio: ["pipe", "pipe", "inherit", "pipe", "pipe"],
});
