// Credentials that expire (`auth add --ttl`, mode jwt): the agent, the coordinator, and waiting programs of a submitter
// end with WAGGLE_UNAUTHORIZED within a minute. On each nats-server of WAGGLE_NATS_SERVERS and the PATH, at once.

import { expect, it } from "vitest";
import { natsServersFor } from "../support/nats-server.ts";
import { SecuredSwarm } from "./secured-swarm.ts";

/** Long enough to begin everything on a busy machine. */
const ttlMs = 25_000;
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
      const submit = secured.begin("web", "submit", "--kind", "slow", "--text", "x", "--wait");
      expect(Date.now()).toBeLessThan(expiresAt);

      for (const { ended } of [agent, coordinator, submit]) {
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
