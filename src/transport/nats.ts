// The transport over NATS: any nats-server, or the development broker. Also opens connections for the JetStream
// journal, which has its own.
//
// Requests are multiplexed here. The client library's requests cost two promises and a timer each, and after a
// broken connection they wait for their timeout. Messages published during a reconnect are kept here; the
// library drops them.

import { readFile } from "node:fs/promises";
import {
  type Authenticator,
  AuthorizationError,
  type ConnectionOptions,
  connect,
  createInbox,
  type Msg,
  type NatsConnection,
  PermissionViolationError,
  type Status,
  UserAuthenticationExpiredError,
  usernamePasswordAuthenticator,
} from "@nats-io/transport-node";
import { unreachable } from "../assert.ts";
import { systemClock } from "../clock.ts";
import {
  InvalidConfigError,
  InvalidMessageError,
  InvariantError,
  UnauthorizedError,
  UnreachableError,
} from "../errors.ts";
import { limits } from "../limits.ts";
import { Listeners } from "../listeners.ts";
import { explainConnectFailure } from "./connect-failure.ts";
import { callHandler } from "./handler.ts";
import { KeptPublishes } from "./kept-publishes.ts";
import { credsLogin, jwtLogin, nkeyLogin } from "./login/nats.ts";
import { MutualProof } from "./mutual-proof.ts";
import { ended, OpenRequests } from "./open-requests.ts";
import { checkOutgoing, checkSubject } from "./outgoing.ts";
import { ReconnectDelay } from "./reconnect-delay.ts";
import { RefusedLogin } from "./refused-login.ts";
import { ReplyInbox } from "./reply-inbox.ts";
import {
  describeAddress,
  placeOf,
  refusePlainSecrets,
  type ServerAddress,
  type ServerCredentials,
  type ServerTls,
} from "./server-address.ts";
import { isValidPattern } from "./subject-index.ts";
import type {
  ConnectionStatus,
  Forbidden,
  Message,
  RequestOptions,
  RequestOutcome,
  SubscribeOptions,
  Subscription,
  Transport,
  Violation,
} from "./transport.ts";
import { settledWithin, unlessAborted } from "./waiting.ts";

export interface NatsOptions extends ServerAddress {
  /** Name of the connection in the server's list. */
  readonly name: string;
  /** Default `_INBOX`. Users with restricted permissions need permission for the prefix. */
  readonly inboxPrefix?: string;
  /** Aborts the first connect, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Called with errors that the server reports, mostly permissions. For logs: no other call reports them. */
  readonly onError?: (error: Error) => void;
}

/** Facts that the server announced on connecting. */
export interface ServerFacts {
  readonly name: string;
  readonly version: string;
  /** True if the server has JetStream; the account may still lack it. */
  readonly hasJetStream: boolean;
  readonly maxPayloadBytes: number;
  /** Address that the server listens on; `0.0.0.0`: all interfaces. */
  readonly host: string;
  /** True if this connection is encrypted. */
  readonly isEncrypted: boolean;
}

export interface NatsTransport extends Transport {
  /** The server of the latest connection. */
  server(): ServerFacts;
}

/** Connects once and fails fast; after the first connection, reconnects without limit.
 *  @throws UnreachableError, InvalidConfigError; neither holds credentials */
export async function connectNats(options: NatsOptions): Promise<NatsTransport> {
  const { connection, proof } = await open(options);
  return new WireTransport(connection, { ...options, proof });
}

/** As `connectNats`, but returns the library's connection. Close it with `close()`.
 *  @throws UnreachableError, InvalidConfigError; neither holds credentials */
export async function openNatsConnection(options: NatsOptions): Promise<NatsConnection> {
  return (await open(options)).connection;
}

interface Opened {
  readonly connection: NatsConnection;
  readonly proof: MutualProof | undefined;
}

async function open(options: NatsOptions): Promise<Opened> {
  options.signal?.throwIfAborted();
  refusePlainSecrets(options);
  const reconnectDelay = new ReconnectDelay();
  const proof = proofFor(options);
  const connectionOptions = await toConnectionOptions(options, { reconnectDelay, proof });
  const opening = connect(connectionOptions).catch((cause: unknown) => {
    throw explainConnectFailure(cause, options);
  });
  const connection = await unlessAborted(opening, options.signal, (late) => late.close());
  if (proof?.isGivenBy(connection.info) === false) {
    await connection.close();
    throw notTheBroker(options);
  }
  void reconnectDelay.follow(connection.status());
  return { connection, proof };
}

function proofFor({ urls, credentials }: ServerAddress): MutualProof | undefined {
  const ports = urls.map((url) => Number(new URL(url).port));
  if (credentials?.kind === "token")
    return new MutualProof({ secret: credentials.token, ports, isRequired: false });
  if (credentials?.kind === "secret")
    return new MutualProof({ secret: credentials.secret, ports, isRequired: true });
  return undefined;
}

function notTheBroker(address: ServerAddress): UnreachableError {
  return new UnreachableError(
    `the process at ${describeAddress(address)} does not know the broker's secret, and received nothing: it is not ` +
      "the broker of this data folder. End that process, then run `waggle up`",
  );
}

interface WireOptions extends NatsOptions {
  readonly proof: MutualProof | undefined;
}

class WireTransport implements NatsTransport {
  readonly inboxPrefix: string;
  readonly servers: readonly string[];
  readonly #connection: NatsConnection;
  readonly #options: WireOptions;
  readonly #onError: (error: Error) => void;
  readonly #inbox: ReplyInbox;
  /** Resolves when the server has permitted or refused the inbox. Until then requests are not sent, so a request whose
   *  answer could not arrive does nothing. */
  #permission: Promise<void> | undefined;
  readonly #requests = new OpenRequests<Forbidden>(systemClock);
  readonly #kept = new KeptPublishes();
  readonly #listeners = new Listeners<[ConnectionStatus]>();
  #status: ConnectionStatus = "connected";
  #facts: ServerFacts;
  #closing: Promise<void> | undefined;
  readonly #login = new RefusedLogin(() => systemClock.monotonicMs());
  #closedBy: UnauthorizedError | undefined;

  constructor(connection: NatsConnection, options: WireOptions) {
    const { inboxPrefix = DEFAULT_INBOX_PREFIX, onError } = options;
    this.inboxPrefix = inboxPrefix;
    this.servers = options.urls.map(placeOf);
    this.#options = options;
    this.#connection = connection;
    this.#onError = onError ?? (() => undefined);
    this.#inbox = new ReplyInbox(createInbox(inboxPrefix), (pattern) => this.#listenForAnswers(pattern));
    this.#facts = factsOf(connection);
    void this.#watch();
  }

  get maxPayloadBytes(): number {
    return this.#facts.maxPayloadBytes;
  }

  server(): ServerFacts {
    return this.#facts;
  }

  publish(subject: string, data: Uint8Array, reply?: string): void {
    checkOutgoing(subject, data, this.maxPayloadBytes);
    if (reply !== undefined) checkSubject(reply);
    if (this.#status === "connected") this.#send(subject, data, reply);
    else if (this.#status === "reconnecting") this.#kept.keep({ subject, data, reply });
  }

  async request(
    subject: string,
    data: Uint8Array,
    options: RequestOptions,
  ): Promise<RequestOutcome | Forbidden> {
    checkOutgoing(subject, data, this.maxPayloadBytes);
    if (this.#status !== "connected") return ended.disconnected;
    if (options.signal?.aborted) return ended.timeout;
    this.#inbox.open();
    const { token, outcome } = this.#requests.open(options, subject);
    const send = () => this.#send(subject, data, this.#inbox.replyTo(token));
    if (this.#permission === undefined) send();
    else
      void this.#permission.then(() => {
        if (this.#requests.isOpen(token)) send();
      });
    return await outcome;
  }

  subscribe(
    subject: string,
    handler: (message: Message) => void,
    { queue, onForbidden }: SubscribeOptions = {},
  ): Subscription {
    if (!isValidPattern(subject)) throw new InvalidMessageError(`not a subject: ${JSON.stringify(subject)}`);
    if (this.#status === "closed") return deadSubscription;
    const subscription = this.#connection.subscribe(subject, {
      ...(queue === undefined ? {} : { queue }),
      callback: (error, message) => {
        if (error !== null) this.#refused(error, onForbidden);
        else if (this.#mayReach(message)) callHandler(handler, new WireMessage(message));
      },
    });
    return { unsubscribe: () => subscription.unsubscribe() };
  }

  get closedBy(): UnauthorizedError | undefined {
    return this.#closedBy;
  }

  onStatus(listener: (status: ConnectionStatus) => void): () => void {
    return this.#listeners.add(listener);
  }

  status(): ConnectionStatus {
    return this.#status;
  }

  async flush(): Promise<void> {
    if (this.#status !== "connected") throw new UnreachableError(`cannot flush while ${this.#status}`);
    const closed = this.#connection.closed().then(() => {
      throw new UnreachableError("the connection was closed before the server had everything");
    });
    try {
      await Promise.race([this.#connection.flush(), closed]);
    } catch (cause) {
      if (cause instanceof UnreachableError) throw cause;
      throw new UnreachableError("the connection broke before the server had everything", { cause });
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const isConnected = this.#status === "connected";
    this.#become("closed");
    if (isConnected) await settledWithin(this.#connection.flush(), limits.closeFlushMs);
    await this.#connection.close();
  }

  #send(subject: string, data: Uint8Array, reply: string | undefined): void {
    this.#connection.publish(subject, data, reply === undefined ? undefined : { reply });
  }

  /** False after closing, and for the server's reply that a `publish` with a reply subject had no receiver. */
  #mayReach(message: Msg): boolean {
    return this.#status !== "closed" && !isNoResponders(message) && this.#isProven();
  }

  /** False after a reconnect to a process that is not the broker. */
  #isProven(): boolean {
    return this.#status === "connected" || this.#options.proof?.isGivenBy(this.#connection.info) !== false;
  }

  /** A subscription ended: forbidden by the server's permissions, or with the connection. */
  #refused(error: Error, onForbidden: SubscribeOptions["onForbidden"]): void {
    const violation = violationIn(error);
    if (violation === undefined) this.#onError(error);
    else onForbidden?.(violation);
  }

  /** Subscriptions get their own violations as well; the log gets all errors. */
  #complain(error: Error): void {
    const violation = violationIn(error);
    if (violation?.operation === "publish")
      this.#requests.settleOf(violation.subject, { kind: "forbidden", ...violation });
    this.#onError(error);
  }

  #listenForAnswers(pattern: string): void {
    this.#connection.subscribe(pattern, {
      callback: (error, message) => {
        if (error === null) return this.#answer(message);
        this.#inbox.forget();
        const violation = violationIn(error);
        if (violation === undefined) return this.#onError(error);
        const isUnsent = this.#permission !== undefined;
        this.#requests.settleOf(undefined, { kind: "forbidden", ...violation, isUnsent }); // no answer can be received
      },
    });
    this.#awaitPermission();
  }

  /** The server answers in order: behind the subscription, an answer to the ping says that no refusal comes. */
  #awaitPermission(): void {
    const permission = this.#connection
      .flush()
      .catch(() => undefined) // the connection broke, and with it ended all requests
      .then(() => {
        if (this.#permission === permission) this.#permission = undefined;
      });
    this.#permission = permission;
  }

  #answer(message: Msg): void {
    const outcome = isNoResponders(message)
      ? ended["no-responders"]
      : ({ kind: "answered", data: message.data } as const);
    this.#requests.settle(this.#inbox.tokenOf(message.subject), outcome);
  }

  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) this.#follow(status);
    this.#become("closed");
  }

  #follow(status: Status): void {
    switch (status.type) {
      case "disconnect":
        this.#become("reconnecting");
        break;
      case "reconnect":
        if (!this.#isProven()) return this.#leaveStranger();
        this.#facts = factsOf(this.#connection);
        this.#login.accepted();
        if (this.#inbox.isOpen) this.#awaitPermission();
        this.#become("connected");
        break;
      case "error":
        this.#complain(status.error);
        if (isRefusedLogin(status.error) && this.#login.refused()) this.#leaveRefused(status.error);
        break;
      default:
        break; // pings, cluster changes and similar events do not change the status
    }
  }

  /** Nothing was sent but subscriptions. Connects again, later. */
  #leaveStranger(): void {
    this.#onError(notTheBroker(this.#options));
    void this.#connection.reconnect();
  }

  #leaveRefused(cause: Error): void {
    if (this.#status === "closed") return;
    this.#closedBy = refusedLoginError(this.#options, cause);
    void this.close();
  }

  #become(status: ConnectionStatus): void {
    if (this.#status === status || this.#status === "closed") return;
    this.#status = status;
    if (status === "connected") this.#sendKept();
    else this.#requests.settleAll("disconnected");
    this.#listeners.notify(status);
  }

  #sendKept(): void {
    for (const { subject, data, reply } of this.#kept.take()) {
      // The new server's maximum may be smaller.
      if (data.length <= this.maxPayloadBytes) this.#send(subject, data, reply);
    }
  }
}

/** Decodes a subject only when the handler reads it. */
class WireMessage implements Message {
  readonly #message: Msg;

  constructor(message: Msg) {
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get data(): Uint8Array {
    return this.#message.data;
  }

  get reply(): string | undefined {
    return this.#message.reply || undefined;
  }
}

/** Whether a server refused the credentials: see `RefusedLogin`. */
export function isRefusedLogin(error: Error): boolean {
  return error instanceof AuthorizationError || error instanceof UserAuthenticationExpiredError;
}

/** The error of a connection that ends because the server refuses its credentials for good. */
export function refusedLoginError(address: ServerAddress, cause: Error): UnauthorizedError {
  return new UnauthorizedError(
    `NATS at ${describeAddress(address)} refuses formerly accepted credentials (${cause.message}): ` +
      "the credentials were revoked or have expired. Get new credentials from the server's operator, and start again",
    { cause },
  );
}

const DEFAULT_INBOX_PREFIX = "_INBOX";
const deadSubscription: Subscription = { unsubscribe: () => undefined };

/** Converts the client library's permission error; undefined for other errors. */
export function violationIn(error: Error): Violation | undefined {
  if (!(error instanceof PermissionViolationError)) return undefined;
  return { operation: error.operation === "subscription" ? "subscribe" : "publish", subject: error.subject };
}

/** The server's own message in place of an answer. */
function isNoResponders(message: Msg): boolean {
  return message.data.length === 0 && message.headers?.code === 503;
}

function factsOf(connection: NatsConnection): ServerFacts {
  const { info } = connection;
  return {
    name: info?.server_name ?? "",
    version: info?.version ?? "",
    hasJetStream: info?.jetstream === true,
    maxPayloadBytes: info?.max_payload ?? limits.maxPayloadBytesDefault,
    host: info?.host ?? "",
    // The library encrypts wherever the server offers it.
    isEncrypted: info?.tls_required === true || info?.tls_available === true,
  };
}

/** The library has the option, and its types do not. Its default of 32 KiB cuts the messages of a full turn into
 *  several writes. */
const writing: object = { pendingLimit: limits.writeBytesMin };

/** @throws InvalidConfigError */
async function toConnectionOptions(
  options: NatsOptions,
  {
    reconnectDelay,
    proof,
  }: { readonly reconnectDelay: ReconnectDelay; readonly proof: MutualProof | undefined },
): Promise<ConnectionOptions> {
  const { credentials, tls, inboxPrefix = DEFAULT_INBOX_PREFIX } = options;
  if (tls !== undefined) await checkTlsFiles(tls);
  return {
    servers: options.urls.map((url) => url.replace(/^.*:\/\//, "")),
    name: options.name,
    inboxPrefix,
    ...(credentials === undefined ? {} : { authenticator: await authenticatorOf(credentials, proof) }),
    ...(tls === undefined ? {} : { tls }),
    timeout: limits.connectTimeoutMs,
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => reconnectDelay.delayMs,
    ignoreAuthErrorAbort: true, // a server that is being replaced may refuse the credentials temporarily
    pingInterval: limits.clientPingMs,
    maxPingOut: limits.clientPingsMax,
    noAsyncTraces: true,
    ...writing,
  };
}

async function checkTlsFiles({ caFile, certFile, keyFile }: ServerTls): Promise<void> {
  if (caFile !== undefined) await readSecret(caFile, "CA certificate");
  if (certFile !== undefined) await readSecret(certFile, "client certificate");
  if (keyFile !== undefined) await readSecret(keyFile, "client key");
}

/** @throws InvalidConfigError */
async function authenticatorOf(
  credentials: ServerCredentials,
  proof: MutualProof | undefined,
): Promise<Authenticator> {
  if (proof !== undefined) return (nonce) => proof.login(nonce);
  switch (credentials.kind) {
    case "token":
    case "secret":
      throw new InvariantError("a secret logs in by a mutual proof");
    case "password":
      return usernamePasswordAuthenticator(credentials.user, credentials.password);
    case "creds": {
      const { file } = credentials;
      const text = await readSecret(file, "creds");
      const needs = "must hold a JWT and a seed, each between two lines of dashes";
      return wellFormed(() => credsLogin(text), `the creds file ${file} ${needs}`);
    }
    case "nkey-file": {
      const { file } = credentials;
      const seed = (await readSecret(file, "nkey")).trim();
      return wellFormed(() => nkeyLogin(seed), `the nkey file ${file} ${needsSeed}`);
    }
    case "nkey":
      return wellFormed(() => nkeyLogin(credentials.seed), `the nkey for NATS ${needsSeed}`);
    case "jwt":
      return wellFormed(() => jwtLogin(credentials.jwt, credentials.seed), `the login by JWT ${needsSeed}`);
    default:
      return unreachable(credentials);
  }
}

const needsSeed = "must hold the seed of a user, which begins with SU";

/** @throws InvalidConfigError with the sentence. The login's own reason may quote the secret. */
function wellFormed(login: () => Authenticator, otherwise: string): Authenticator {
  const authenticator = ifWellFormed(login);
  if (authenticator === undefined) throw new InvalidConfigError(otherwise);
  return authenticator;
}

function ifWellFormed(login: () => Authenticator): Authenticator | undefined {
  try {
    return login();
  } catch {
    return undefined;
  }
}

async function readSecret(path: string, what: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new InvalidConfigError(`cannot read the ${what} file ${path}`, { cause });
  }
}
