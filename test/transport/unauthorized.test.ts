// Credentials that a real server accepted, and refuses after a reload: the agent and the connection end with
// WAGGLE_UNAUTHORIZED within a minute. A user that is back in time loses nothing.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { startAgent } from "../../src/agent/agent.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { silentLogger } from "../support/swarm.ts";

const withinMs = 60_000;
const swarm = swarmId("guarded");

/** A coordinator on a server with password users, both of the test's own. */
interface Guarded {
  readonly server: RunningNatsServer;
  readonly transport: NatsTransport;
  /** Writes the server's users. The server reads them at SIGHUP. */
  permit(...users: readonly string[]): void;
  agentOf(user: string): ReturnType<typeof startAgent>;
}

async function guarded(binary: string, atEnd: (end: () => Promise<void>) => void): Promise<Guarded> {
  const folder = mkdtempSync(join(tmpdir(), "waggle-users-"));
  const permit = (...users: readonly string[]) =>
    writeFileSync(
      join(folder, "users.conf"),
      `users = [${users.map((user) => `{ user: ${user}, password: pw }`).join(", ")}]\n`,
    );
  permit("lead", "west", "east");
  const server = await startNatsServer({
    binary,
    extraConfig: `authorization { include "${join("..", basename(folder), "users.conf")}" }`,
  });
  const addressOf = (user: string) => ({
    urls: [server.url],
    credentials: { kind: "password", user, password: "pw" } as const,
  });
  const transport = await connectNats({ ...addressOf("lead"), name: "lead" });
  const journal = new MemoryJournal(new MemoryJournalStore({ clock: systemClock }));
  const parts = { transport, journal, clock: systemClock, random: systemRandom, logger: silentLogger };
  const coordinator = await startCoordinator({ id: "c1", swarm, ...parts });
  await coordinator.whenLeading();
  atEnd(async () => {
    await coordinator.stop();
    await transport.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  const agentOf = (user: string) =>
    startAgent(
      { id: user, kinds: ["count"], maxConcurrent: 1, group: user, handler: () => "" },
      { swarm, connection: { kind: "server", server: addressOf(user) }, logger: silentLogger },
    );
  return { server, transport, permit, agentOf };
}

// Concurrent: each waits until refusals count as final.
describe.concurrent.each(natsServersFor("unauthorized"))("on nats-server $version", ({ path: binary }) => {
  it("a removed user's agent ends, and other users go on", { timeout: 2 * withinMs }, async ({
    onTestFinished,
  }) => {
    const { server, transport, permit, agentOf } = await guarded(binary, onTestFinished);
    const [west, east] = [await agentOf("west"), await agentOf("east")];
    const removedAt = performance.now();
    permit("lead", "east");
    await server.kill("SIGHUP");
    const error = await west.closed;
    expect(error).toMatchObject({ code: "WAGGLE_UNAUTHORIZED" });
    expect(error?.message).toMatch(/revoked or have expired/);
    expect(performance.now() - removedAt).toBeLessThan(withinMs);
    expect(transport.status()).toBe("connected");
    await east.drain();
    expect(await east.closed).toBeUndefined();
  });

  it("a coordinator's connection ends with the reason", { timeout: 2 * withinMs }, async ({
    onTestFinished,
  }) => {
    const { server, transport, permit } = await guarded(binary, onTestFinished);
    const closed = new Promise<void>((resolve) => {
      transport.onStatus((status) => status === "closed" && resolve());
    });
    permit("west");
    await server.kill("SIGHUP");
    await closed;
    expect(transport.closedBy).toMatchObject({ code: "WAGGLE_UNAUTHORIZED" });
  });

  it("a user that is back in time is connected again", { timeout: withinMs }, async ({ onTestFinished }) => {
    const { server, transport, permit } = await guarded(binary, onTestFinished);
    const back = new Promise<void>((resolve) => {
      transport.onStatus((status) => status === "connected" && resolve());
    });
    const lost = new Promise<void>((resolve) => {
      transport.onStatus((status) => status === "reconnecting" && resolve());
    });
    permit("west");
    await server.kill("SIGHUP");
    await lost;
    permit("lead", "west");
    await server.kill("SIGHUP");
    await back;
    expect(transport.closedBy).toBeUndefined();
    expect(limits.unauthorizedMs).toBeLessThan(withinMs / 2);
  });
});
