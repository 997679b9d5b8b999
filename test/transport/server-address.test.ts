// Addresses: read from URLs, shown without secrets.

import { describe, expect, it } from "vitest";
import { InvalidConfigError } from "../../src/errors.ts";
import {
  describeAddress,
  parseServerUrls,
  placeOf,
  withoutSecrets,
} from "../../src/transport/server-address.ts";

describe("server addresses", () => {
  it.each([
    ["nats://127.0.0.1:4333", { urls: ["nats://127.0.0.1:4333"] }],
    ["nats://hive.example", { urls: ["nats://hive.example:4222"] }],
    ["hive.example:4333", { urls: ["nats://hive.example:4333"] }],
    ["nats://[::1]:4333", { urls: ["nats://[::1]:4333"] }],
    ["tls://hive.example", { urls: ["tls://hive.example:4222"], tls: {} }],
    ["nats://a:1, nats://b:2", { urls: ["nats://a:1", "nats://b:2"] }],
    ["nats://t0ken@a:1", { urls: ["nats://a:1"], credentials: { kind: "token", token: "t0ken" } }],
    [
      "nats://a:1,nats://ann:p%40ss%3A@b:2",
      {
        urls: ["nats://a:1", "nats://b:2"],
        credentials: { kind: "password", user: "ann", password: "p@ss:" },
      },
    ],
  ])("%s", (text, address) => {
    expect(parseServerUrls(text, "--nats")).toEqual(address);
  });

  it.each([
    "",
    ",",
    "nats://",
    "nats://a:1,",
    "http://a",
    "ws://ann:hunter2@a",
    "nats://ann:hunter2@",
    "nats://ann:hunter2@a:port",
    "nats://ann:hunter2%@a",
  ])("refuses %j, naming the source and nothing of the value", (text) => {
    const parse = () => parseServerUrls(text, "NATS_URL");
    expect(parse).toThrow(InvalidConfigError);
    expect(parse).toThrow(/NATS_URL/);
    try {
      parse();
    } catch (error) {
      expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain("hunter2");
      expect((error as Error).cause).toBeUndefined();
    }
  });

  it("are shown without scheme and user", () => {
    const address = parseServerUrls("nats://ann:hunter2@a:1,tls://b:2", "--nats");
    expect(describeAddress(address)).toBe("a:1, b:2");
  });
});

it.each([
  ["nats://ann:hunter2@a:1", "nats://ann:PASSWORD@a:1"],
  ["ann:hunter2@a:1, tls://b:2", "ann:PASSWORD@a:1, tls://b:2"],
  ["nats://t0ken@a:1,nats://b:2", "nats://TOKEN@a:1,nats://b:2"],
  ["127.0.0.1:4222", "127.0.0.1:4222"],
])("%s is written without its secret as %s", (given, shown) => {
  expect(withoutSecrets(given)).toBe(shown);
});

it.each([
  ["nats://127.0.0.1:4222", "localhost:4222"],
  ["tls://[::1]:4223", "localhost:4223"],
  ["nats://host", "host:4222"],
])("the place of %s is %s", (url, place) => {
  expect(placeOf(url)).toBe(place);
});
