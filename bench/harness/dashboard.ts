// `waggle dashboard` of the present checkout as a child process, and a swarm to look at with it.

import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect, type Swarm } from "waggledance";
import { findNatsServers, startNatsServer } from "../../test/support/nats-server.ts";
import { Children, stopAtSignals } from "./children.ts";
import { startCoordinator } from "./coordinator.ts";

const LOOK_MS = 20;
const READY_MS = 30_000;

interface StartedDashboard {
  readonly dashboard: ChildProcess;
  /** Signs in. */
  readonly url: string;
}

/** @param where flags that name the server and the swarm · folder: for the log */
async function startDashboard(
  children: Children,
  { folder, where }: { readonly folder: string; readonly where: readonly string[] },
): Promise<StartedDashboard> {
  const log = join(folder, "dashboard.log");
  const launcher = fileURLToPath(new URL("../../bin/waggle.js", import.meta.url));
  const args = [launcher, "dashboard", "--port", "0", ...where];
  const dashboard = children.start(process.execPath, args, { log, cwd: folder });
  for (let waitedMs = 0; waitedMs < READY_MS; waitedMs += LOOK_MS) {
    const [url] = /http:\/\/127\.0\.0\.1:\d+\/enter\/\S+/.exec(readFileSync(log, "utf8")) ?? [];
    if (url !== undefined) return { dashboard, url };
    await delay(LOOK_MS);
  }
  throw new Error(`the dashboard did not start: ${readFileSync(log, "utf8")}`);
}

export interface WatchedSwarm extends StartedDashboard {
  readonly coordinator: ChildProcess;
  readonly swarm: Swarm;
  stop(): Promise<void>;
}

/** A server, a coordinator, agents and a dashboard, each a process. @param agents name of the agents' process
 *  @throws Error without a nats-server */
export async function startWatchedSwarm(agents: string): Promise<WatchedSwarm> {
  const binary = findNatsServers()[0]?.path;
  if (binary === undefined) throw new Error("no nats-server on the PATH: install one first");
  const children = new Children((sentence) => console.error(`! ${sentence}`));
  const folder = mkdtempSync(join(tmpdir(), "waggle-bench-"));
  stopAtSignals(children, folder);
  const server = await startNatsServer({ binary, jetstream: true });
  const stop = async () => {
    await children.stopAll();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const where = ["--nats", server.url, "--swarm", "bench"];
    const coordinator = await startCoordinator(children, { upArguments: where });
    const started = await startDashboard(children, { folder, where });
    await children.startProcess(agents, server.url);
    const swarm = await connect({ nats: server.url, swarm: "bench" });
    return {
      ...{ ...started, coordinator, swarm },
      stop: async () => {
        await swarm.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
