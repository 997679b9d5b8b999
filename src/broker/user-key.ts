// Verifies the signature of a NATS user key (nkey), for the development broker. Its process stays small and starts
// fast without the client library.

import { createPublicKey, type KeyObject, verify } from "node:crypto";

export class UserKey {
  /** `U` and 55 more characters. */
  readonly text: string;
  readonly #key: KeyObject;

  /** @throws TypeError unless the text is the public key of a user */
  constructor(text: string) {
    const bytes = /^U[A-Z2-7]{55}$/.test(text) ? base32(text) : Buffer.alloc(0);
    if (bytes.length !== 35) throw new TypeError("not the public key of a NATS user");
    this.text = text;
    // One byte of type, the Ed25519 key, two bytes of checksum.
    const x = bytes.subarray(1, 33).toString("base64url");
    this.#key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  }

  /** @param signature in base64url */
  hasSigned(nonce: string, signature: string): boolean {
    return verify(null, Buffer.from(nonce), this.#key, Buffer.from(signature, "base64url"));
  }
}

/** Without padding; the caller has checked the alphabet. */
function base32(text: string): Buffer {
  const bits = Array.from(text, (letter) => ALPHABET.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from(Array.from(bits.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2)));
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
