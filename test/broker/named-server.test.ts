// Servers named by URL or by a context of the nats tool.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findBroker } from "../../src/broker/find-broker.ts";
import { findNamedServer, type NamedServerOptions } from "../../src/broker/named-server.ts";
import { InvalidConfigError, UnreachableError } from "../../src/errors.ts";

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "waggle-home-"));
});
afterEach(() => {
  rmSync(home, { recursive: true, force: true });
});

const find = (options: NamedServerOptions = {}) => findNamedServer({ env: { HOME: home }, ...options });

function write(path: string, content: unknown): void {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
}
const writeContext = (name: string, content: unknown) => write(`.config/nats/context/${name}.json`, content);

describe("a named server", () => {
  it("is undefined when no server was named", async () => {
    expect(await find()).toBeUndefined();
  });

  it("goes by the URL, shown without the secret", async () => {
    writeContext("prod", { url: "nats://prod:4222" });
    write(".config/nats/context.txt", "prod");
    expect(await find({ nats: "nats://s3cret@hive:4333" })).toEqual({
      address: { urls: ["nats://hive:4333"], credentials: { kind: "token", token: "s3cret" } },
      inboxPrefix: undefined,
      sentence: "NATS at hive:4333",
    });
  });

  it("takes credentials and certificates from files before those of the URL", async () => {
    const credentials = { creds: "/c", nkey: "/n", tls: { ca: "/ca", cert: "/cert", key: "/key" } };
    expect((await find({ nats: "nats://s3cret@hive", credentials }))?.address).toEqual({
      urls: ["nats://hive:4222"],
      credentials: { kind: "creds", file: "/c" },
      tls: { caFile: "/ca", certFile: "/cert", keyFile: "/key" },
    });
    expect((await find({ nats: "nats://hive", credentials: { nkey: "/n" } }))?.address).toEqual({
      urls: ["nats://hive:4222"],
      credentials: { kind: "nkey-file", file: "/n" },
    });
  });

  it("is the named server, else the selected context's server", async () => {
    writeContext("prod", { url: "nats://prod:4222", token: "t" });
    writeContext("stage", { url: "tls://a,tls://b", inbox_prefix: "_INBOX_ann" });
    write(".config/nats/context.txt", "prod\n");
    expect(await find()).toEqual({
      address: { urls: ["nats://prod:4222"], credentials: { kind: "token", token: "t" } },
      inboxPrefix: undefined,
      sentence: 'NATS at prod:4222, from NATS context "prod"',
    });
    expect(await find({ natsContext: "stage" })).toMatchObject({
      address: { urls: ["tls://a:4222", "tls://b:4222"], tls: {} },
      inboxPrefix: "_INBOX_ann",
    });
  });

  it.each(["ann", "_INBOX_ann.>", "_INBOX ann", "_INBOX_ann.", "waggle", "$JS"])(
    "is refused with an inbox prefix that gets no answers: %s",
    async (prefix) => {
      writeContext("odd", { url: "nats://odd", inbox_prefix: prefix });
      await expect(find({ natsContext: "odd" })).rejects.toMatchObject({
        code: "WAGGLE_INVALID_CONFIG",
        field: "inbox_prefix",
        message: expect.stringMatching(/must begin with _INBOX/),
      });
    },
  );

  it("is looked for where XDG_CONFIG_HOME says", async () => {
    write("elsewhere/nats/context/x.json", { url: "nats://x" });
    const env = { HOME: home, XDG_CONFIG_HOME: join(home, "elsewhere") };
    expect((await find({ natsContext: "x", env }))?.address.urls).toEqual(["nats://x:4222"]);
  });

  it.each([
    [{ creds: "~/a.creds" }, { kind: "creds", file: "HOME/a.creds" }],
    [{ nkey: "/a.nk" }, { kind: "nkey-file", file: "/a.nk" }],
    [
      { user_jwt: "j", user_seed: "s" },
      { kind: "jwt", jwt: "j", seed: "s" },
    ],
    [
      { user: "ann", password: "p" },
      { kind: "password", user: "ann", password: "p" },
    ],
    [{ user: "t" }, { kind: "token", token: "t" }],
    [
      { token: "t", creds: "", nkey: "" },
      { kind: "token", token: "t" },
    ],
    [{ url: "nats://u:p@h" }, { kind: "password", user: "u", password: "p" }],
  ])("reads the credentials of a context: %j", async (context, credentials) => {
    writeContext("c", context);
    const wanted = JSON.parse(JSON.stringify(credentials).replace("HOME", home)) as unknown;
    expect((await find({ natsContext: "c" }))?.address.credentials).toEqual(wanted);
  });

  it("reads the certificates of a context", async () => {
    writeContext("c", {
      ca: "/ca",
      cert: "/cert",
      key: "~/key",
      tls_first: true,
      description: "x",
      color: "",
    });
    expect((await find({ natsContext: "c" }))?.address).toEqual({
      urls: ["nats://127.0.0.1:4222"],
      tls: { caFile: "/ca", certFile: "/cert", keyFile: join(home, "key"), handshakeFirst: true },
    });
  });

  it.each([
    ["absent", undefined, /the NATS context "absent" does not exist .*`nats context ls`/],
    ["../escape", undefined, /not the name of a NATS context/],
    ["broken", "{", /is not a NATS context/],
    ["typed", { url: 5 }, /is not a NATS context \(url\)/],
    ["address", { url: "http://h" }, /url of NATS context "address" is not the address/],
    ["tool", { nsc: "nsc://o/a/u" }, /nsc is not supported/],
    ["proxy", { socks_proxy: "socks5://p" }, /socks_proxy is not supported/],
  ])("refuses the context %s", async (name, content, message) => {
    if (content !== undefined) writeContext(name, content);
    await expect(find({ natsContext: name })).rejects.toThrow(InvalidConfigError);
    await expect(find({ natsContext: name })).rejects.toThrow(message);
  });

  it("refuses a selected context that is gone, rather than going somewhere else", async () => {
    write(".config/nats/context.txt", "gone");
    await expect(find()).rejects.toThrow(/the selected NATS context "gone" does not exist/);
  });

  it("goes before the broker of the data folder", async () => {
    const options = {
      mode: "find-or-start",
      dataFolder: join(home, ".waggle"),
      env: { HOME: home },
    } as const;
    expect(await findBroker({ ...options, nats: "nats://hive" })).toMatchObject({
      kind: "named",
      local: undefined,
    });
    writeContext("prod", { url: "nats://prod" });
    write(".config/nats/context.txt", "prod");
    expect(await findBroker(options)).toMatchObject({
      kind: "named",
      address: { urls: ["nats://prod:4222"] },
    });
    write(".config/nats/context.txt", "");
    await expect(findBroker({ ...options, mode: "find-only" })).rejects.toThrow(UnreachableError);
  });
});
