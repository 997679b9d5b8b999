// Key pairs of NATS (Ed25519 nkeys), and signatures of JWTs. Knows no claims (claims.ts).

import { createAccount, createOperator, createUser, fromSeed, type KeyPair } from "@nats-io/nkeys";

export interface Keys {
  /** Begins with U, A or O; not secret. */
  readonly publicKey: string;
  /** Begins with S; secret. */
  readonly seed: string;
}

const create = { user: createUser, account: createAccount, operator: createOperator } as const;

export function newKeys(kind: keyof typeof create): Keys {
  return keysOf(create[kind]());
}

/** @throws Error for text that is no seed; the message does not repeat the text */
export function signWith(seed: string, message: Uint8Array): Uint8Array {
  return fromSeed(encoder.encode(seed)).sign(message);
}

function keysOf(pair: KeyPair): Keys {
  return { publicKey: pair.getPublicKey(), seed: decoder.decode(pair.getSeed()) };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
