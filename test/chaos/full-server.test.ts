// Summaries of a server's log, and a real server that reaches its own bound and accepts messages again.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { swarmId } from "../../src/ids.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { complaintsIn, withoutDisk } from "./full-server.ts";
import { StreamBallast } from "./stream-ballast.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-full-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("keeps what a server complains of, each sort once", () => {
  const log = [
    "[7] 2026/11/23 17:00:00.000001 [INF] Server is ready",
    "[7] 2026/11/23 17:00:01.000001 [ERR] Error writing message 17: no space left on device",
    "[7] 2026/11/23 17:00:01.000002 [ERR] Error writing message 18: no space left on device",
    "[7] 2026/11/23 17:00:02.000001 [WRN] JetStream is shutting down",
  ];
  expect(complaintsIn(log.join("\n"))).toEqual([
    "[ERR] Error writing message 18: no space left on device",
    "[WRN] JetStream is shutting down",
  ]);
});

it("says that no disk was filled, and why", () => {
  expect(withoutDisk("mount: only root can do that")).toContain("(mount: only root can do that)");
});

it.each(natsServersFor("full server"))("nats-server $version is filled up to its bound", async ({ path }) => {
  const extraConfig = `jetstream { store_dir: ${JSON.stringify(join(folder, "js"))}, max_file_store: 8MB }`;
  const server = await startNatsServer({ binary: path, extraConfig });
  const transport = await connectNats({ urls: [server.url], name: "test" });
  const ballast = new StreamBallast(transport, swarmId("s"));
  try {
    expect(await ballast.fill()).toMatch(/insufficient|exceeded/);
    expect(await ballast.remove()).toBeUndefined();
    expect(await ballast.fill()).toMatch(/insufficient|exceeded/);
  } finally {
    await transport.close();
    await server.stop();
  }
});
