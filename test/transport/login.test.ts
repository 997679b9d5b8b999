// Logins with keys against the client library's, which the servers accept.

import { createAccount, createCurve, createUser, fromPublic, fromSeed, Prefix } from "@nats-io/nkeys";
import { Codec } from "@nats-io/nkeys/lib/codec.js";
import { credsAuthenticator, jwtAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";
import { expect, it } from "vitest";
import { credsLogin, jwtLogin, nkeyLogin, publicKeyOf } from "../../src/transport/login/nats.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const seedOf = (pair: ReturnType<typeof createUser>) => new TextDecoder().decode(pair.getSeed());
const JWT = "eyJ0eXAiOiJKV1QifQ.eyJzdWIiOiJVIn0.c2ln";

const credsOf = (seed: string, end = "\n") =>
  [
    "-----BEGIN NATS USER JWT-----",
    JWT,
    "------END NATS USER JWT------",
    "",
    "************************* IMPORTANT *************************",
    "NKEY Seed printed below can be used to sign and prove identity.",
    "",
    "-----BEGIN USER NKEY SEED-----",
    seed,
    "------END USER NKEY SEED------",
    "",
  ].join(end);

it("signs as the client library does", () => {
  for (const pair of [createUser(), createUser(), createAccount()]) {
    const seed = seedOf(pair);
    for (const nonce of ["PXoWU7zWAMt75FY", "n", undefined]) {
      expect(nkeyLogin(seed)(nonce)).toEqual(nkeyAuthenticator(bytes(seed))(nonce));
      expect(jwtLogin(JWT, seed)(nonce)).toEqual(jwtAuthenticator(JWT, bytes(seed))(nonce));
      expect(jwtLogin(JWT)(nonce)).toEqual(jwtAuthenticator(JWT)(nonce));
      expect(credsLogin(credsOf(seed))(nonce)).toEqual(credsAuthenticator(bytes(credsOf(seed)))(nonce));
    }
    expect(publicKeyOf(seed)).toBe(fromSeed(bytes(seed)).getPublicKey());
  }
});

it("gives a signature that the public key verifies", () => {
  const seed = seedOf(createUser());
  const { nkey, sig } = Object(nkeyLogin(seed)("nonce"));
  expect(fromPublic(nkey).verify(bytes("nonce"), Buffer.from(sig, "base64"))).toBe(true);
});

it("reads credentials with line ends of Windows", () => {
  const seed = seedOf(createUser());
  expect(credsLogin(credsOf(seed, "\r\n"))("n")).toEqual(jwtLogin(JWT, seed)("n"));
});

it("refuses text that is no seed, and does not repeat the text", () => {
  const seed = seedOf(createUser());
  const misspelt = `${seed.slice(0, 9)}${seed[9] === "A" ? "B" : "A"}${seed.slice(10)}`;
  const wrong = [misspelt, seed.slice(0, -8), "SUNOTASEED", ""];
  for (const text of [...wrong, fromSeed(bytes(seed)).getPublicKey()]) {
    expect(() => nkeyLogin(text)).toThrow();
    expect(() => credsLogin(credsOf(text))).toThrow();
    try {
      nkeyLogin(text);
    } catch (error) {
      if (text !== "") expect(String(error)).not.toContain(text);
    }
  }
  expect(() => credsLogin(JWT)).toThrow("a JWT and a seed");
});

it("refuses keys that do not sign, and seeds of another length, as the client library does", () => {
  const curve = seedOf(createCurve());
  const long = new TextDecoder().decode(Codec._encode(true, Prefix.User, new Uint8Array(33)));
  for (const text of [curve, long]) {
    expect(() => nkeyAuthenticator(bytes(text))("n")).toThrow();
    expect(() => nkeyLogin(text)).toThrow("not the seed");
  }
});

it("reads a file of dashes in no time", () => {
  const beganMs = performance.now();
  expect(() => credsLogin(`${"-".repeat(10_000)}x`)).toThrow("a JWT and a seed");
  expect(performance.now() - beganMs).toBeLessThan(1_000);
});
