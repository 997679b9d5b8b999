// What `waggle auth` does: makes accounts and credentials, renews and revokes them, and rewrites the configuration of
// the server. Not here: reloading the server (reload.ts), and the leader's grants.

import { randomBytes } from "node:crypto";
import { InvalidConfigError, WaggleError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import { permissionsOf, type Role, roles } from "../protocol/permissions.ts";
import { type AuthFolder, isThere, makePrivateFolder, readSecret, writeSecret } from "./auth-folder.ts";
import { newAuthority, newServerCertificate } from "./certificates.ts";
import { credsText, type SigningKeys, userJwt } from "./claims.ts";
import { type Handed, removeCredentialFiles, writeCredentialFiles } from "./credential-files.ts";
import { writeDeclarations } from "./declarations.ts";
import { type Keys, newKeys } from "./nats.ts";
import {
  type AuthMode,
  type Credential,
  credentialIn,
  findRoster,
  hasServices,
  holderOf,
  isValid,
  type Roster,
  readRoster,
  type SwarmRoster,
  swarmIn,
  writeRoster,
} from "./roster.ts";
import { serverConfigText } from "./server-config.ts";

export interface InitOptions {
  readonly swarm: string;
  /** Undefined: as before, or config. */
  readonly mode: AuthMode | undefined;
  /** Empty: as before, or this machine alone. */
  readonly hosts: readonly string[];
  /** Undefined: as before, or 4222. */
  readonly port: number | undefined;
  readonly now: number;
}

/** Makes the folder, or adds a swarm to the folder. Keys and credentials that exist stay.
 *  @throws InvalidConfigError when the folder has another mode; WaggleError `WAGGLE_CONFLICT` for an existing swarm */
export function initAuth(folder: AuthFolder, options: InitOptions): Roster {
  const { swarm, now } = options;
  const before = findRoster(folder);
  if (before !== undefined) requireNewSwarm(before, options);
  makePrivateFolder(folder.path);
  makePrivateFolder(folder.store);
  const roster = before ?? newRoster(options);
  const changed: Roster = {
    ...roster,
    ...(options.hosts.length === 0 ? {} : { hosts: [...options.hosts] }),
    ...(options.port === undefined ? {} : { port: options.port }),
    swarms: { ...roster.swarms, [swarm]: newSwarm(roster.mode) },
  };
  writeCertificates(folder, changed, { hostsChanged: options.hosts.length > 0, now });
  save(folder, changed, now);
  return changed;
}

function requireNewSwarm(roster: Roster, { swarm, mode, hosts, port }: InitOptions): void {
  if (mode !== undefined && mode !== roster.mode)
    throw new InvalidConfigError(
      `the folder is in mode ${roster.mode}: use another --data-folder for mode ${mode}`,
      { field: "--mode" },
    );
  if (roster.swarms[swarm] === undefined) return;
  const hint = hosts.length > 0 || port !== undefined ? "; hosts and port stay as they are" : "";
  throw new WaggleError(
    "WAGGLE_CONFLICT",
    `the swarm ${swarm} has an account already${hint}: \`waggle auth add\` adds credentials, --swarm names another swarm`,
  );
}

function newRoster({ mode = "config", hosts, port }: InitOptions): Roster {
  return {
    version: 1,
    mode,
    hosts: hosts.length === 0 ? ["127.0.0.1", "localhost"] : [...hosts],
    port: port ?? 4222,
    system: newKeys("user"),
    ...(mode === "jwt" ? { operator: newKeys("operator"), systemAccount: newKeys("account") } : {}),
    swarms: {},
  };
}

const TOKEN_KEY_BYTES = 48;

function newSwarm(mode: AuthMode): SwarmRoster {
  const signingKeys = Object.fromEntries(roles.map((role) => [role, newKeys("account")])) as SigningKeys;
  return {
    tokenKey: randomBytes(TOKEN_KEY_BYTES).toString("base64url"),
    credentials: [],
    revokedAtByKey: {},
    ...(mode === "jwt" ? { account: newKeys("account"), signingKeys } : {}),
  };
}

function writeCertificates(
  folder: AuthFolder,
  { hosts }: Roster,
  { hostsChanged, now }: { readonly hostsChanged: boolean; readonly now: number },
): void {
  const certificate = readSecret(folder.authorityCertificate);
  const key = readSecret(folder.authorityKey);
  const authority = certificate === undefined || key === undefined ? newAuthority(now) : { certificate, key };
  writeSecret(folder.authorityKey, authority.key);
  writeSecret(folder.authorityCertificate, authority.certificate);
  if (isThere(folder.serverCertificate) && !hostsChanged) return;
  const server = newServerCertificate(authority, hosts, now);
  writeSecret(folder.serverKey, server.key);
  writeSecret(folder.serverCertificate, server.certificate);
}

export interface Wanted {
  readonly swarm: string;
  readonly name: string;
  readonly role: Role;
  readonly group?: string | undefined;
  readonly project?: string | undefined;
  readonly grant?: Credential["grant"];
  /** Subjects of services. */
  readonly serves?: readonly string[] | undefined;
  readonly calls?: readonly string[] | undefined;
  /** Only in mode jwt. Undefined: no end. */
  readonly ttlMs: number | undefined;
  readonly now: number;
}

export interface Issued {
  readonly credential: Credential;
  readonly handed: Handed;
}

/** @throws InvalidConfigError; WaggleError `WAGGLE_CONFLICT` for a name in use */
export function addCredential(folder: AuthFolder, wanted: Wanted): Issued {
  const { swarm, name, now } = wanted;
  const roster = readRoster(folder);
  const before = swarmIn(roster, swarm).credentials.find((credential) => credential.name === name);
  if (before !== undefined && isValid(before, now))
    throw new WaggleError(
      "WAGGLE_CONFLICT",
      `there is a credential ${name} (${before.role}): choose another --name, or \`waggle auth rotate ${name}\``,
      { field: "--name" },
    );
  refuseSharedInbox(swarmIn(roster, swarm), wanted);
  return issue(folder, roster, wanted);
}

/** A group and a name that are equal would share an inbox, and read each other's answers. */
function refuseSharedInbox({ credentials }: SwarmRoster, { name, group }: Wanted): void {
  const taken =
    group === undefined
      ? credentials.some((each) => each.group === name)
      : credentials.some((each) => each.group === undefined && each.name === group);
  if (!taken) return;
  const [wrong, other] = group === undefined ? [name, "group of agents"] : [group, "credential"];
  throw new WaggleError(
    "WAGGLE_CONFLICT",
    `${wrong} is also the name of a ${other}, and both would have the inbox _INBOX.${wrong}: choose another name`,
    { field: group === undefined ? "--name" : "--group" },
  );
}

/** New keys for a credential; the old ones are revoked. @throws InvalidConfigError */
export function rotateCredential(
  folder: AuthFolder,
  { swarm, name, ttlMs, now }: Pick<Wanted, "swarm" | "name" | "ttlMs" | "now">,
): Issued {
  const roster = readRoster(folder);
  const { publicKey, role, group, project, grant, serves, calls } = requireValid(roster, {
    swarm,
    name,
    now,
  });
  const revoked = withRevoked(roster, swarm, publicKey, now);
  return issue(folder, revoked, { swarm, name, role, group, project, grant, serves, calls, ttlMs, now });
}

/** The server refuses the credential from its next reload on. @throws InvalidConfigError */
export function revokeCredential(
  folder: AuthFolder,
  { swarm, name, now }: Pick<Wanted, "swarm" | "name" | "now">,
): Credential {
  const roster = readRoster(folder);
  const credential = requireValid(roster, { swarm, name, now });
  const revoked = { ...credential, revokedAt: now };
  save(folder, withCredential(withRevoked(roster, swarm, credential.publicKey, now), swarm, revoked), now);
  removeCredentialFiles(folder, swarm, name);
  return revoked;
}

function requireValid(
  roster: Roster,
  { swarm, name, now }: Pick<Wanted, "swarm" | "name" | "now">,
): Credential {
  const credential = credentialIn(swarmIn(roster, swarm), name);
  if (isValid(credential, now) || credential.revokedAt === undefined) return credential;
  throw new InvalidConfigError(`${name} is revoked already: \`waggle auth add\` makes a new credential`);
}

function issue(folder: AuthFolder, roster: Roster, wanted: Wanted): Issued {
  const { swarm, name, role, group, project, grant, serves, calls, ttlMs, now } = wanted;
  if (ttlMs !== undefined && roster.mode !== "jwt")
    throw new InvalidConfigError(
      "--ttl needs mode jwt: nkeys in a configuration do not expire; revoke them",
      {
        field: "--ttl",
      },
    );
  const keys = newKeys("user");
  const credential: Credential = {
    name,
    role,
    ...(group === undefined ? {} : { group }),
    ...(project === undefined ? {} : { project }),
    ...(grant === undefined ? {} : { grant }),
    ...(serves === undefined ? {} : { serves: [...serves] }),
    ...(calls === undefined ? {} : { calls: [...calls] }),
    publicKey: keys.publicKey,
    issuedAt: now,
    ...(ttlMs === undefined ? {} : { expiresAt: now + ttlMs }),
  };
  const changed = withCredential(roster, swarm, credential);
  const secret = secretOf(changed, { swarm, credential, keys });
  const handed = writeCredentialFiles(folder, { roster: changed, swarm, credential, secret });
  save(folder, changed, now);
  return { credential, handed };
}

function secretOf(
  roster: Roster,
  {
    swarm,
    credential,
    keys,
  }: { readonly swarm: string; readonly credential: Credential; readonly keys: Keys },
): string {
  const { account, signingKeys } = swarmIn(roster, swarm);
  const signingKey = signingKeys?.[credential.role];
  if (account === undefined || signingKey === undefined) return keys.seed;
  const { name, group, project, issuedAt, expiresAt } = credential;
  const seconds = (ms: number) => Math.floor(ms / 1000);
  const token = userJwt({
    ...{ account, signingKey, user: keys.publicKey, name, group, project },
    permissions: hasServices(credential) ? permissionsOf(swarmId(swarm), holderOf(credential)) : undefined,
    issuedAt: seconds(issuedAt),
    expiresAt: expiresAt === undefined ? undefined : seconds(expiresAt),
  });
  return credsText(token, keys.seed);
}

function withCredential(roster: Roster, swarm: string, credential: Credential): Roster {
  const of = swarmIn(roster, swarm);
  const others = of.credentials.filter(({ name }) => name !== credential.name);
  return {
    ...roster,
    swarms: { ...roster.swarms, [swarm]: { ...of, credentials: [...others, credential] } },
  };
}

function withRevoked(roster: Roster, swarm: string, publicKey: string, now: number): Roster {
  const of = swarmIn(roster, swarm);
  const revokedAtByKey = { ...of.revokedAtByKey, [publicKey]: Math.ceil(now / 1000) };
  return { ...roster, swarms: { ...roster.swarms, [swarm]: { ...of, revokedAtByKey } } };
}

/** The roster first: a crash between leaves a configuration that lacks a credential, and never one that has more. */
function save(folder: AuthFolder, roster: Roster, now: number): void {
  writeRoster(folder, roster);
  writeDeclarations(folder, roster, now);
  writeSecret(folder.serverConfig, serverConfigText(roster, folder, now));
}
