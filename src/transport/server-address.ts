// The address of a server and the user's credentials, as plain data: from flags, NATS_URL, a NATS context or
// broker.json to the code that connects. URLs here have no user part, so they may be printed.

import { isIP } from "node:net";
import { InvalidConfigError } from "../errors.ts";

export interface ServerAddress {
  /** `nats://host:port` or `tls://host:port`, at least one; several for the servers of a cluster. */
  readonly urls: readonly string[];
  readonly credentials?: ServerCredentials;
  /** Present: encryption is required. Absent: encryption is used if the server offers it. */
  readonly tls?: ServerTls;
  /** True: a password or token may go to another machine without encryption. Default false. */
  readonly allowsPlainSecrets?: boolean;
}

export type ServerCredentials =
  /** A development broker never sees the token: client and broker prove to each other that they know it. */
  | { readonly kind: "token"; readonly token: string }
  /** A data folder's secret: as a token, and the server must be the folder's development broker. */
  | { readonly kind: "secret"; readonly secret: string }
  | { readonly kind: "password"; readonly user: string; readonly password: string }
  /** A `.creds` file: JWT and seed. */
  | { readonly kind: "creds"; readonly file: string }
  | { readonly kind: "nkey-file"; readonly file: string }
  | { readonly kind: "nkey"; readonly seed: string }
  /** A user's JWT, with the seed for signing unless it is a bearer token. */
  | { readonly kind: "jwt"; readonly jwt: string; readonly seed?: string };

/** Paths of PEM files. */
export interface ServerTls {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  /** TLS begins before the server sends INFO. */
  readonly handshakeFirst?: boolean;
}

export const NATS_PORT = 4222;

/** Reads `nats://[user:password@ | token@]host[:port]`, or several separated by commas. Errors name `source`
 *  and never repeat the text, which may hold a password.
 *  @throws InvalidConfigError */
export function parseServerUrls(text: string, source: string): ServerAddress {
  const parts = text.split(",").map((part) => part.trim());
  const urls = parts.map((part) => parseUrl(part, source));
  const credentials = urls.map((url) => credentialsOf(url, source)).find((found) => found !== undefined);
  const isEncrypted = urls.some((url) => url.protocol === "tls:");
  return {
    urls: urls.map((url) => `${url.protocol}//${url.hostname}:${url.port || NATS_PORT}`),
    ...(credentials === undefined ? {} : { credentials }),
    ...(isEncrypted ? { tls: {} } : {}),
  };
}

/** `host:port`, with one name for this machine. */
export function placeOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${isLoopback(hostname) ? "localhost" : hostname}:${port || NATS_PORT}`;
}

/** Whether the address is of this machine alone. A name other than `localhost` may be any machine's. */
export function isLoopback(host: string): boolean {
  if (host === "localhost" || host === "::1" || host === "[::1]") return true;
  return isIP(host) === 4 && host.startsWith("127.");
}

/** Without required encryption a server, or whoever poses as one, reads a password or token.
 *  @throws InvalidConfigError if a password or token would go to another machine without encryption */
export function refusePlainSecrets({ urls, credentials, tls, allowsPlainSecrets }: ServerAddress): void {
  if (allowsPlainSecrets === true || tls !== undefined || !isSecretSent(credentials)) return;
  const far = urls.map((url) => new URL(url)).find(({ hostname }) => !isLoopback(hostname));
  if (far === undefined) return;
  throw new InvalidConfigError(
    `a password or token would go to ${far.host} without encryption: write tls://${far.host}, name its authority with ` +
      "--tls-ca, or permit it with --insecure (WAGGLE_INSECURE=1)",
    { field: "--nats" },
  );
}

/** Keys only sign what the server sends; a password, a token or a bearer's JWT is sent itself. */
function isSecretSent(credentials: ServerCredentials | undefined): boolean {
  if (credentials === undefined) return false;
  if (credentials.kind === "jwt") return credentials.seed === undefined;
  return credentials.kind === "token" || credentials.kind === "password";
}

/** For display: `host:port`, several separated by commas. Never contains secrets. */
export function describeAddress({ urls }: ServerAddress): string {
  return urls.map((url) => url.replace(/^.*:\/\//, "")).join(", ");
}

/** Addresses as a user wrote them, with `PASSWORD` or `TOKEN` in place of a secret. */
export function withoutSecrets(text: string): string {
  const secret = /^(\s*(?:\w+:\/\/)?)(?:([^:@]*):)?[^@]*@/;
  const named = (_: string, start: string, user: string | undefined) =>
    user === undefined ? `${start}TOKEN@` : `${start}${user}:PASSWORD@`;
  return text
    .split(",")
    .map((part) => part.replace(secret, named))
    .join(",");
}

function parseUrl(part: string, source: string): URL {
  const url = URL.canParse(withScheme(part)) ? new URL(withScheme(part)) : undefined;
  if (url === undefined || url.hostname === "" || !["nats:", "tls:"].includes(url.protocol)) {
    throw new InvalidConfigError(
      `${source} is not the address of a NATS server. Write it as nats://127.0.0.1:4222, or tls://… for an ` +
        "encrypted connection; separate several with commas.",
    );
  }
  return url;
}

function withScheme(part: string): string {
  return part.includes("://") ? part : `nats://${part}`;
}

function credentialsOf(url: URL, source: string): ServerCredentials | undefined {
  if (url.username === "") return undefined;
  const user = decoded(url.username);
  const password = decoded(url.password);
  if (user === undefined || password === undefined) {
    throw new InvalidConfigError(`${source}: a % in a user or password must be written %25.`);
  }
  return password === "" ? { kind: "token", token: user } : { kind: "password", user, password };
}

function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined; // the reason would repeat the password
  }
}
