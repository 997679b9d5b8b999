// A nats-server with a configuration that `waggle auth` wrote, and its log. Other configurations: nats-server.ts.

import { spawn } from "node:child_process";
import { once } from "node:events";

export interface SecuredServer {
  /** All that the server logged so far. */
  log(): string;
  /** Kills the server. Idempotent. */
  stop(): Promise<void>;
}

/** Resolves when the server is ready. @throws Error with its log if the server ends before */
export async function startProcess(binary: string, config: string): Promise<SecuredServer> {
  const server = spawn(binary, ["--config", config], { stdio: ["ignore", "ignore", "pipe"] });
  const killWithUs = () => server.kill("SIGKILL");
  process.once("exit", killWithUs);
  server.once("exit", () => process.off("exit", killWithUs));
  let said = "";
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", () => reject(new Error(`the server ended: ${said}`)));
    server.stderr.on("data", (bytes) => {
      said += String(bytes);
      if (said.includes("Server is ready")) resolve();
    });
  });
  return {
    log: () => said,
    stop: async () => {
      if (server.exitCode !== null || server.signalCode !== null) return;
      server.kill("SIGKILL");
      await once(server, "exit");
    },
  };
}
