// Contexts of the `nats` tool, `~/.config/nats/context/*.json`. NATS users have a context selected and expect
// every tool to use it. Read only.

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { InvalidConfigError } from "../errors.ts";
import { isInboxPrefix } from "../ids.ts";
import { parseServerUrls, type ServerAddress, type ServerCredentials } from "../transport/server-address.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface NatsContext {
  readonly name: string;
  readonly address: ServerAddress;
  readonly inboxPrefix: string | undefined;
}

const text = z.string().trim().optional();
const contextSchema = z.object({
  url: text,
  token: text,
  user: text,
  password: text,
  creds: text,
  nkey: text,
  user_jwt: text,
  user_seed: text,
  nsc: text,
  socks_proxy: text,
  cert: text,
  key: text,
  ca: text,
  tls_first: z.boolean().optional(),
  inbox_prefix: text,
});
type ContextFile = z.infer<typeof contextSchema>;

/** The named context, or the selected context; undefined when neither exists.
 *  @throws InvalidConfigError when the context is missing or not usable */
export async function readNatsContext(
  named: string | undefined,
  env: Environment,
): Promise<NatsContext | undefined> {
  const folder = join(env["XDG_CONFIG_HOME"] || join(homeFolder(env), ".config"), "nats");
  const name = named ?? (await readIfThere(join(folder, "context.txt")))?.trim();
  if (name === undefined || name === "") return undefined;
  if (/[/\\]|^\.+$/.test(name))
    throw new InvalidConfigError(`not the name of a NATS context: ${JSON.stringify(name)}`);
  const file = join(folder, "context", `${name}.json`);
  const content = await readIfThere(file);
  if (content === undefined) throw new InvalidConfigError(missing(name, file, named === undefined));
  return toContext(name, parseContext(file, content), env);
}

function missing(name: string, file: string, isSelected: boolean): string {
  const what = isSelected ? `the selected NATS context "${name}"` : `the NATS context "${name}"`;
  return `${what} does not exist (${file}): \`nats context ls\` lists the existing contexts; --nats names a server instead`;
}

function parseContext(file: string, content: string): ContextFile {
  const parsed = contextSchema.safeParse(parseJson(content));
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new InvalidConfigError(`${file} is not a NATS context${field === "" ? "" : ` (${field})`}`, {
    field,
  });
}

function toContext(name: string, file: ContextFile, env: Environment): NatsContext {
  for (const field of ["nsc", "socks_proxy"] as const) {
    if (file[field]) {
      throw new InvalidConfigError(`NATS context "${name}": ${field} is not supported; use creds or nkey`, {
        field,
      });
    }
  }
  const address = parseServerUrls(file.url || "nats://127.0.0.1:4222", `url of NATS context "${name}"`);
  const credentials = credentialsOf(file, env) ?? address.credentials;
  const tls = tlsOf(file, env) ?? address.tls;
  return {
    name,
    address: {
      urls: address.urls,
      ...(credentials === undefined ? {} : { credentials }),
      ...(tls === undefined ? {} : { tls }),
    },
    inboxPrefix: inboxPrefixOf(name, file),
  };
}

/** Coordinators answer only to inboxes: with any other prefix, all requests would be in vain. */
function inboxPrefixOf(name: string, { inbox_prefix: prefix }: ContextFile): string | undefined {
  if (!prefix) return undefined;
  if (isInboxPrefix(prefix)) return prefix;
  throw new InvalidConfigError(
    `NATS context "${name}": inbox_prefix must begin with _INBOX and a word of A–Z a–z 0–9 _ -, such as _INBOX_ann, and ` +
      `hold no wildcards or spaces; ${JSON.stringify(prefix)} never gets an answer`,
    { field: "inbox_prefix" },
  );
}

function credentialsOf(file: ContextFile, env: Environment): ServerCredentials | undefined {
  if (file.creds) return { kind: "creds", file: expanded(file.creds, env) };
  if (file.nkey) return { kind: "nkey-file", file: expanded(file.nkey, env) };
  if (file.user_jwt)
    return { kind: "jwt", jwt: file.user_jwt, ...(file.user_seed ? { seed: file.user_seed } : {}) };
  if (file.user && file.password) return { kind: "password", user: file.user, password: file.password };
  const token = file.token || file.user;
  return token ? { kind: "token", token } : undefined;
}

function tlsOf(file: ContextFile, env: Environment): ServerAddress["tls"] {
  if (!file.ca && !file.cert && !file.key && file.tls_first !== true) return undefined;
  return {
    ...(file.ca ? { caFile: expanded(file.ca, env) } : {}),
    ...(file.cert ? { certFile: expanded(file.cert, env) } : {}),
    ...(file.key ? { keyFile: expanded(file.key, env) } : {}),
    ...(file.tls_first === true ? { handshakeFirst: true } : {}),
  };
}

function expanded(path: string, env: Environment): string {
  return path.startsWith("~/") ? join(homeFolder(env), path.slice(2)) : path;
}

function homeFolder(env: Environment): string {
  return env["HOME"] || homedir();
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch {
    return undefined; // absent or not readable; callers report it if needed
  }
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return undefined; // refused by the schema; the reason could quote a password
  }
}
