// A server that is stopped (SIGSTOP) keeps its connections open and silent. Clients leave it for a live server
// of the cluster by themselves, before a leader would declare an agent lost.

import { expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { connectNats } from "../../src/transport/nats.ts";
import type { Transport } from "../../src/transport/transport.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";

it.each(natsServersFor("stopped servers").slice(0, 1))(
  "a stopped nats-server $version is left before an agent would be lost",
  async ({ path }) => {
    const names = ["s1", "s2"];
    const servers = await Promise.all(
      names.map((name) => startNatsServer({ binary: path, extraConfig: `server_name: ${name}` })),
    );
    const transport = await connectNats({ urls: servers.map(({ url }) => url), name: "stopped" });
    try {
      const stopped = transport.server().name;
      const isBack = connectedAgain(transport);
      const stoppedAt = performance.now();
      await servers[names.indexOf(stopped)]?.kill("SIGSTOP");
      await isBack;
      expect(performance.now() - stoppedAt).toBeLessThan(limits.agentLostMs);
      expect(transport.server().name).not.toBe(stopped);
    } finally {
      await transport.close();
      await Promise.all(servers.map((server) => server.stop()));
    }
  },
);

function connectedAgain(transport: Transport): Promise<void> {
  return new Promise((resolve) => {
    transport.onStatus((status) => {
      if (status === "connected") resolve();
    });
  });
}
