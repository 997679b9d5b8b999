// A nats-server with a configuration that `waggle auth` wrote. Other configurations: nats-server.ts.

import { spawn } from "node:child_process";
import { once } from "node:events";

/** Resolves when the server is ready. @returns a function that kills the server */
export async function startProcess(binary: string, config: string): Promise<() => Promise<void>> {
  const server = spawn(binary, ["--config", config], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  await new Promise<void>((resolve, reject) => {
    server.once("exit", () => reject(new Error(`the server ended: ${said}`)));
    server.stderr.on("data", (bytes) => {
      said += String(bytes);
      if (said.includes("Server is ready")) resolve();
    });
  });
  return async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill("SIGKILL");
    await once(server, "exit");
  };
}
