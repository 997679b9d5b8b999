// The server named by the user: with --nats or NATS_URL, or by a context of the nats tool. Only reads the
// settings; connecting shows whether the server exists.

import { describeAddress, parseServerUrls, type ServerAddress } from "../transport/server-address.ts";
import { type Environment, readNatsContext } from "./nats-context.ts";

export interface NamedServerOptions {
  /** One or several URLs, from --nats or NATS_URL. */
  readonly nats?: string | undefined;
  /** Name of a NATS context. Default: the selected context, if any. */
  readonly natsContext?: string | undefined;
  /** Take precedence over the URL and the context. */
  readonly credentials?: CredentialFiles | undefined;
  /** True: a password or token may go to another machine without encryption. Default false. */
  readonly insecure?: boolean | undefined;
  /** Supplies PATH and the home folder. Default: the process's environment. */
  readonly env?: Environment | undefined;
}

/** Paths of credential files. */
export interface CredentialFiles {
  readonly creds?: string | undefined;
  readonly nkey?: string | undefined;
  readonly tls?:
    | {
        readonly ca?: string | undefined;
        readonly cert?: string | undefined;
        readonly key?: string | undefined;
      }
    | undefined;
}

export interface NamedServer {
  readonly address: ServerAddress;
  readonly inboxPrefix: string | undefined;
  /** Describes the server for users; contains no secrets. */
  readonly sentence: string;
}

/** @returns undefined when no server is named. @throws InvalidConfigError when the named server is not usable */
export async function findNamedServer(options: NamedServerOptions): Promise<NamedServer | undefined> {
  if (options.nats !== undefined) {
    const address = withFiles(parseServerUrls(options.nats, "--nats or NATS_URL"), options);
    return { address, inboxPrefix: undefined, sentence: `NATS at ${describeAddress(address)}` };
  }
  const context = await readNatsContext(options.natsContext, options.env ?? process.env);
  if (context === undefined) return undefined;
  const address = withFiles(context.address, options);
  const sentence = `NATS at ${describeAddress(address)}, from NATS context "${context.name}"`;
  return { address, inboxPrefix: context.inboxPrefix, sentence };
}

function withFiles(
  address: ServerAddress,
  { credentials = {}, insecure = false }: Pick<NamedServerOptions, "credentials" | "insecure">,
): ServerAddress {
  const { creds, nkey, tls } = credentials;
  return {
    ...address,
    ...(insecure ? { allowsPlainSecrets: true } : {}),
    ...(creds === undefined ? {} : { credentials: { kind: "creds", file: creds } }),
    ...(creds !== undefined || nkey === undefined ? {} : { credentials: { kind: "nkey-file", file: nkey } }),
    ...(tls === undefined
      ? {}
      : {
          tls: {
            ...address.tls,
            ...(tls.ca === undefined ? {} : { caFile: tls.ca }),
            ...(tls.cert === undefined ? {} : { certFile: tls.cert }),
            ...(tls.key === undefined ? {} : { keyFile: tls.key }),
          },
        }),
  };
}
