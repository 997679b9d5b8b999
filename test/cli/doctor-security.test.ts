// `waggle doctor`, section security: on real servers without a login, with one user for everything, and with the
// credentials of `waggle auth`.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { freePort } from "../../src/broker/free-port.ts";
import { findNamedServer } from "../../src/broker/named-server.ts";
import type { Check } from "../../src/cli/doctor/check.ts";
import { checkAdvisories } from "../../src/cli/doctor/security.ts";
import { loadSettings } from "../../src/config/settings.ts";
import { openNatsConnection } from "../../src/transport/nats.ts";
import { natsServersFor, startNatsServer } from "../support/nats-server.ts";
import { startProcess } from "../support/secured-server.ts";
import { aShell, runIn } from "./shell.ts";

const [server] = natsServersFor("doctor on a server's protection");

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

const securityOf = (cwd: string, ...flags: string[]) => checksOf("security", cwd, ...flags);

async function checksOf(wanted: string, cwd: string, ...flags: string[]): Promise<string[]> {
  const { stdout } = await runIn(aShell({ cwd }), "doctor", "--json", ...flags);
  const checks = stdout.split("\n").filter((line) => line !== "");
  return checks
    .map((line) => JSON.parse(line) as Check)
    .filter(({ name }) => name === wanted)
    .map(({ status, found }) => `${status} ${found}`);
}

describe.runIf(server !== undefined)("doctor", () => {
  const binary = server?.path ?? "";

  it("warns of a server without a login on loopback, and fails on all interfaces", async () => {
    const near = await startNatsServer({ binary, jetstream: true });
    ended.push(() => near.stop());
    expect(await securityOf(tmpdir(), "--nats", near.url)).toEqual([
      expect.stringMatching(/^warn the server lets in everybody/),
      expect.stringMatching(/^ok no TLS, but only this machine/),
      expect.stringMatching(
        /^warn the user reaches more .* assignments of all agents, answers .* all messages .* all streams/,
      ),
      expect.stringMatching(/no advisory|lacks fixes/),
    ]);

    const open = await startNatsServer({ binary, jetstream: true, extraConfig: "host: 0.0.0.0" });
    ended.push(() => open.stop());
    expect(await securityOf(tmpdir(), "--nats", open.url)).toEqual([
      expect.stringMatching(/^fail the server lets in everybody/),
      expect.stringMatching(/^fail no TLS/),
      expect.stringMatching(/^fail the user reaches more/),
      expect.stringMatching(/no advisory|^fail .* lacks fixes/),
    ]);
  });

  it("finds nothing with credentials of waggle auth, and names the reach of a coordinator", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "waggle-doctor-"));
    ended.push(() => rmSync(cwd, { recursive: true, force: true }));
    const port = String(await freePort());
    expect(await runIn(aShell({ cwd }), "auth", "init", "--port", port)).toMatchObject({ code: 0 });
    expect(await runIn(aShell({ cwd }), "auth", "add", "auditor")).toMatchObject({ code: 0 });
    ended.push((await startProcess(binary, join(cwd, ".waggle/auth/nats-server.conf"))).stop);

    for (const name of ["coordinator", "auditor"]) {
      const config = join(cwd, ".waggle/auth/credentials/default", name, "waggle.config.json");
      expect(await securityOf(cwd, "--config", config)).toEqual([
        "ok the server refuses clients without a login",
        "ok the connection is encrypted (TLS)",
        name === "coordinator"
          ? "ok this user reaches only its own traffic; the user reaches all streams of the account, as a coordinator must"
          : "ok this user reaches only its own traffic",
        expect.stringMatching(/no advisory|lacks fixes/),
      ]);
      expect(await checksOf("streams", cwd, "--config", config)).toEqual([
        name === "coordinator"
          ? "warn this swarm has no journal yet"
          : expect.stringMatching(/^warn not examined: the server does not permit this user/),
      ]);
    }
  });
});

describe.runIf(server !== undefined)("doctor in an account that others use", () => {
  it("names their streams, which a coordinator reaches, and none to an auditor", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "waggle-doctor-"));
    ended.push(() => rmSync(cwd, { recursive: true, force: true }));
    expect(await runIn(aShell({ cwd }), "auth", "init", "--port", String(await freePort()))).toMatchObject({
      code: 0,
    });
    expect(await runIn(aShell({ cwd }), "auth", "add", "auditor")).toMatchObject({ code: 0 });
    ended.push((await startProcess(server?.path ?? "", join(cwd, ".waggle/auth/nats-server.conf"))).stop);
    const configOf = (name: string) =>
      join(cwd, ".waggle/auth/credentials/default", name, "waggle.config.json");
    const holder = loadSettings({ flags: {}, env: {}, cwd: dirname(configOf("coordinator")) });
    const named = await findNamedServer({ ...holder, env: {} });
    if (named === undefined) throw new Error("the configuration names no server");
    const connection = await openNatsConnection({
      ...named.address,
      inboxPrefix: "_INBOX.coordinator",
      name: "t",
    });
    const made = await connection.request(
      "$JS.API.STREAM.CREATE.ORDERS",
      JSON.stringify({ name: "ORDERS", subjects: ["orders.>"], storage: "memory" }),
    );
    expect(made.json()).toMatchObject({ config: { name: "ORDERS" } });
    await connection.close();
    const reachOf = async (name: string) => (await securityOf(cwd, "--config", configOf(name)))[2];
    expect(await reachOf("coordinator")).toBe(
      "warn the user reaches more than the role needs: streams of other programs (ORDERS)",
    );
    expect(await reachOf("auditor")).toBe("ok this user reaches only its own traffic");
    // The configuration of an auditor, with the key of a coordinator.
    const key = ["--nkey", join(dirname(configOf("coordinator")), "coordinator.nk")];
    const wrong = await securityOf(
      cwd,
      "--config",
      configOf("auditor"),
      ...key,
      "--inbox-prefix",
      "_INBOX.coordinator",
    );
    expect(wrong[2]).toMatch(/^warn .*streams of other programs/);
  });
});

it.each([
  ["2.9.10", "warn", /CVE-2023-47090.*CVE-2025-30215.*2026-16/],
  ["2.10.27", "warn", /lacks fixes: 2026-16 .*2026-18/],
  ["2.11.15", "warn", /2026-18/],
  ["2.11.16", "ok", /no advisory known/],
  ["2.12.6", "warn", /2026-18/],
  ["2.13.0", "warn", /2026-18/],
  ["2.15.1", "ok", /no advisory known/],
])("knows the advisories for nats-server %s", (version, status, found) => {
  const check = checkAdvisories({ version }, "warn");
  expect(check.status).toBe(status);
  expect(check.found).toMatch(found);
});
