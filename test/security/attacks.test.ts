// `npm run test:security`: the attacks of attacks.ts with generated credentials and configuration, in both modes, on
// each nats-server of WAGGLE_NATS_SERVERS and the PATH. No attack passes. The list is sharp: when an entry of the table
// of permissions becomes one token wider, or a list of permissions is left out, an attack passes.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuthFolder, authFolderOf } from "../../src/auth/auth-folder.ts";
import { addCredential, initAuth } from "../../src/auth/credentials.ts";
import { type AuthMode, authModes, holderOf, readRoster, swarmIn } from "../../src/auth/roster.ts";
import { freePort } from "../../src/broker/free-port.ts";
import { findNamedServer } from "../../src/broker/named-server.ts";
import { loadSettings } from "../../src/config/settings.ts";
import { swarmId } from "../../src/ids.ts";
import { type Permissions, permissionsOf } from "../../src/protocol/permissions.ts";
import { openNatsConnection, violationIn } from "../../src/transport/nats.ts";
import { natsServersFor } from "../support/nats-server.ts";
import { type SecuredServer, startProcess } from "../support/secured-server.ts";
import { allows } from "../support/subject-recorder.ts";
import { type Attack, type Attacker, attacks } from "./attacks.ts";

const attackers: readonly Attacker[] = [
  "coordinator",
  "operator",
  "auditor",
  "metrics",
  "a",
  "x-submitter",
  "x-owner",
];

/** The swarms acme and other, with a credential for each attacker. */
function makeCredentials(folder: AuthFolder, mode: AuthMode, port: number): void {
  const now = Date.now();
  const ttlMs = undefined;
  for (const swarm of ["acme", "other"]) {
    const isFirst = swarm === "acme";
    initAuth(folder, {
      swarm,
      mode: isFirst ? mode : undefined,
      hosts: [],
      port: isFirst ? port : undefined,
      now,
    });
    for (const role of ["coordinator", "operator", "auditor", "metrics"] as const)
      addCredential(folder, { swarm, name: role, role, ttlMs, now });
    for (const group of ["a", "b"])
      addCredential(folder, { swarm, name: group, role: "agent", group, ttlMs, now });
    for (const project of ["x", "y"])
      for (const role of ["submitter", "owner"] as const)
        addCredential(folder, { swarm, name: `${project}-${role}`, role, project, ttlMs, now });
  }
}

/** With the files that the holder gets. */
async function connectAs(folder: AuthFolder, name: string, swarm = "acme") {
  const cwd = join(folder.path, "credentials", swarm, name);
  const settings = loadSettings({ flags: {}, env: {}, cwd });
  const named = await findNamedServer({ ...settings, env: {} });
  if (named === undefined) throw new Error(`${cwd} names no server`);
  const { inboxPrefix = "" } = settings;
  return { inboxPrefix, connection: await openNatsConnection({ ...named.address, inboxPrefix, name }) };
}

/** The attacks that the server did not refuse. */
async function attempt(folder: AuthFolder, as: Attacker): Promise<Attack[]> {
  const { connection } = await connectAs(folder, as);
  const refused = new Set<string>();
  void (async () => {
    for await (const status of connection.status()) {
      const violation = status.type === "error" ? violationIn(status.error) : undefined;
      if (violation !== undefined) refused.add(`${violation.operation} ${violation.subject}`);
    }
  })();
  const tried = attacks.filter((attack) => attack.as === as);
  for (const { does, subject } of tried) {
    if (does === "publish") connection.publish(subject, "{}");
    else connection.subscribe(subject, { callback: () => undefined });
  }
  await connection.flush();
  await expect
    .poll(() => refused.size, { timeout: 3_000 })
    .toBe(tried.length)
    .catch(() => undefined);
  await connection.close();
  return tried.filter(({ does, subject }) => !refused.has(`${does} ${subject}`));
}

describe.each(natsServersFor("attacks on generated permissions"))("nats-server $version", ({ path }) => {
  describe.each(authModes)("in mode %s", (mode) => {
    let home: string;
    let folder: AuthFolder;
    let server: SecuredServer | undefined;

    beforeAll(async () => {
      home = mkdtempSync(join(tmpdir(), "waggle-attacks-"));
      folder = authFolderOf(home);
      makeCredentials(folder, mode, await freePort());
      server = await startProcess(path, folder.serverConfig);
    });
    afterAll(async () => {
      await server?.stop();
      rmSync(home, { recursive: true, force: true });
    });

    it.each(attackers)("stops every attack as %s", async (as) => {
      expect(await attempt(folder, as)).toEqual([]);
    });

    it("lets no credential into the account of another swarm", async () => {
      const inAcme = await connectAs(folder, "a");
      const inOther = await connectAs(folder, "a", "other");
      const heard: string[] = [];
      inOther.connection.subscribe(`${inOther.inboxPrefix}.k`, {
        callback: (_, { subject }) => void heard.push(subject),
      });
      inAcme.connection.subscribe(`${inAcme.inboxPrefix}.k`, { callback: () => undefined });
      const coordinator = await connectAs(folder, "coordinator");
      await inOther.connection.flush();
      coordinator.connection.publish(`${inAcme.inboxPrefix}.k`); // both accounts have this subject
      await coordinator.connection.flush();
      await inOther.connection.flush();
      expect(heard).toEqual([]);
      for (const { connection } of [inAcme, inOther, coordinator]) await connection.close();
    });

    it("lets in nobody without a credential, and nobody in plain text", async () => {
      const { nats = "" } = JSON.parse(
        readFileSync(join(folder.path, "credentials", "acme", "a", "waggle.config.json"), "utf8"),
      );
      const tls = { caFile: folder.authorityCertificate };
      const urls = [nats.replace("tls://", "nats://")];
      await expect(openNatsConnection({ urls, tls, name: "stranger" })).rejects.toThrow(
        "refused the credentials",
      );
      await expect(openNatsConnection({ urls: [nats], tls: {}, name: "trusting nobody" })).rejects.toThrow(
        /certificate/,
      );
    });
  });
});

describe("the list of attacks", () => {
  const home = mkdtempSync(join(tmpdir(), "waggle-attacks-"));
  mkdirSync(home, { recursive: true });
  const folder = authFolderOf(home);
  makeCredentials(folder, "config", 4222);
  const { credentials } = swarmIn(readRoster(folder), "acme");
  rmSync(home, { recursive: true, force: true });
  const permissionsByName = new Map(
    credentials.map((credential) => [credential.name, permissionsOf(swarmId("acme"), holderOf(credential))]),
  );

  it("has at least 80 attacks, and the table allows none", () => {
    expect(attacks.length).toBeGreaterThan(80);
    expect(attacks.filter((attack) => passes(attack, permissionsByName.get(attack.as)))).toEqual([]);
  });

  it.each(attackers)("notices whichever permission of %s becomes wider", (name) => {
    const permissions = permissionsByName.get(name);
    if (permissions === undefined) throw new Error(`no credential ${name}`);
    const own = attacks.filter(({ as }) => as === name);
    const unnoticed = widerThan(permissions)
      .filter(({ wider }) => !own.some((attack) => passes(attack, wider)))
      .map(({ what }) => what);
    expect(unnoticed).toEqual([]);
  });
});

function passes({ does, subject }: Attack, permissions: Permissions | undefined): boolean {
  return (permissions?.[does] ?? []).some((entry) => allows(entry, subject));
}

/** Each list left out, and each entry with one token more general, or with an open end. Of the permissions only the
 *  wider entry: the other entries allow no attack. */
function widerThan(permissions: Permissions): { readonly what: string; readonly wider: Permissions }[] {
  const alone = (does: Attack["does"], entry: string) => ({ ...none, [does]: [entry] });
  return (["publish", "subscribe"] as const).flatMap((does) => [
    { what: `no limit to ${does}`, wider: alone(does, ">") },
    ...permissions[does].flatMap((entry) =>
      generalised(entry).map((general) => ({
        what: `${does} ${entry} → ${general}`,
        wider: alone(does, general),
      })),
    ),
  ]);
}

const none: Permissions = { publish: [], subscribe: [] };

function generalised(entry: string): string[] {
  const tokens = entry.split(".");
  const single = tokens.flatMap((token, at) =>
    token === "*" || token === ">" ? [] : [tokens.with(at, "*").join(".")],
  );
  return entry.endsWith(">") ? single : [...single, [...tokens.slice(0, -1), ">"].join(".")];
}
