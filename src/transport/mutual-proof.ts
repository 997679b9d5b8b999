// How a client and the development broker prove to each other that they know the data folder's secret. The secret
// never travels: each side answers the other's random text with an HMAC-SHA256. The broker's text names its port, so
// a process at a different port cannot pass the answers on. docs/protocol.md has the form on the wire.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export interface Handshake {
  readonly secret: string;
  /** Port and random text of the broker, from INFO. */
  readonly nonce: string;
  /** Random text of the client, from CONNECT. Empty: the client wants no proof. */
  readonly challenge: string;
}

/** The client's `auth_token`: 64 hexadecimal digits. */
export function clientAnswer(handshake: Handshake): string {
  return hmac("client", handshake);
}

/** The broker's `proof` in the INFO after CONNECT: 64 hexadecimal digits. */
export function brokerProof(handshake: Handshake): string {
  return hmac("broker", handshake);
}

/** A nonce that only development brokers send: `waggle-<port>-<random>`. */
export function freshNonce(port: number): string {
  return `waggle-${port}-${randomText()}`;
}

/** Without a hint of where the texts differ. */
export function isSameText(one: string, other: string): boolean {
  const [first, second] = [Buffer.from(one), Buffer.from(other)];
  return first.length === second.length && timingSafeEqual(first, second);
}

export interface MutualProofOptions {
  readonly secret: string;
  /** Ports that the client may have dialled. */
  readonly ports: readonly number[];
  /** True: the server must be a development broker. False: another server gets the secret as a token. */
  readonly isRequired: boolean;
}

/** The client's side, for one connection and its reconnects. */
export class MutualProof {
  readonly #options: MutualProofOptions;
  #expected: string | undefined;

  constructor(options: MutualProofOptions) {
    this.#options = options;
  }

  /** Fields of CONNECT. Never throws, because the client library would then close the connection for good. A server
   *  that must be a development broker and is not gets nothing, and gives no proof. */
  login(nonce: string | undefined): { readonly auth_token: string; readonly challenge?: string } {
    const { secret, ports, isRequired } = this.#options;
    this.#expected = undefined;
    const port = /^waggle-(\d+)-/.exec(nonce ?? "")?.[1];
    if (nonce === undefined || port === undefined) return { auth_token: isRequired ? "" : secret };
    if (!ports.includes(Number(port))) return { auth_token: "" };
    const handshake = { secret, nonce, challenge: randomText() };
    this.#expected = brokerProof(handshake);
    return { auth_token: clientAnswer(handshake), challenge: handshake.challenge };
  }

  /** @param info the server's latest INFO */
  isGivenBy(info: object | null | undefined): boolean {
    if (this.#expected === undefined) return !this.#options.isRequired;
    const proof: unknown = info === null || info === undefined ? "" : Reflect.get(info, "proof");
    return typeof proof === "string" && isSameText(proof, this.#expected);
  }
}

function randomText(): string {
  return randomBytes(16).toString("base64url");
}

function hmac(side: "client" | "broker", { secret, nonce, challenge }: Handshake): string {
  return createHmac("sha256", secret).update(`${side}\n${nonce}\n${challenge}`).digest("hex");
}
