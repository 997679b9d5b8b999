// Signed heads: an auditor keeps them apart from the journal. A head names a batch and its hash. As each batch carries
// the hash of the batch before it, one head protects all batches up to its own.

import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import * as z from "zod";
import { WaggleError } from "../errors.ts";

/** The end of a journal, named and signed. */
export type SignedHead = z.infer<typeof headSchema>;

const headSchema = z.object({
  journal: z.string().min(1),
  idx: z.number().int().min(1),
  hash: z.string().min(1),
  /** Journal time of the batch, ms since 1970. */
  at: z.number(),
  /** When the head was signed, as an ISO date. */
  signedAt: z.string(),
  /** The public key, base64 of its DER form. */
  key: z.string(),
  /** Ed25519, base64. */
  signature: z.string(),
});

/** A pair, or a public key alone, which can only check. */
export interface HeadKey {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject | undefined;
}

/** A new pair. @returns the private key as PEM, to be kept secret */
export function newKeyPem(): string {
  const { privateKey } = generateKeyPairSync("ed25519");
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

/** @param pem a private or a public Ed25519 key @throws WaggleError WAGGLE_INVALID_VALUE */
export function readKey(pem: string): HeadKey {
  const publicKey = keyIn(pem);
  if (publicKey?.asymmetricKeyType !== "ed25519")
    throw new WaggleError(
      "WAGGLE_INVALID_VALUE",
      "the key is no PEM of an Ed25519 key: name the file of such a key, or a new file, in which `waggle verify` makes one",
    );
  return { publicKey, privateKey: pem.includes("PRIVATE KEY") ? createPrivateKey(pem) : undefined };
}

function keyIn(pem: string): KeyObject | undefined {
  try {
    return createPublicKey(pem);
  } catch {
    return undefined; // no key
  }
}

/** A short name of a public key, to be compared by people. */
export function keyName(key: string): string {
  return createHash("sha256").update(key, "base64").digest("base64url").slice(0, 12);
}

export function publicText({ publicKey }: HeadKey): string {
  return publicKey.export({ type: "spki", format: "der" }).toString("base64");
}

/** @throws WaggleError WAGGLE_INVALID_VALUE for a public key */
export function signHead(head: Omit<SignedHead, "key" | "signature">, key: HeadKey): SignedHead {
  if (key.privateKey === undefined)
    throw new WaggleError("WAGGLE_INVALID_VALUE", "a public key cannot sign: give the private key");
  const signature = sign(null, signedBytes(head), key.privateKey).toString("base64");
  return { ...head, key: publicText(key), signature };
}

/** Whether the head was signed with the key that it names. */
export function isSigned(head: SignedHead): boolean {
  try {
    const key = createPublicKey({ key: Buffer.from(head.key, "base64"), format: "der", type: "spki" });
    return verify(null, signedBytes(head), key, Buffer.from(head.signature, "base64"));
  } catch {
    return false; // no key
  }
}

/** @param line of a file of heads @throws WaggleError WAGGLE_INVALID_VALUE */
export function parseHead(line: string): SignedHead {
  const parsed = headSchema.safeParse(jsonIn(line));
  if (parsed.success) return parsed.data;
  throw new WaggleError(
    "WAGGLE_INVALID_VALUE",
    "it is no signed head: name the file that `waggle verify --anchor` wrote",
  );
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // no JSON
  }
}

function signedBytes({
  journal,
  idx,
  hash,
  at,
  signedAt,
}: Omit<SignedHead, "key" | "signature">): Uint8Array {
  return Buffer.from(`waggle-head-1\n${journal}\n${idx}\n${hash}\n${at}\n${signedAt}`);
}
