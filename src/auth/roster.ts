// `.waggle/auth/auth.json`: the server, the swarms, and every credential that was made. Holds the keys that sign, and
// of users only public keys; a user's seed is in the folder of its holder alone.

import * as z from "zod";
import { InvalidConfigError } from "../errors.ts";
import { SUBJECT_TOKEN_PATTERN } from "../ids.ts";
import { type Holder, inboxPrefixOf, roles } from "../protocol/permissions.ts";
import { isServiceSubject } from "../protocol/service-permissions.ts";
import { type AuthFolder, readSecret, requirePrivate, writeSecret } from "./auth-folder.ts";

export const authModes = ["config", "jwt"] as const;
export type AuthMode = (typeof authModes)[number];

const keysSchema = z.object({ publicKey: z.string().min(1), seed: z.string().min(1) });
const token = z.string().regex(SUBJECT_TOKEN_PATTERN);
const serviceSubject = z.string().refine(isServiceSubject);

const credentialSchema = z.object({
  name: token,
  role: z.enum(roles),
  group: token.optional(),
  project: token.optional(),
  /** For role agent: what the leader grants the group beyond the server's permissions. */
  grant: z.object({ kinds: z.array(z.string()).optional(), projects: z.array(token).optional() }).optional(),
  /** Subjects of services that the holder serves, or calls, beyond its role. */
  serves: z.array(serviceSubject).optional(),
  calls: z.array(serviceSubject).optional(),
  publicKey: z.string().min(1),
  /** ms since the Unix epoch */
  issuedAt: z.int(),
  /** ms since the Unix epoch; absent: never */
  expiresAt: z.int().optional(),
  /** ms since the Unix epoch; absent: valid */
  revokedAt: z.int().optional(),
});
export type Credential = z.infer<typeof credentialSchema>;

const swarmSchema = z.object({
  /** In mode jwt. */
  account: keysSchema.optional(),
  /** In mode jwt: one per role. */
  signingKeys: z.record(z.enum(roles), keysSchema).optional(),
  /** Key of the attempts' tokens; every coordinator gets it. */
  tokenKey: z.string(),
  credentials: z.array(credentialSchema),
  /** When each revoked key was revoked, in seconds since the Unix epoch, by public key. */
  revokedAtByKey: z.record(z.string(), z.int()),
});
export type SwarmRoster = z.infer<typeof swarmSchema>;

const rosterSchema = z.object({
  version: z.literal(1),
  mode: z.enum(authModes),
  /** Names and addresses in the server's certificate; the first is in the clients' URL. */
  hosts: z.array(z.string().min(1)).min(1),
  port: z.int().min(1).max(65_535),
  system: keysSchema,
  /** In mode jwt. */
  operator: keysSchema.optional(),
  systemAccount: keysSchema.optional(),
  swarms: z.record(token, swarmSchema),
});
export type Roster = z.infer<typeof rosterSchema>;

/** @throws InvalidConfigError without a roster, or with a damaged one */
export function readRoster(folder: AuthFolder): Roster {
  const roster = findRoster(folder);
  if (roster !== undefined) return roster;
  throw new InvalidConfigError(`${folder.path} holds no credentials yet: run \`waggle auth init\` first`);
}

/** @throws InvalidConfigError with a damaged roster, or a folder that others may reach */
export function findRoster(folder: AuthFolder): Roster | undefined {
  requirePrivate(folder.path);
  const text = readSecret(folder.roster);
  if (text === undefined) return undefined;
  const parsed = rosterSchema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new InvalidConfigError(
    `${folder.roster} is damaged${field === "" ? "" : ` (${field})`}: restore it from a backup; without it no credential can be added or revoked`,
    { field },
  );
}

export function writeRoster(folder: AuthFolder, roster: Roster): void {
  writeSecret(folder.roster, `${JSON.stringify(roster, null, 2)}\n`);
}

/** @throws InvalidConfigError for a swarm without an account */
export function swarmIn(roster: Roster, swarm: string): SwarmRoster {
  const found = roster.swarms[swarm];
  if (found !== undefined) return found;
  const known = Object.keys(roster.swarms).join(", ");
  throw new InvalidConfigError(
    `the swarm ${swarm} has no account: run \`waggle auth init --swarm ${swarm}\`, or name one of ${known}`,
    { field: "swarm" },
  );
}

/** @throws InvalidConfigError for an unknown name */
export function credentialIn({ credentials }: SwarmRoster, name: string): Credential {
  const found = credentials.find((credential) => credential.name === name);
  if (found !== undefined) return found;
  const known = credentials.map((credential) => credential.name).join(", ");
  throw new InvalidConfigError(`there is no credential ${name}; there are ${known || "none"}`);
}

export function isValid({ revokedAt, expiresAt }: Credential, now: number): boolean {
  return revokedAt === undefined && (expiresAt === undefined || expiresAt > now);
}

/** A credential's place in the table of permissions. */
export type Scope = Pick<Credential, "name" | "role" | "group" | "project" | "serves" | "calls">;

/** Whether the holder may do more than its role, so that the scope of the role's signing key does not suffice. */
export function hasServices({ serves, calls }: Scope): boolean {
  return serves !== undefined || calls !== undefined;
}

/** The holder in the table of permissions. */
export function holderOf(scope: Scope): Holder {
  const { name, role, group = "", project = "", serves = [], calls = [] } = scope;
  const beyond = hasServices(scope) ? { services: { serves, calls } } : {};
  switch (role) {
    case "agent":
      return { role, group, inboxPrefix: inboxPrefixOf({ group }), ...beyond };
    case "submitter":
    case "owner":
      return { role, project, inboxPrefix: inboxPrefixOf({ name }), ...beyond };
    default:
      return { role, inboxPrefix: inboxPrefixOf({ name }) };
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema
  }
}
