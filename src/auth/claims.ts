// JWTs of NATS, version 2, as `nsc` makes them: an operator signs accounts, and scoped signing keys of an account sign
// users. A scoped key fixes the permissions of a role; tags of the user fill in its project or group. So a stolen
// signing key of one role makes no user of another role. The account itself signs users that may do more than a role.

import { createHash } from "node:crypto";
import type { SwarmId } from "../ids.ts";
import {
  type Holder,
  inboxPrefixOf,
  type Permissions,
  permissionsOf,
  type Role,
  roles,
} from "../protocol/permissions.ts";
import { type Keys, signWith } from "./nats.ts";
import { permissionsClaim } from "./permissions-text.ts";

export type SigningKeys = Readonly<Record<Role, Keys>>;

interface Signed {
  readonly issuer: Keys;
  readonly subject: string;
  readonly name: string;
  /** Seconds since the Unix epoch. */
  readonly issuedAt: number;
  readonly expiresAt?: number | undefined;
}

/** @throws Error when a seed is damaged */
function jwt({ issuer, subject, name, issuedAt, expiresAt }: Signed, nats: object): string {
  const claims = {
    iat: issuedAt,
    iss: issuer.publicKey,
    name,
    sub: subject,
    ...(expiresAt === undefined ? {} : { exp: expiresAt }),
    nats: { ...nats, version: 2 },
  };
  // The id is a hash of the claims without an id, as in the libraries of NATS.
  const jti = createHash("sha256").update(JSON.stringify(claims)).digest("hex");
  const body = `${base64({ typ: "JWT", alg: "ed25519-nkey" })}.${base64({ jti, ...claims })}`;
  const signature = Buffer.from(signWith(issuer.seed, Buffer.from(body))).toString("base64url");
  return `${body}.${signature}`;
}

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

export function operatorJwt(operator: Keys, systemAccount: string, issuedAt: number): string {
  const signed = { issuer: operator, subject: operator.publicKey, name: "waggle", issuedAt };
  return jwt(signed, { type: "operator", system_account: systemAccount });
}

const unlimited = { subs: -1, data: -1, payload: -1 };
const accountLimits = {
  ...unlimited,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
};
const storageLimits = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

export function systemAccountJwt(operator: Keys, account: Keys, issuedAt: number): string {
  const signed = { issuer: operator, subject: account.publicKey, name: "SYS", issuedAt };
  return jwt(signed, { type: "account", limits: accountLimits });
}

export interface SwarmAccount {
  readonly swarm: SwarmId;
  readonly name: string;
  readonly account: Keys;
  readonly signingKeys: SigningKeys;
  /** When each revoked user was revoked, in seconds, by its public key. */
  readonly revokedAtByKey: Readonly<Record<string, number>>;
}

export function accountJwt(operator: Keys, of: SwarmAccount, issuedAt: number): string {
  const signed = { issuer: operator, subject: of.account.publicKey, name: of.name, issuedAt };
  return jwt(signed, {
    type: "account",
    limits: { ...accountLimits, ...storageLimits },
    signing_keys: roles.map((role) => scopeOf(of, role)),
    ...(Object.keys(of.revokedAtByKey).length === 0 ? {} : { revocations: of.revokedAtByKey }),
  });
}

function scopeOf({ swarm, signingKeys }: SwarmAccount, role: Role): object {
  const template = permissionsClaim(permissionsOf(swarm, templateHolder(role)));
  return {
    kind: "user_scope",
    key: signingKeys[role].publicKey,
    role,
    template: { ...template, ...unlimited },
  };
}

/** The server replaces the templates by the name and the tags of each user. */
function templateHolder(role: Role): Holder {
  const own = inboxPrefixOf({ name: "{{name()}}" });
  switch (role) {
    case "agent":
      return { role, group: "{{tag(group)}}", inboxPrefix: inboxPrefixOf({ group: "{{tag(group)}}" }) };
    case "submitter":
    case "owner":
      return { role, project: "{{tag(project)}}", inboxPrefix: own };
    default:
      return { role, inboxPrefix: own };
  }
}

export interface UserClaims {
  readonly account: Keys;
  readonly signingKey: Keys;
  readonly user: string;
  readonly name: string;
  readonly group?: string | undefined;
  readonly project?: string | undefined;
  /** Undefined: those of the role, by the scope of `signingKey`. */
  readonly permissions?: Permissions | undefined;
  readonly issuedAt: number;
  readonly expiresAt?: number | undefined;
}

export function userJwt(claims: UserClaims): string {
  const { account, signingKey, user, name, group, project, permissions, issuedAt, expiresAt } = claims;
  if (permissions !== undefined)
    return jwt(
      { issuer: account, subject: user, name, issuedAt, expiresAt },
      { type: "user", ...permissionsClaim(permissions), ...unlimited },
    );
  const tags = [
    ...(group === undefined ? [] : [`group:${group}`]),
    ...(project === undefined ? [] : [`project:${project}`]),
  ];
  const signed = { issuer: signingKey, subject: user, name, issuedAt, expiresAt };
  return jwt(signed, {
    type: "user",
    issuer_account: account.publicKey,
    ...(tags.length === 0 ? {} : { tags }),
    // A user of a scoped key carries no limits of its own.
  });
}

/** The text of a `.creds` file. */
export function credsText(userToken: string, seed: string): string {
  return [
    "-----BEGIN NATS USER JWT-----",
    userToken,
    "------END NATS USER JWT------",
    "",
    "-----BEGIN USER NKEY SEED-----",
    seed,
    "------END USER NKEY SEED------",
    "",
  ].join("\n");
}
