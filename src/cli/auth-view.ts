// Output of `waggle auth`. Prints paths and public keys, never a seed.

import { relative } from "node:path";
import type { AuthFolder } from "../auth/auth-folder.ts";
import type { Issued } from "../auth/credentials.ts";
import type { Reload } from "../auth/reload.ts";
import { type Credential, holderOf, isValid, type Roster } from "../auth/roster.ts";
import type { Permissions } from "../protocol/permissions.ts";
import { isPrompt } from "../protocol/service-permissions.ts";
import type { Notified } from "./auth-leader.ts";
import { printRows, type SettingLine, settingLines } from "./setting-text.ts";
import type { VerbContext } from "./verb.ts";

export function credentialRecord(credential: Credential, now: number): object {
  return { ...credential, state: stateOf(credential, now), inboxPrefix: holderOf(credential).inboxPrefix };
}

export function printInit(
  context: VerbContext,
  {
    folder,
    roster,
    issued,
    reload,
  }: {
    readonly folder: AuthFolder;
    readonly roster: Roster;
    readonly issued: readonly Issued[];
    readonly reload: Reload;
  },
): void {
  const { output, settings, shell } = context;
  const { mode, hosts, port } = roster;
  const { swarm } = settings;
  const configs = issued.map(({ credential: { role }, handed: { config } }) => ({ role, config }));
  const record = {
    swarm,
    mode,
    hosts,
    port,
    serverConfig: folder.serverConfig,
    credentials: configs,
    reload,
  };
  const shown = (path: string) => shortest(path, shell.cwd);
  const configOf = (wanted: string) => shown(configs.find(({ role }) => role === wanted)?.config ?? "");
  const start =
    reload === "reloaded"
      ? "the running server has the account now"
      : `start the server: nats-server --config ${shown(folder.serverConfig)}`;
  output.datum(record, () =>
    [
      `the swarm ${swarm} has an account at ${hosts[0]}:${port} (mode ${mode}, TLS)`,
      `  ${start}`,
      `  start a coordinator: ${output.asStarted(`waggle up --config ${configOf("coordinator")}`)}`,
      `  look as an operator: ${output.asStarted(`waggle status --config ${configOf("operator")}`)}`,
    ].join("\n"),
  );
}

export function printIssued(
  context: VerbContext,
  {
    issued: { credential, handed },
    did,
    reload,
    notified,
  }: {
    readonly issued: Issued;
    readonly did: "added" | "rotated";
    readonly reload: Reload;
    /** Undefined: the leader need not know. */
    readonly notified?: Notified | undefined;
  },
): void {
  const { output, shell } = context;
  const shown = shortest(handed.config, shell.cwd);
  const record = {
    ...credentialRecord(credential, credential.issuedAt),
    ...handed,
    did,
    reload,
    notified: notified?.ok,
  };
  output.datum(record, () =>
    [
      `${credential.name} ${did}: ${scopeText(credential)}${expiryText(credential)}`,
      `  hand over the folder ${shortest(handed.folder, shell.cwd)}`,
      `  use: ${output.asStarted(useOf(credential, shown))}`,
      ...(reload === "reloaded" ? ["  the running server has reloaded its configuration"] : []),
      ...(notified?.ok ? [`  the leader knows ${grantedText(credential)}`] : []),
    ].join("\n"),
  );
}

function grantedText({ role, group, project }: Credential): string {
  if (role === "agent") return `the grant of group ${group}`;
  return `the inbox, for answers about ${project === undefined ? "all projects" : `project ${project}`}`;
}

function useOf({ role, group, grant, serves = [], calls = [] }: Credential, config: string): string {
  const [served] = serves;
  if (served !== undefined) return serveCommandOf(served, config);
  switch (role) {
    case "agent":
      if (calls.some(isPrompt)) return `waggle bridge synadia --config ${config} --group ${group}`;
      return `waggle agent --config ${config} --group ${group} --kind ${grant?.kinds?.[0] ?? "KIND"} --exec 'COMMAND'`;
    case "submitter":
    case "owner":
      return `waggle submit --config ${config} --kind KIND --text TEXT`;
    case "coordinator":
      return `waggle up --config ${config}`;
    default:
      return `waggle status --config ${config}`;
  }
}

function serveCommandOf(subject: string, config: string): string {
  const [, owner, name] = /^agents\.prompt\.waggle\.([^.]+)\.([^.]+)$/.exec(subject) ?? [];
  return owner === undefined
    ? `waggle serve nats --config ${config} --kind KIND --subject ${subject}`
    : `waggle serve synadia --config ${config} --kind KIND --owner ${owner} --name ${name}`;
}

export function printCredentials(
  context: VerbContext,
  credentials: readonly Credential[],
  now: number,
): void {
  const sorted = [...credentials].sort((one, other) => one.name.localeCompare(other.name));
  const rows = sorted.map((credential) => ({ credential, record: credentialRecord(credential, now) }));
  if (context.output.json) {
    for (const { record } of rows) context.output.datum(record, () => "");
    return;
  }
  printRows(context, sorted, {
    columns: [{ head: "name" }, { head: "role" }, { head: "of" }, { head: "state" }, { head: "issued" }],
    cells: (credential) => [
      credential.name,
      credential.role,
      credential.group ?? credential.project ?? "",
      stateOf(credential, now) + expiryText(credential),
      day(credential.issuedAt),
    ],
    empty: "no credentials yet: `waggle auth add` makes the first",
    omitted: 0,
  });
}

export function printPermissions(
  context: VerbContext,
  credential: Credential,
  { permissions, now }: { readonly permissions: Permissions; readonly now: number },
): void {
  const { publish, subscribe, answers } = permissions;
  const lines: readonly SettingLine[] = [
    ["role", scopeText(credential)],
    ["state", stateOf(credential, now) + expiryText(credential)],
    ["public key", credential.publicKey],
    ...publish.map((subject): SettingLine => ["may publish", subject]),
    ...subscribe.map((subject): SettingLine => ["may subscribe", subject]),
    ...(answers === undefined ? [] : [["may answer", "requests that it receives"] as const]),
  ];
  context.output.datum({ ...credentialRecord(credential, now), permissions }, () =>
    settingLines(context, credential.name, lines),
  );
}

function stateOf(credential: Credential, now: number): "valid" | "revoked" | "expired" {
  if (isValid(credential, now)) return "valid";
  return credential.revokedAt === undefined ? "expired" : "revoked";
}

function scopeText({ role, group, project, grant, serves, calls }: Credential): string {
  const of = group === undefined ? "" : ` of group ${group}`;
  const within = project === undefined ? "" : ` of project ${project}`;
  const kinds = grant?.kinds === undefined ? "" : `, kinds ${grant.kinds.join(", ")}`;
  const projects = grant?.projects === undefined ? "" : `, projects ${grant.projects.join(", ")}`;
  const served = serves === undefined ? "" : `, serves ${serves.join(", ")}`;
  const called = calls === undefined ? "" : `, calls ${calls.join(", ")}`;
  return `${role}${of}${within}${kinds}${projects}${served}${called}`;
}

function expiryText({ expiresAt }: Credential): string {
  return expiresAt === undefined ? "" : `, expires ${new Date(expiresAt).toISOString().slice(0, 16)}Z`;
}

function day(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Relative if that is shorter and can be typed. */
function shortest(path: string, cwd: string): string {
  const near = relative(cwd, path);
  return near.startsWith("..") || near.length >= path.length ? path : near;
}
