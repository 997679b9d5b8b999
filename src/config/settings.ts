// The settings in force: flags before environment before waggle.config.json before defaults. All are checked by the
// same schema, and errors use the name of the source. Programs that connect by themselves pass options instead of
// flags, and read no file. Not here: flags of one verb (cli/), limits of the system (limits.ts).

import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, resolve } from "node:path";
import type { z } from "zod";
import { InvalidConfigError } from "../errors.ts";
import { DEFAULT_PROJECT, NAME_PATTERN } from "../ids.ts";
import { durationIn } from "./duration.ts";
import { defaultRetention, type Retention, retentionIn } from "./retention.ts";
import { type Config, configSchema, credentialsSchema, type LogLevel, tlsSchema } from "./schema.ts";
import { lineNotUtf8 } from "./utf8.ts";

export const CONFIG_FILE = "waggle.config.json";

/** Paths are absolute. */
export interface Credentials {
  readonly creds?: string;
  readonly nkey?: string;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
}

export interface Settings {
  /** URL of the NATS server; undefined: the context's, else the broker of the data folder. */
  readonly nats: string | undefined;
  readonly natsContext: string | undefined;
  readonly credentials: Credentials | undefined;
  /** Prefix of the subjects on which answers arrive; undefined: the context's prefix, or `_INBOX`. */
  readonly inboxPrefix: string | undefined;
  /** Whether a password or token may go to another machine without encryption. */
  readonly insecure: boolean;
  readonly swarm: string;
  readonly project: string;
  /** Whether questions without `--project` are about `project` alone; only from the file. */
  readonly projectOnly: boolean;
  /** Whether this user may not read the journal's streams; only from the file. */
  readonly queriesOnly: boolean;
  readonly user: string;
  /** Absolute. */
  readonly dataFolder: string;
  /** Begins the id of a coordinator; undefined: the host's name does. */
  readonly name: string | undefined;
  /** T of the coordinator's own terms; undefined: the default. */
  readonly leaderTimeoutMs: number | undefined;
  /** Replicas of the journal's stream; undefined: 1 for a new stream, any number for an existing stream. */
  readonly replicas: number | undefined;
  /** Part of the journal that a coordinator keeps for reading. */
  readonly retention: Retention;
  /** File with the key of the attempts' tokens, absolute; undefined: tokens follow from the journal. */
  readonly tokenKeyFile: string | undefined;
  /** File with the groups and projects that a coordinator declares to the leader, absolute. */
  readonly declarationsFile: string | undefined;
  /** Settings of the operator who performs a dashboard's changes, absolute. */
  readonly operatorConfig: string | undefined;
  /** Undefined: the verb's own default. */
  readonly logLevel: LogLevel | undefined;
}

/** Values of flags, or of the environment; absent means unset. */
export interface SettingNames {
  readonly nats?: string;
  readonly natsContext?: string;
  readonly creds?: string;
  readonly nkey?: string;
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly inboxPrefix?: string;
  readonly swarm?: string;
  readonly project?: string;
  readonly user?: string;
  readonly dataFolder?: string;
  readonly name?: string;
  readonly leaderTimeout?: string;
  readonly replicas?: string;
  readonly retain?: string;
  readonly tokenKeyFile?: string;
  readonly declarationsFile?: string;
  readonly operatorConfig?: string;
  readonly logLevel?: string;
}

export interface SettingsSources {
  readonly flags: SettingNames & { readonly config?: string; readonly insecure?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** The environment variables that are read. Those that begin with NATS_ belong to the nats tool. */
export const environmentVariables = {
  nats: "NATS_URL",
  natsContext: "NATS_CONTEXT",
  creds: "NATS_CREDS",
  nkey: "NATS_NKEY",
  tlsCa: "NATS_CA",
  tlsCert: "NATS_CERT",
  tlsKey: "NATS_KEY",
  inboxPrefix: "NATS_INBOX_PREFIX",
  swarm: "WAGGLE_SWARM",
  project: "WAGGLE_PROJECT",
  user: "WAGGLE_USER",
  dataFolder: "WAGGLE_DATA_FOLDER",
  name: "WAGGLE_NAME",
  leaderTimeout: "WAGGLE_LEADER_TIMEOUT",
  replicas: "WAGGLE_REPLICAS",
  retain: "WAGGLE_RETAIN",
  tokenKeyFile: "WAGGLE_TOKEN_KEY_FILE",
  declarationsFile: "WAGGLE_DECLARATIONS_FILE",
  operatorConfig: "WAGGLE_OPERATOR_CONFIG",
  logLevel: "WAGGLE_LOG_LEVEL",
} as const satisfies Record<keyof SettingNames, string>;

export type SettingName = keyof SettingNames;
const settingNames = Object.keys(environmentVariables) as SettingName[];

/** The rights of a credential, which `waggle auth` writes beside it. */
type OnlyInFile = "projectOnly" | "queriesOnly";

/** A source of settings: flags, environment or file. Paths are relative to `folder`. */
interface Layer {
  readonly values: Partial<Record<SettingName | OnlyInFile, unknown>>;
  readonly folder: string;
  readonly nameOf: (name: SettingName) => string;
}

/** Where a value came from. */
export interface SettingOrigin {
  readonly kind: "flag" | "environment" | "file" | "default";
  /** Flag, variable or absolute path of the file; absent for a default. */
  readonly name?: string;
}

/** A layer of the command line: each value has an origin to show. */
interface ShownLayer extends Layer {
  readonly originOf: (name: SettingName) => SettingOrigin;
}

/** @throws InvalidConfigError naming the wrong flag, variable or field */
export function loadSettings(sources: SettingsSources): Settings {
  const layers = settingLayers(sources);
  const settings = settingsOf(layers, sources.cwd);
  const isSaid = (name: OnlyInFile) => layers.some(({ values }) => values[name] === true);
  const rights = { projectOnly: isSaid("projectOnly"), queriesOnly: isSaid("queriesOnly") };
  const insecure = sources.flags.insecure === true || permitsPlainSecrets(sources.env);
  return { ...settings, ...rights, insecure, user: settings.user ?? accountName() };
}

/** The sources in order of precedence. */
export function settingLayers(sources: SettingsSources): readonly ShownLayer[] {
  const [flags, environment, file] = [flagLayer(sources), environmentLayer(sources), fileLayer(sources)];
  return [
    { ...flags, originOf: (name) => ({ kind: "flag", name: flags.nameOf(name) }) },
    { ...environment, originOf: (name) => ({ kind: "environment", name: environment.nameOf(name) }) },
    { ...file, originOf: () => ({ kind: "file", name: file.path }) },
  ];
}

export interface ProgramSources extends Pick<SettingsSources, "env" | "cwd"> {
  readonly options: { readonly [Name in keyof SettingNames]: SettingNames[Name] | undefined };
}

/** Variables that a program does not read. */
const coordinatorsOwn = [
  "name",
  "leaderTimeout",
  "replicas",
  "retain",
  "tokenKeyFile",
  "declarationsFile",
  "operatorConfig",
  "logLevel",
] as const;
/** Settings of verbs that run a coordinator or a dashboard. */
type CoordinatorsOwn =
  | "name"
  | "leaderTimeoutMs"
  | "replicas"
  | "retention"
  | "tokenKeyFile"
  | "declarationsFile"
  | "operatorConfig";

/** Settings of a program: it leads nothing, has its own log, and may have no user.
 *  @throws InvalidConfigError naming the wrong option or variable */
export function programSettings(sources: ProgramSources): ProgramSettings {
  const { values, ...environment } = environmentLayer(sources);
  const read = { ...values };
  for (const name of coordinatorsOwn) delete read[name];
  const options: Layer = { values: sources.options, folder: sources.cwd, nameOf: (name) => name };
  const settings = settingsOf([options, { ...environment, values: read }], sources.cwd);
  return { ...settings, insecure: permitsPlainSecrets(sources.env) };
}

export type ProgramSettings = Omit<SaidSettings, CoordinatorsOwn | "logLevel"> & Pick<Settings, "insecure">;

/** Not in the file: whoever shares a folder should not weaken others' connections. @throws InvalidConfigError */
function permitsPlainSecrets({ WAGGLE_INSECURE: said = "" }: SettingsSources["env"]): boolean {
  if (said === "" || said === "1") return said === "1";
  throw new InvalidConfigError("WAGGLE_INSECURE: must be 1, or unset", { field: "WAGGLE_INSECURE" });
}

type SaidSettings = Omit<Settings, "user" | "insecure" | OnlyInFile> & {
  readonly user: string | undefined;
};

function settingsOf(layers: readonly Layer[], cwd: string): SaidSettings {
  for (const layer of layers) checkLayer(layer);

  const text = (name: SettingName) => layers.map((layer) => layer.values[name]).find(isText);
  const path = (name: SettingName) => {
    const layer = layers.find(({ values }) => isText(values[name]));
    return layer === undefined ? undefined : resolve(layer.folder, String(layer.values[name]));
  };
  return {
    ...serverOf(layers),
    credentials: credentialsOf(path),
    inboxPrefix: text("inboxPrefix"),
    swarm: text("swarm") ?? "default",
    project: text("project") ?? DEFAULT_PROJECT,
    user: text("user"),
    dataFolder: path("dataFolder") ?? resolve(cwd, ".waggle"),
    name: text("name"),
    leaderTimeoutMs: durationIn(text("leaderTimeout") ?? ""),
    replicas: numberOf(layers, "replicas"),
    retention: retentionIn(text("retain") ?? "") ?? defaultRetention,
    tokenKeyFile: path("tokenKeyFile"),
    declarationsFile: path("declarationsFile"),
    operatorConfig: path("operatorConfig"),
    logLevel: text("logLevel") as LogLevel | undefined,
  };
}

/** A number in the file, digits elsewhere; checked before. */
function numberOf(layers: readonly Layer[], name: SettingName): number | undefined {
  const said = layers.map(({ values }) => values[name]).find((value) => value !== undefined);
  return said === undefined ? undefined : Number(said);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

/** URL and context exclude each other: the first source with either decides. */
function serverOf(layers: readonly Layer[]): Pick<Settings, "nats" | "natsContext"> {
  for (const { values, nameOf } of layers) {
    const { nats, natsContext } = values;
    if (isText(nats) && isText(natsContext)) {
      const names = `${nameOf("nats")} and ${nameOf("natsContext")}`;
      throw new InvalidConfigError(`${names} exclude each other: both name the server`, {
        field: nameOf("natsContext"),
      });
    }
    if (isText(nats)) return { nats, natsContext: undefined };
    if (isText(natsContext)) return { nats: undefined, natsContext };
  }
  return { nats: undefined, natsContext: undefined };
}

function credentialsOf(path: (name: SettingName) => string | undefined): Credentials | undefined {
  const tls = present({ ca: path("tlsCa"), cert: path("tlsCert"), key: path("tlsKey") });
  return present({ creds: path("creds"), nkey: path("nkey"), tls });
}

/** The object without undefined members; undefined if no member is left. */
function present<Value extends Record<string, unknown>>(
  value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } | undefined {
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries) as { [Key in keyof Value]?: Exclude<Value[Key], undefined> };
}

/** The account's name, made to fit; containers may run under a number without a name. */
function accountName(): string {
  try {
    const { username } = userInfo();
    return NAME_PATTERN.test(username) ? username : "anonymous";
  } catch {
    return "anonymous"; // no entry for this account
  }
}

// --- the sources ------------------------------------------------------------------------------------

function flagLayer({ flags, cwd }: SettingsSources): Layer {
  const values: Layer["values"] = {};
  for (const name of settingNames) if (flags[name] !== undefined) values[name] = flags[name];
  return {
    values,
    folder: cwd,
    nameOf: (name) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
  };
}

/** An empty variable counts as absent, because shells and compose files unset variables with empty text. */
function environmentLayer({ env, cwd }: Pick<SettingsSources, "env" | "cwd">): Layer {
  const values: Layer["values"] = {};
  for (const name of settingNames) {
    const value = env[environmentVariables[name]];
    if (value !== undefined && value !== "") values[name] = value;
  }
  return { values, folder: cwd, nameOf: (name) => environmentVariables[name] };
}

function fileLayer({ flags, env, cwd }: SettingsSources): Layer & { readonly path: string } {
  const named = flags.config ?? (env["WAGGLE_CONFIG"] || undefined);
  const file = resolve(cwd, named ?? CONFIG_FILE);
  const config = readConfig(file, named !== undefined);
  const { credentials, ...plain } = config;
  return {
    values: {
      ...plain,
      creds: credentials?.creds,
      nkey: credentials?.nkey,
      tlsCa: credentials?.tls?.ca,
      tlsCert: credentials?.tls?.cert,
      tlsKey: credentials?.tls?.key,
    },
    folder: dirname(file),
    path: file,
    nameOf: (name) => `${name} in ${named ?? CONFIG_FILE}`,
  };
}

/** The file's settings; none without a file, unless the file was named. */
function readConfig(file: string, mustExist: boolean): Omit<Config, "$schema"> {
  const source = readSource(file, mustExist);
  if (source === undefined) return {};
  const checked = configSchema.safeParse(parseSource(file, source));
  if (!checked.success) throw configError(file, checked.error.issues[0]);
  const { $schema: _, ...config } = checked.data;
  return config;
}

function readSource(file: string, mustExist: boolean): string | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    const isAbsent = (cause as NodeJS.ErrnoException).code === "ENOENT";
    if (isAbsent && !mustExist) return undefined;
    const why = isAbsent ? "there is no such file" : String((cause as Error).message);
    throw new InvalidConfigError(`cannot read ${file}: ${why}`, { cause });
  }
  const line = lineNotUtf8(bytes);
  if (line !== undefined) throw new InvalidConfigError(`${file}:${line}: not UTF-8`);
  return bytes.toString("utf8");
}

function parseSource(file: string, source: string): unknown {
  try {
    return JSON.parse(source.replace(/^\uFEFF/, ""));
  } catch (cause) {
    throw new InvalidConfigError(`${file} is not JSON: ${(cause as Error).message}`, { cause });
  }
}

interface Issue {
  readonly code?: string | undefined;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly keys?: readonly string[];
}

function configError(file: string, issue: Issue | undefined): InvalidConfigError {
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys?.[0] : undefined;
  const field = [...(issue?.path ?? []), ...(unknown === undefined ? [] : [unknown])].map(String).join(".");
  const known = Object.keys(configSchema.shape).filter((name) => name !== "$schema");
  const message =
    unknown === undefined ? issue?.message : `is no setting. The settings are ${known.join(", ")}`;
  return new InvalidConfigError(`${file}: ${field === "" ? "" : `${field}: `}${message ?? "is not valid"}`, {
    field,
  });
}

/** Flags and variables are checked as the file's fields are; the file was already. */
function checkLayer({ values, nameOf }: Layer): void {
  for (const name of settingNames) {
    if (values[name] === undefined) continue;
    const checked = checkedBy[name].safeParse(values[name]);
    if (checked.success) continue;
    const message = checked.error.issues[0]?.message ?? "is not valid";
    throw new InvalidConfigError(`${nameOf(name)}: ${message}`, { field: nameOf(name) });
  }
}

const { shape } = configSchema;
const checkedBy: Record<SettingName, z.ZodType> = {
  nats: shape.nats,
  natsContext: shape.natsContext,
  creds: credentialsSchema.shape.creds,
  nkey: credentialsSchema.shape.nkey,
  tlsCa: tlsSchema.shape.ca,
  tlsCert: tlsSchema.shape.cert,
  tlsKey: tlsSchema.shape.key,
  inboxPrefix: shape.inboxPrefix,
  swarm: shape.swarm,
  project: shape.project,
  user: shape.user,
  dataFolder: shape.dataFolder,
  name: shape.name,
  leaderTimeout: shape.leaderTimeout,
  replicas: shape.replicas,
  retain: shape.retain,
  tokenKeyFile: shape.tokenKeyFile,
  declarationsFile: shape.declarationsFile,
  operatorConfig: shape.operatorConfig,
  logLevel: shape.logLevel,
};
