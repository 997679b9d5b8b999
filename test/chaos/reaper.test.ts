// The remaining processes of a killed driver are ended, and no other processes.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { type Reaped, startTimeOf } from "./reaper.ts";

const main = fileURLToPath(new URL("./processes/reaper-main.ts", import.meta.url));

function aSleeper(): ChildProcess & { readonly pid: number } {
  const child = spawn("sleep", ["600"]);
  onTestFinished(() => void child.kill("SIGKILL"));
  return child as ChildProcess & { readonly pid: number };
}

it("ends the registered processes, removes the folder, and spares a reused pid", async () => {
  const [minded, another] = [aSleeper(), aSleeper()];
  const folder = mkdtempSync(join(tmpdir(), "waggle-reaper-"));
  const reaper = fork(main, { execArgv: ["--import", "tsx"] });
  await once(reaper, "message");
  const sendOrder = (order: Reaped) => reaper.send(order);
  sendOrder({ type: "process", pid: minded.pid, startTime: startTimeOf(minded.pid) ?? "" });
  sendOrder({ type: "process", pid: another.pid, startTime: "1" });
  sendOrder({ type: "folder", folder });
  const ends = Promise.all([once(minded, "exit"), once(reaper, "exit")]);
  reaper.disconnect(); // like a kill -9 of the driver
  const [[, signal]] = await ends;
  expect(signal).toBe("SIGKILL");
  expect(another.exitCode ?? another.signalCode).toBeNull();
  expect(existsSync(folder)).toBe(false);
});
