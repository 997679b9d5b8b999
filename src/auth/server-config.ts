// The configuration of a nats-server for a roster: TLS, a system account, and one account per swarm. In mode config the
// users are listed by their public keys; in mode jwt the accounts are JWTs, and users bring their own.

import { isIP } from "node:net";
import { swarmId } from "../ids.ts";
import { permissionsOf } from "../protocol/permissions.ts";
import type { AuthFolder } from "./auth-folder.ts";
import { accountJwt, operatorJwt, type SigningKeys, systemAccountJwt } from "./claims.ts";
import { permissionsText } from "./permissions-text.ts";
import { holderOf, isValid, type Roster, type SwarmRoster } from "./roster.ts";

/** @param now ms since the Unix epoch */
export function serverConfigText(roster: Roster, folder: AuthFolder, now: number): string {
  return [
    "# Written by `waggle auth`, which overwrites every change. Start: nats-server --config <this file>",
    `host: ${text(isLoopbackOnly(roster) ? "127.0.0.1" : "0.0.0.0")}`,
    `port: ${roster.port}`,
    `pid_file: ${text(folder.pidFile)}`,
    `jetstream { store_dir: ${text(folder.store)} }`,
    `tls { cert_file: ${text(folder.serverCertificate)}, key_file: ${text(folder.serverKey)}, timeout: 5 }`,
    ...(roster.mode === "jwt" ? resolverLines(roster, now) : accountLines(roster, now)),
    "",
  ].join("\n");
}

/** Whether every client is on the server's machine. */
export function isLoopbackOnly({ hosts }: Pick<Roster, "hosts">): boolean {
  return hosts.every(
    (host) => host === "localhost" || host === "::1" || (isIP(host) === 4 && /^127\./.test(host)),
  );
}

export function accountNameOf(swarm: string): string {
  return `WAGGLE_${swarm}`;
}

// --- mode config ------------------------------------------------------------------------------------

function accountLines(roster: Roster, now: number): string[] {
  return [
    "accounts {",
    `  SYS { users: [ { nkey: ${roster.system.publicKey} } ] }`,
    ...Object.entries(roster.swarms).flatMap(([swarm, of]) => swarmLines(swarm, of, now)),
    "}",
    "system_account: SYS",
  ];
}

function swarmLines(swarm: string, { credentials }: SwarmRoster, now: number): string[] {
  return [
    `  ${text(accountNameOf(swarm))} {`,
    "    jetstream: enabled",
    "    users: [",
    ...credentials
      .filter((credential) => isValid(credential, now))
      .map((credential) => {
        const permissions = permissionsText(permissionsOf(swarmId(swarm), holderOf(credential)));
        return `      { nkey: ${credential.publicKey}, permissions: ${permissions} } # ${credential.name}`;
      }),
    "    ]",
    "  }",
  ];
}

// --- mode jwt ---------------------------------------------------------------------------------------

function resolverLines(roster: Roster, now: number): string[] {
  const { operator, systemAccount } = roster;
  if (operator === undefined || systemAccount === undefined)
    throw new Error("a roster of mode jwt has an operator");
  const issuedAt = Math.floor(now / 1000);
  const accounts = Object.entries(roster.swarms).map(([swarm, { account, signingKeys, revokedAtByKey }]) => {
    if (account === undefined) throw new Error("a swarm of mode jwt has an account");
    const name = accountNameOf(swarm);
    const keys = signingKeys as SigningKeys;
    const of = { swarm: swarmId(swarm), name, account, signingKeys: keys, revokedAtByKey };
    return `  ${account.publicKey}: ${accountJwt(operator, of, issuedAt)}`;
  });
  return [
    `operator: ${operatorJwt(operator, systemAccount.publicKey, issuedAt)}`,
    `system_account: ${systemAccount.publicKey}`,
    "resolver: MEMORY",
    "resolver_preload: {",
    `  ${systemAccount.publicKey}: ${systemAccountJwt(operator, systemAccount, issuedAt)}`,
    ...accounts,
    "}",
  ];
}

function text(value: string): string {
  return JSON.stringify(value);
}
