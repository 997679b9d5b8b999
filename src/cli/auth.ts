// `waggle auth`: makes, lists, renews and revokes credentials, and writes the configuration of a nats-server that
// enforces them. Works on files alone, and asks no swarm. Not here: the files (src/auth), output (auth-view.ts).

import { Argument, Command, Option } from "commander";
import { type AuthFolder, authFolderOf } from "../auth/auth-folder.ts";
import { addCredential, initAuth, revokeCredential, rotateCredential } from "../auth/credentials.ts";
import { permissionsText } from "../auth/permissions-text.ts";
import { type Reload, reloadServer } from "../auth/reload.ts";
import {
  authModes,
  type Credential,
  credentialIn,
  holderOf,
  isValid,
  readRoster,
  type Scope,
  swarmIn,
} from "../auth/roster.ts";
import { findDataFolder, makeDataFolder } from "../broker/data-folder.ts";
import { isProcessWith } from "../broker/process-identity.ts";
import { systemClock } from "../clock.ts";
import { defined } from "../defined.ts";
import { swarmId } from "../ids.ts";
import { check } from "../protocol/codec.ts";
import { type Permissions, permissionsOf, type Role, roleMeanings, roles } from "../protocol/permissions.ts";
import { kindSchema } from "../protocol/schemas.ts";
import { isServiceSubject } from "../protocol/service-permissions.ts";
import { grantCommandOf, type Notified, sendGrant, sendRevoked, sendUsers } from "./auth-leader.ts";
import { credentialRecord, printCredentials, printInit, printIssued, printPermissions } from "./auth-view.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { UsageError } from "./usage-error.ts";
import { parseDuration, subjectToken, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function authCommand(program: Program): Command {
  return new Command("auth")
    .description(
      "Makes credentials, each limited to its own traffic, and a nats-server configuration with TLS to enforce " +
        "the limits. All keys are in the folder `auth` of the data folder, which only this user can read.",
    )
    .addCommand(initCommand(program))
    .addCommand(addCommand(program))
    .addCommand(listCommand(program))
    .addCommand(showCommand(program))
    .addCommand(rotateCommand(program))
    .addCommand(revokeCommand(program))
    .addCommand(printCommand(program))
    .addHelpText("after", rootExamples);
}

const rootExamples = `
Roles:
${roles.map((role) => `  ${role.padEnd(12)} ${roleMeanings[role]}`).join("\n")}

docs/security.md has the whole walk.

Examples:
  $ waggle auth init --swarm acme
  $ waggle auth add agent --swarm acme --group gpu
  $ waggle auth add submitter --swarm acme --project web
  $ waggle auth list --swarm acme
  $ waggle auth revoke gpu --swarm acme`;

// --- init -------------------------------------------------------------------------------------------

interface InitFlags {
  readonly mode?: (typeof authModes)[number];
  readonly host?: readonly string[];
  readonly port?: number;
}

function initCommand(program: Program): Command {
  return new Command("init")
    .summary("make the keys, certificates and configuration of a server, with an account for the swarm")
    .description(
      "Makes a certificate authority, a server's certificate, a system account and an account for the swarm of " +
        "--swarm, and the credentials `coordinator` and `operator`. Run the command again with a different --swarm to add an account.",
    )
    .addOption(
      new Option(
        "--mode <mode>",
        "config: users are listed in the server's configuration. jwt: users bring signed tokens, which may expire, and a new one needs no change of the server. Default config",
      ).choices(authModes),
    )
    .option(
      "--host <name>",
      "name or address under which clients reach the server; may be repeated, and the first is in their URL. Default: this machine alone, 127.0.0.1",
      (host: string, before: readonly string[] = []) => [...before, hostName(host)],
    )
    .option("--port <port>", "port of the server; default 4222", wholeNumber(1, 65_535))
    .addHelpText(
      "after",
      `
Examples:
  $ waggle auth init --swarm acme
  $ waggle auth init --swarm acme --mode jwt --host nats.example.com`,
    )
    .action((flags: InitFlags, command: Command) =>
      runVerb(program, command, (context) => init(context, flags)),
    );
}

async function init(context: VerbContext, { mode, host = [], port }: InitFlags): Promise<ExitCode> {
  const { swarm, dataFolder } = context.settings;
  const folder = authFolderOf(makeDataFolder(dataFolder).path);
  const now = systemClock.now();
  const roster = initAuth(folder, { swarm, mode, hosts: host, port, now });
  const issued = (["coordinator", "operator"] as const).map((role) =>
    addCredential(folder, { swarm, name: role, role, ttlMs: undefined, now }),
  );
  printInit(context, { folder, roster, issued, reload: await reloadServer(folder, isProcessWith) });
  return exitCodes.ok;
}

function hostName(host: string): string {
  if (/^[A-Za-z0-9.:-]{1,253}$/.test(host) && !/^[a-z]+:\/\//i.test(host)) return host;
  throw new UsageError(
    `--host: '${host}' is no name or address of a host; give it without a scheme and port`,
    {
      field: "--host",
    },
  );
}

// --- add --------------------------------------------------------------------------------------------

interface AddFlags {
  readonly name?: string;
  readonly group?: string;
  readonly project?: string;
  readonly kinds?: readonly string[];
  readonly projects?: readonly string[];
  readonly serve?: readonly string[];
  readonly call?: readonly string[];
  readonly ttl?: number;
}

function addCommand(program: Program): Command {
  return new Command("add")
    .summary("make a credential for a role")
    .description(
      "Makes a credential and a folder to hand to its holder: its secret, the server's certificate authority, and a " +
        "`waggle.config.json` for `waggle --config`. A running server of this folder reloads its configuration.",
    )
    .addArgument(new Argument("<role>", "what the holder may do").choices(roles))
    .option(
      "--name <name>",
      "name of the credential. Default: the group, <project>-<role>, or the role",
      subjectToken,
    )
    .option("--group <group>", "of agents, required: the group of `waggle agent --group`", subjectToken)
    .option("--project <project>", "of a submitter or owner, required", subjectToken)
    .option(
      "--kinds <kinds>",
      "of agents: the only kinds of tasks, separated by commas. Default: any",
      kindsIn,
    )
    .option(
      "--projects <projects>",
      "of agents: the only projects to run tasks of, separated by commas. Default: any",
      (text: string) => text.split(",").map(subjectToken),
    )
    .option(
      "--serve <subject>",
      "of a submitter or owner: a subject that `waggle serve nats` or `synadia` answers; may be repeated. An answer must be complete within 10 minutes",
      serviceSubjects,
    )
    .option(
      "--call <subject>",
      "of an agent, submitter or owner: a subject of a service that it may request; may be repeated. agents.prompt.>: for `waggle bridge synadia`",
      serviceSubjects,
    )
    .option(
      "--ttl <duration>",
      "time until the credential expires, in mode jwt. Default: never",
      parseDuration,
    )
    .addHelpText(
      "after",
      `
Examples:
  $ waggle auth add agent --group gpu --kinds review --projects web
  $ waggle auth add submitter --project web
  $ waggle auth add submitter --project web --name counter --serve svc.count
  $ waggle auth add owner --project web --name ann
  $ waggle auth add auditor --ttl 30d`,
    )
    .action((role: Role, flags: AddFlags, command: Command) =>
      runVerb(program, command, (context) => add(context, role, flags)),
    );
}

async function add(context: VerbContext, role: Role, flags: AddFlags): Promise<ExitCode> {
  checkAddFlags(role, flags);
  const { group, project, kinds, projects, serve, call, ttl } = flags;
  const folder = authFolderIn(context);
  const isBounded = kinds !== undefined || projects !== undefined;
  const issued = addCredential(folder, {
    swarm: context.settings.swarm,
    name: flags.name ?? group ?? (project === undefined ? role : `${project}-${role}`),
    ...{ role, group, project, serves: serve, calls: call },
    ...(isBounded
      ? {
          grant: {
            ...(kinds === undefined ? {} : { kinds: [...kinds] }),
            ...(projects === undefined ? {} : { projects: [...projects] }),
          },
        }
      : {}),
    ttlMs: ttl,
    now: systemClock.now(),
  });
  const reload = await reloadServer(folder, isProcessWith);
  const { credential } = issued;
  const notified =
    role === "agent" && (isBounded || isOnlyOfGroup(context, credential))
      ? await sendGrant(context, folder, credential)
      : await sendUsersIfRunning(context, folder, { credential, reload });
  printIssued(context, { issued, did: "added", reload, notified });
  if (role === "agent" && (isBounded || reload === "reloaded")) notePending(context, credential, notified);
  return exitCodes.ok;
}

/** Without a running server, the next coordinator reads the declarations. */
async function sendUsersIfRunning(
  context: VerbContext,
  folder: AuthFolder,
  { credential, reload }: { readonly credential: Credential; readonly reload: Reload },
): Promise<Notified | undefined> {
  return reload === "reloaded" ? await sendUsers(context, folder, credential) : undefined;
}

/** Whether no other valid credential speaks for the group. */
function isOnlyOfGroup(context: VerbContext, { name, group }: Credential): boolean {
  const { credentials } = swarmIn(readRoster(authFolderIn(context)), context.settings.swarm);
  const now = systemClock.now();
  return !credentials.some((each) => each.name !== name && each.group === group && isValid(each, now));
}

function notePending({ output }: VerbContext, credential: Credential, notified: Notified | undefined): void {
  if (notified?.ok !== false) return;
  output.note(`the leader does not know the grant of group ${credential.group} yet: ${notified.why}`);
  output.note(`set it later, as an operator: \`${grantCommandOf(credential)}\``);
}

const needed: Readonly<Record<Role, "group" | "project" | undefined>> = {
  coordinator: undefined,
  agent: "group",
  submitter: "project",
  owner: "project",
  auditor: undefined,
  operator: undefined,
  metrics: undefined,
};

function checkAddFlags(role: Role, flags: AddFlags): void {
  for (const flag of ["group", "project"] as const) {
    const isNeeded = needed[role] === flag;
    if (isNeeded && flags[flag] === undefined)
      throw new UsageError(`--${flag} is required for the role ${role}`, { field: `--${flag}` });
    if (!isNeeded && flags[flag] !== undefined)
      throw new UsageError(`--${flag} has no meaning for the role ${role}`, { field: `--${flag}` });
  }
  for (const flag of ["kinds", "projects"] as const)
    if (role !== "agent" && flags[flag] !== undefined)
      throw new UsageError(`--${flag} is for agents alone`, { field: `--${flag}` });
  const submits = needed[role] === "project";
  if (flags.serve !== undefined && !submits)
    throw new UsageError(
      "--serve is for submitters and owners: what is served becomes tasks of their project",
      {
        field: "--serve",
      },
    );
  if (flags.call !== undefined && !submits && role !== "agent")
    throw new UsageError("--call is for agents, submitters and owners", { field: "--call" });
}

function serviceSubjects(subject: string, before: readonly string[] = []): string[] {
  if (isServiceSubject(subject)) return [...before, subject];
  throw new UsageError(
    `'${subject}' is no subject of a service, or reaches subjects of NATS or of the swarm: name one such as svc.count`,
    { field: "subject" },
  );
}

function kindsIn(text: string): string[] {
  return text.split(",").map((kind) => {
    const found = check(kind, kindSchema, "--kinds");
    if (found.ok) return kind;
    throw new UsageError(found.message, { field: "--kinds" });
  });
}

// --- list, show, rotate, revoke, print --------------------------------------------------------------

function listCommand(program: Program): Command {
  return new Command("list")
    .summary("list the credentials of the swarm")
    .addHelpText("after", "\nExamples:\n  $ waggle auth list\n  $ waggle auth list --json")
    .action((_: unknown, command: Command) =>
      runVerb(program, command, async (context) => {
        const { settings } = context;
        const { credentials } = swarmIn(readRoster(authFolderIn(context)), settings.swarm);
        printCredentials(context, credentials, systemClock.now());
        return exitCodes.ok;
      }),
    );
}

function showCommand(program: Program): Command {
  return new Command("show")
    .summary("show a credential and the subjects it may reach")
    .argument("<name>", "name of the credential", subjectToken)
    .addHelpText("after", "\nExamples:\n  $ waggle auth show gpu")
    .action((name: string, _: unknown, command: Command) =>
      runVerb(program, command, async (context) => {
        const { settings } = context;
        const roster = readRoster(authFolderIn(context));
        const credential = credentialIn(swarmIn(roster, settings.swarm), name);
        printPermissions(context, credential, {
          permissions: permissionsFor(context, credential),
          now: systemClock.now(),
        });
        return exitCodes.ok;
      }),
    );
}

function rotateCommand(program: Program): Command {
  return new Command("rotate")
    .summary("replace the keys of a credential; the old keys end")
    .argument("<name>", "name of the credential", subjectToken)
    .option("--ttl <duration>", "time until the new keys expire, in mode jwt. Default: never", parseDuration)
    .addHelpText("after", "\nExamples:\n  $ waggle auth rotate gpu\n  $ waggle auth rotate gpu --ttl 30d")
    .action((name: string, { ttl }: { readonly ttl?: number }, command: Command) =>
      runVerb(program, command, async (context) => {
        const { swarm } = context.settings;
        const folder = authFolderIn(context);
        const issued = rotateCredential(folder, { swarm, name, ttlMs: ttl, now: systemClock.now() });
        printIssued(context, { issued, did: "rotated", reload: await reloadServer(folder, isProcessWith) });
        return exitCodes.ok;
      }),
    );
}

function revokeCommand(program: Program): Command {
  return new Command("revoke")
    .summary("end a credential: the server disconnects its holder")
    .argument("<name>", "name of the credential", subjectToken)
    .addHelpText("after", "\nExamples:\n  $ waggle auth revoke gpu")
    .action((name: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => revoke(context, name)),
    );
}

async function revoke(context: VerbContext, name: string): Promise<ExitCode> {
  const { swarm } = context.settings;
  const folder = authFolderIn(context);
  const credential = revokeCredential(folder, { swarm, name, now: systemClock.now() });
  const reload = await reloadServer(folder, isProcessWith);
  const notified =
    credential.role === "agent" && isOnlyOfGroup(context, credential)
      ? await sendRevoked(context, folder, credential)
      : await sendUsersIfRunning(context, folder, { credential, reload });
  context.output.datum(
    { ...credentialRecord(credential, systemClock.now()), reload, notified: notified?.ok },
    () =>
      reload === "reloaded"
        ? `${name} is revoked: the server has disconnected the holder, and refuses the credential from now on`
        : `${name} is revoked in ${folder.serverConfig}: a server that uses the file elsewhere refuses it after a reload`,
  );
  if (notified?.ok && credential.role === "agent")
    context.output.note(`the leader has taken back the attempts and slots of group ${credential.group}`);
  if (credential.role === "agent") notePending(context, credential, notified);
  return exitCodes.ok;
}

interface PrintFlags {
  readonly role: Role;
  readonly name?: string;
  readonly group?: string;
  readonly project?: string;
  readonly serve?: string[];
  readonly call?: string[];
}

function printCommand(program: Program): Command {
  return new Command("print")
    .summary("print the permissions of a role, for a server that is configured by hand")
    .addOption(new Option("--role <role>", "the role").choices(roles).makeOptionMandatory())
    .option(
      "--name <name>",
      "name of the user, for its inbox _INBOX.<name>. Default: as for add",
      subjectToken,
    )
    .option("--group <group>", "of agents, required", subjectToken)
    .option("--project <project>", "of a submitter or owner, required", subjectToken)
    .option("--serve <subject>", "as for add", serviceSubjects)
    .option("--call <subject>", "as for add", serviceSubjects)
    .addHelpText(
      "after",
      "\nExamples:\n  $ waggle auth print --role agent --group gpu\n  $ waggle auth print --role auditor --json",
    )
    .action((flags: PrintFlags, command: Command) =>
      runVerb(program, command, async (context) => {
        const { role, group, project, serve: serves, call: calls } = flags;
        checkAddFlags(role, flags);
        const name = flags.name ?? group ?? (project === undefined ? role : `${project}-${role}`);
        const scope = defined({ name, role, group, project, serves, calls });
        const permissions = permissionsFor(context, scope);
        context.output.datum({ role, ...permissions }, () => `permissions: ${permissionsText(permissions)}`);
        return exitCodes.ok;
      }),
    );
}

/** @throws BrokerError for a data folder that is not this user's, or that others may write to */
function authFolderIn({ settings }: VerbContext): AuthFolder {
  return authFolderOf(findDataFolder(settings.dataFolder)?.path ?? settings.dataFolder);
}

function permissionsFor({ settings }: VerbContext, scope: Scope): Permissions {
  return permissionsOf(swarmId(settings.swarm), holderOf(scope));
}
