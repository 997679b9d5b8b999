// Credentials that expire (`auth add --ttl`, mode jwt): the agent, the coordinator, waiting programs of a submitter,
// the dashboard, and whatever serves the swarm to others, end with WAGGLE_UNAUTHORIZED within a minute. On each
// nats-server of WAGGLE_NATS_SERVERS and the PATH, at once.

import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { natsServersFor } from "../support/nats-server.ts";
import { type Running, SecuredSwarm } from "./secured-swarm.ts";

/** Long enough to begin everything on a busy machine. */
const ttlMs = 60_000;
const endsWithinMs = 60_000;

it.concurrent.each(natsServersFor("expired credentials"))(
  "on nats-server $version everything ends whose credentials expire",
  { timeout: ttlMs + 2 * endsWithinMs },
  async ({ path }) => {
    const secured = await SecuredSwarm.start(path, "jwt", []);
    try {
      const expiresAt = Date.now() + ttlMs;
      secured.add({ name: "gpu", role: "agent", group: "gpu", ttlMs });
      secured.add({ name: "web", role: "submitter", project: "web", ttlMs });
      secured.add({ name: "second", role: "coordinator", ttlMs });
      secured.add({ name: "bridge", role: "agent", group: "bridge", calls: ["agents.prompt.>"], ttlMs });
      secured.add({
        ...{ name: "server", role: "submitter", project: "web", ttlMs },
        serves: ["svc.slow", "agents.prompt.waggle.ann.slow"],
      });
      secured.add({ name: "auditor", role: "auditor", ttlMs });
      const coordinator = secured.begin("second", "up", "--no-dashboard");
      await coordinator.says("leading");
      const agent = secured.begin("gpu", "agent", "--group", "gpu", "--kind", "slow", "--exec", "sleep 120");
      await agent.says("joined");
      const program = await secured.connect("web");
      const handle = await program.submit({ id: "t1", kind: "slow" });
      const result = handle.result().catch((error: unknown) => error);
      const reading = (async () => {
        for await (const _ of program.events({ project: "web", follow: true }));
      })().catch((error: unknown) => error);
      const adapters = await beginAdapters(secured);
      const submit = secured.begin("web", "submit", "--kind", "slow", "--text", "x", "--wait");
      expect(Date.now()).toBeLessThan(expiresAt);

      for (const { ended } of [agent, coordinator, submit, ...adapters]) {
        const { code, stdout, stderr } = await ended;
        expect({ code, said: stdout + stderr }).toMatchObject({
          code: 5,
          said: expect.stringContaining("WAGGLE_UNAUTHORIZED"),
        });
      }
      for (const waiting of [result, reading])
        expect(await waiting).toMatchObject({ code: "WAGGLE_UNAUTHORIZED" });
      await expect(program.project("web").status()).rejects.toMatchObject({ code: "WAGGLE_UNAUTHORIZED" });
      await expect(program.submit({ kind: "slow" })).rejects.toMatchObject({ code: "WAGGLE_UNAUTHORIZED" });
      expect(Date.now() - expiresAt).toBeLessThan(endsWithinMs);
      expect((await secured.run("web", "status")).stderr).toContain("refused the credentials");
      await program.close();
    } finally {
      await secured.stop();
    }
  },
);

/** All that serves the swarm to people and to other programs. */
async function beginAdapters(secured: SecuredSwarm): Promise<Running[]> {
  const slow = ["--kind", "slow"];
  const dashboard = secured.begin("auditor", "dashboard", "--port", "0", "--read-only");
  const nats = secured.begin("server", "serve", "nats", ...slow, "--subject", "svc.slow");
  const synadia = secured.begin("server", "serve", "synadia", ...slow, "--owner", "ann");
  const a2a = secured.begin("web", "serve", "a2a", ...slow, "--listen", "127.0.0.1:0");
  const bridge = secured.begin("bridge", "bridge", "synadia", "--group", "bridge");
  const input = new PassThrough();
  const mcp = secured.beginWith(input, "auditor", "mcp");
  const send = (request: object) => input.write(`${JSON.stringify({ jsonrpc: "2.0", ...request })}\n`);
  const client = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  send({ id: 1, method: "initialize", params: client });
  send({ method: "notifications/initialized" });
  send({ id: 2, method: "tools/call", params: { name: "status", arguments: {} } });
  await dashboard.says("/enter/");
  for (const [running, begun] of [
    [nats, "serving slow"],
    [synadia, "serving slow"],
    [a2a, "serving slow"],
    [bridge, "looking for agents"],
    [mcp, /"id":2\b/],
  ] as const)
    await running.says(begun);
  return [dashboard, nats, synadia, a2a, bridge, mcp];
}
