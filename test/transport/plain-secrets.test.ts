// Passwords and tokens never go to another machine without encryption, unless the user permits it.

import { expect, it } from "vitest";
import { connectNats } from "../../src/transport/nats.ts";
import { isLoopback, refusePlainSecrets, type ServerAddress } from "../../src/transport/server-address.ts";

const far = ["nats://nats.example.com:4222"];
const password = { kind: "password", user: "ann", password: "hunter2" } as const;

it.each<[string, ServerAddress]>([
  ["a password", { urls: far, credentials: password }],
  ["a token", { urls: far, credentials: { kind: "token", token: "hunter2" } }],
  ["the JWT of a bearer", { urls: far, credentials: { kind: "jwt", jwt: "hunter2" } }],
  ["to one far server of several", { urls: ["nats://127.0.0.1:4222", ...far], credentials: password }],
  [
    "to a host named as an address of loopback",
    { urls: ["nats://127.0.0.1.example.com:4222"], credentials: password },
  ],
])("refuses %s, and does not repeat it", async (_, address) => {
  const error: unknown = await connectNats({ ...address, name: "test" }).catch((refusal: unknown) => refusal);
  expect(error).toMatchObject({
    code: "WAGGLE_INVALID_CONFIG",
    message: expect.stringContaining("--insecure"),
  });
  expect(String(error)).not.toContain("hunter2");
});

it.each<[string, ServerAddress]>([
  ["to this machine", { urls: ["nats://127.0.0.1:4222", "nats://localhost:4222"], credentials: password }],
  ["where encryption is required", { urls: far, credentials: password, tls: {} }],
  ["where the user permits it", { urls: far, credentials: password, allowsPlainSecrets: true }],
  ["of keys, which only sign", { urls: far, credentials: { kind: "nkey", seed: "S" } }],
  ["without a login", { urls: far }],
])("permits a connection %s", (_, address) => {
  expect(() => refusePlainSecrets(address)).not.toThrow();
});

it.each([
  ["127.0.0.1", true],
  ["127.1.2.3", true],
  ["localhost", true],
  ["[::1]", true],
  ["0.0.0.0", false],
  ["127.evil.example", false],
  ["10.0.0.1", false],
])("knows whether %s is this machine", (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
