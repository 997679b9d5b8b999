// Tokens of attempts on the wire. Without a key a token is the journal's name of the assignment, `term.number`. With a
// key a token also holds an HMAC-SHA256 of that name, the task and the attempt, which only coordinators can make. The
// HMAC never stands in the state, the journal, an event or a query. So a reader of those cannot report for an agent. A
// new leader with the same key derives the same tokens.

import { createHmac, timingSafeEqual } from "node:crypto";
import { type Token, token as tokenNamed } from "../ids.ts";

/** An attempt, as its token names it. */
export interface NamedByToken {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
  readonly token: string;
}

/** 192 bits of the HMAC: with the largest names a token stays within its 64 characters. */
const MAC_CHARACTERS = 32;
const NO_TOKEN = tokenNamed("");

export class AttemptTokens {
  readonly #key: Uint8Array | undefined;

  /** @param key at least `limits.tokenKeyBytesMin` bytes that only coordinators hold; undefined: no HMAC */
  constructor(key: Uint8Array | undefined) {
    this.#key = key;
  }

  /** The token that goes to the agent. */
  sealed(attempt: NamedByToken): string {
    return this.#key === undefined ? attempt.token : `${attempt.token}.${macOf(this.#key, attempt)}`;
  }

  /** The journal's name of the token that an agent reports; no assignment's name where the HMAC is wrong. */
  opened(reported: NamedByToken): Token {
    if (this.#key === undefined) return tokenNamed(reported.token);
    const dot = reported.token.lastIndexOf(".");
    const named = { ...reported, token: reported.token.slice(0, Math.max(0, dot)) };
    const wanted = Buffer.from(macOf(this.#key, named));
    const given = Buffer.from(reported.token.slice(dot + 1));
    const isRight = given.length === wanted.length && timingSafeEqual(given, wanted);
    return isRight ? tokenNamed(named.token) : NO_TOKEN;
  }
}

function macOf(key: Uint8Array, { token, project, task, attempt }: NamedByToken): string {
  const mac = createHmac("sha256", key).update(`${token}\n${project}\n${task}\n${attempt}`);
  return mac.digest("base64url").slice(0, MAC_CHARACTERS);
}
