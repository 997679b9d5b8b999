// The folder that is handed to the holder of a credential: its secret, the server's authority, a `waggle.config.json`
// with relative paths for `waggle --config`, and a context for other NATS tools. A coordinator's folder also has the
// key of the attempts' tokens, and the declarations (declarations.ts).

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  type AuthFolder,
  holderFolderOf,
  isThere,
  makePrivateFolder,
  readSecret,
  writeSecret,
} from "./auth-folder.ts";
import { DECLARATIONS_FILE } from "./declarations.ts";
import { type Credential, holderOf, type Roster, swarmIn } from "./roster.ts";

const AUTHORITY_FILE = "ca.pem";

export interface Handed {
  readonly folder: string;
  readonly config: string;
  readonly secret: string;
}

/** @param secret content of the `.creds` or `.nk` file */
export function writeCredentialFiles(
  folder: AuthFolder,
  {
    roster,
    swarm,
    credential,
    secret,
  }: {
    readonly roster: Roster;
    readonly swarm: string;
    readonly credential: Credential;
    readonly secret: string;
  },
): Handed {
  const { mode, hosts, port } = roster;
  const { name, project } = credential;
  const own = holderFolderOf(folder, swarm, name);
  makePrivateFolder(own);
  const nats = hosts.map((host) => `tls://${host.includes(":") ? `[${host}]` : host}:${port}`)[0] ?? "";
  const { inboxPrefix } = holderOf(credential);
  const secretName = mode === "jwt" ? `${name}.creds` : `${name}.nk`;
  const kind = mode === "jwt" ? "creds" : "nkey";
  const write = (file: string, content: string) => {
    const path = join(own, file);
    writeSecret(path, content);
    return path;
  };
  write(AUTHORITY_FILE, readSecret(folder.authorityCertificate) ?? "");
  write(
    "context.json",
    json({
      description: `${credential.role} ${name} of the swarm ${swarm}`,
      url: nats,
      [kind]: join(own, secretName),
      ca: join(own, AUTHORITY_FILE),
      inbox_prefix: inboxPrefix,
    }),
  );
  const isCoordinator = credential.role === "coordinator";
  if (isCoordinator) write("token.key", `${swarmIn(roster, swarm).tokenKey}\n`);
  const config = json({
    nats,
    credentials: { [kind]: `./${secretName}`, tls: { ca: `./${AUTHORITY_FILE}` } },
    inboxPrefix,
    swarm,
    ...(isCoordinator
      ? { tokenKeyFile: "./token.key", declarationsFile: `./${DECLARATIONS_FILE}` }
      : { queriesOnly: true }),
    ...(project === undefined ? {} : { project, projectOnly: true }),
  });
  return {
    folder: own,
    secret: write(secretName, secret.endsWith("\n") ? secret : `${secret}\n`),
    config: write("waggle.config.json", config),
  };
}

/** The server's authority stays: programs that run with the folder need it to reconnect, and to learn that the server
 *  refuses them. */
export function removeCredentialFiles(folder: AuthFolder, swarm: string, name: string): void {
  const own = holderFolderOf(folder, swarm, name);
  if (!isThere(own)) return;
  for (const file of readdirSync(own))
    if (file !== AUTHORITY_FILE) rmSync(join(own, file), { recursive: true, force: true });
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
