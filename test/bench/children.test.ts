// Signals stop all child processes of a benchmark.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { recordOf } from "../../bench/harness/coordinator.ts";
import { threadStates } from "../support/processes.ts";

/** Prints the process ids of three children, and rests. The second child ignores signals; the third outlives its
 *  parent. */
const program = `
import { spawn } from "node:child_process";
import { Children, stopAtSignals } from ${JSON.stringify(new URL("../../bench/harness/children.ts", import.meta.url).href)};

const rest = "setInterval(() => {}, 1000)";
const ignoresSignals = "process.on('SIGTERM', () => {}); process.on('SIGINT', () => {}); console.error('ready'); " + rest;
const children = new Children(() => undefined);
stopAtSignals(children);
const detached = spawn(process.execPath, ["-e", rest], { detached: true, stdio: "ignore" });
children.ownDetached(() => detached.pid);
const plain = children.start(process.execPath, ["-e", rest]);
const ignoring = children.start(process.execPath, ["-e", ignoresSignals], {
  onLine: () => console.log(JSON.stringify([plain.pid, ignoring.pid, detached.pid])),
});
`;

const isAlive = (pid: number) => threadStates(pid).some((state) => state !== "Z");

it.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s, when repeated, stops all children at once", async (signal, code) => {
  const parent = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: parent.stdout }), "line")) as [string];
  const pids = JSON.parse(line) as number[];
  expect(pids.map(isAlive)).toEqual([true, true, true]);
  parent.kill(signal);
  await expect.poll(() => pids.map(isAlive)[0], { timeout: 8_000 }).toBe(false);
  const ended = once(parent, "exit");
  parent.kill(signal); // ends without the second child
  expect(await ended).toEqual([code, null]);
  await expect.poll(() => pids.map(isAlive), { timeout: 8_000 }).toEqual([false, false, false]);
});

it("a coordinator's log may have lines of other programs", () => {
  expect(recordOf('{"msg":"leading"}')).toEqual({ msg: "leading" });
  const none = [recordOf("(node:1) Warning"), recordOf("null")];
  expect(none.map(({ msg }) => msg)).toEqual([undefined, undefined]);
});
