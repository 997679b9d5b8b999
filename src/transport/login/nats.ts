// Logins with Ed25519 keys of NATS (nkeys): the fields of CONNECT in which a client signs the server's nonce. Signs
// with Node's own cryptography. The signatures of the client library are written in JavaScript, and cost a short
// command a fifth of its time. Not here: making keys (src/auth), passwords and mutual proofs.

import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { Prefix } from "@nats-io/nkeys";
import { Codec } from "@nats-io/nkeys/lib/codec.js";
import type { Authenticator } from "@nats-io/transport-node";

interface KeyPair {
  /** For a user: `U…`. */
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

/**
 * @param seed for a user: `SU…`
 * @throws Error for text that is no seed; the message does not repeat the text
 */
export function nkeyLogin(seed: string): Authenticator {
  const { publicKey, privateKey } = keyPairOf(seed);
  return (nonce) => ({ nkey: publicKey, sig: nonce === undefined ? "" : signatureOf(nonce, privateKey) });
}

/** @param seed of the JWT's user; absent for a bearer. @throws Error for a seed that is none */
export function jwtLogin(jwt: string, seed?: string): Authenticator {
  const login = seed === undefined ? () => ({ nkey: "", sig: "" }) : nkeyLogin(seed);
  return (nonce) => ({ jwt, ...login(nonce) });
}

/** @param text of a credentials file: a JWT and a seed, each between two lines of dashes. @throws Error without both */
export function credsLogin(text: string): Authenticator {
  const [jwt, seed] = [...text.matchAll(FRAMED)].map(([, framed = ""]) => framed.trim());
  if (jwt === undefined || seed === undefined)
    throw new Error("credentials hold a JWT and a seed, and one of them is missing");
  return jwtLogin(jwt, seed);
}

/** @throws Error for text that is no seed; the message does not repeat the text */
export function publicKeyOf(seed: string): string {
  return keyPairOf(seed).publicKey;
}

/** One line between two lines that begin and end with dashes, such as `-----BEGIN NATS USER JWT-----`. */
const FRAMED = /^[^\S\n]*-{3}[^\n]*-{3}\s*\n(.+)\r?\n\s*-{3}[^\n]*-{3}/gm;

/** PKCS #8 before the 32 bytes of a private key of Ed25519 (RFC 8410, section 7). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
/** Length of a private or public key. The public key ends its SPKI form (RFC 8410, section 4). */
const KEY_BYTES = 32;

function keyPairOf(seed: string): KeyPair {
  const { prefix, buf } = Codec.decodeSeed(new TextEncoder().encode(seed));
  if (buf.length !== KEY_BYTES || prefix === Prefix.Curve)
    throw new Error("not the seed of a key that signs");
  const privateKey = createPrivateKey({
    key: Buffer.concat([PKCS8_HEAD, buf]),
    format: "der",
    type: "pkcs8",
  });
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  const publicKey = new TextDecoder().decode(Codec.encode(prefix, spki.subarray(-KEY_BYTES)));
  return { publicKey, privateKey };
}

function signatureOf(nonce: string, privateKey: KeyObject): string {
  return sign(null, Buffer.from(nonce), privateKey).toString("base64");
}
