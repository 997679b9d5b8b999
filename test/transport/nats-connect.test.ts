// Connecting to NATS: credentials, failures and their messages, and reconnecting to a server that was replaced.

import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { nkeys } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { DevelopmentBroker } from "../../src/broker/server.ts";
import { InvalidConfigError, UnreachableError, type WaggleError } from "../../src/errors.ts";
import { explainConnectFailure } from "../../src/transport/connect-failure.ts";
import { connectNats, type NatsOptions } from "../../src/transport/nats.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { bytesOf, Received, statusOf } from "./received.ts";

const SECRET = "hunter2-never-print-me";
const closing: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function startBroker(port = 0): Promise<DevelopmentBroker> {
  const broker = new DevelopmentBroker({ secret: SECRET, port, serverName: "test" });
  await broker.listen();
  closing.push(() => broker.close());
  return broker;
}
/** A server that is not NATS: sends `greeting` and nothing else. */
async function startStranger(greeting: string): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => socket.destroy()));
    if (greeting === "") socket.destroy();
    else socket.write(greeting);
  }).listen({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `nats://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
async function connect(options: Partial<NatsOptions> & Pick<NatsOptions, "urls">) {
  const transport = await connectNats({ name: "test", ...options });
  closing.push(() => transport.close());
  return transport;
}
const token = { kind: "token", token: SECRET } as const;

/** The error with all data that a log would show. */
async function failureOf(options: Partial<NatsOptions> & Pick<NatsOptions, "urls">): Promise<WaggleError> {
  const error = await connect(options).then(
    () => new Error("connected"),
    (failure: unknown) => failure,
  );
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(SECRET);
  return error as WaggleError;
}

describe("a first connection", () => {
  it("fails fast without a server, with the address and advice", async () => {
    const broker = new DevelopmentBroker({ secret: SECRET, port: 0, serverName: "gone" });
    const port = await broker.listen();
    await broker.close();
    const error = await failureOf({ urls: [`nats://127.0.0.1:${port}`], credentials: token });
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toContain(`Nothing listens at 127.0.0.1:${port}: start a NATS server there`);
  });

  it("tries each of several servers before it fails", async () => {
    const broker = await startBroker();
    const gone = new DevelopmentBroker({ secret: SECRET, port: 0, serverName: "gone" });
    const port = await gone.listen();
    await gone.close();
    const urls = [`nats://127.0.0.1:${port}`, `nats://127.0.0.1:${broker.port}`];
    expect((await connect({ urls, credentials: token })).status()).toBe("connected");
  });

  it("fails when the credentials are refused, and says so", async () => {
    const urls = [`nats://127.0.0.1:${(await startBroker()).port}`];
    for (const credentials of [
      undefined,
      { kind: "token", token: `${SECRET}!` },
      { kind: "password", user: "ann", password: `${SECRET}!` },
    ] as const) {
      const error = await failureOf(credentials === undefined ? { urls } : { urls, credentials });
      expect(error).toBeInstanceOf(UnreachableError);
      expect(error.message).toMatch(/refused the credentials/);
    }
  });

  it("fails on a server that is not NATS, or hangs up", async () => {
    for (const greeting of ["HTTP/1.1 400 Bad Request\r\n\r\n", "INFO {not json\r\n", ""]) {
      const error = await failureOf({ urls: [await startStranger(greeting)], credentials: token });
      expect(error).toBeInstanceOf(UnreachableError);
      expect(error.message).toMatch(/^Cannot connect to NATS at 127\.0\.0\.1:\d+ /);
    }
  });

  it("fails when encryption is wanted and not to be had", async () => {
    const { port } = await startBroker();
    const error = await failureOf({ urls: [`tls://127.0.0.1:${port}`], tls: {}, credentials: token });
    expect(error).toBeInstanceOf(UnreachableError);
    expect(error.message).toMatch(/^No encrypted connection to NATS/);
  });

  it("is given up when its signal aborts", async () => {
    const controller = new AbortController();
    const connecting = connect({ urls: [await startStranger("\0")], signal: controller.signal });
    controller.abort(new Error("never mind"));
    await expect(connecting).rejects.toThrow("never mind");
    await expect(connect({ urls: ["nats://127.0.0.1:1"], signal: controller.signal })).rejects.toThrow(
      "never mind",
    );
  });

  it("is not tried with files that cannot be read or hold no credentials", async () => {
    const folder = mkdtempSync(join(tmpdir(), "waggle-creds-"));
    closing.push(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "creds");
    writeFileSync(file, SECRET);
    const urls = ["nats://127.0.0.1:1"];
    for (const options of [
      { credentials: { kind: "creds", file } },
      { credentials: { kind: "nkey-file", file } },
      { credentials: { kind: "nkey", seed: SECRET } },
      { credentials: { kind: "creds", file: join(folder, "absent") } },
      { credentials: { kind: "nkey-file", file: join(folder, "absent") } },
      { tls: { caFile: join(folder, "absent") } },
      { tls: { certFile: join(folder, "absent") } },
      { tls: { keyFile: join(folder, "absent") } },
    ] as const) {
      const error = await failureOf({ urls, ...options });
      expect(error).toBeInstanceOf(InvalidConfigError);
    }
  });
});

describe("the sentence for a failure", () => {
  const address = { urls: ["nats://hive:1", "nats://hive:2"] };
  const explain = (error: object) => explainConnectFailure(Object.assign(new Error("why"), error), address);

  it.each([
    [{ code: "ENOTFOUND" }, "No host of this name: hive:1, hive:2. Check the address."],
    [{ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }, "No encrypted connection to NATS at hive:1, hive:2 (why)"],
    [{ code: "DEPTH_ZERO_SELF_SIGNED_CERT" }, "No encrypted connection to NATS"],
    [{ code: "ERR_TLS_CERT_ALTNAME_INVALID" }, "No encrypted connection to NATS"],
    [{ name: "TimeoutError" }, "No NATS server answered at hive:1, hive:2 within 5 s"],
    [
      { cause: Object.assign(new Error("inner"), { code: "ECONNREFUSED" }) },
      "Nothing listens at hive:1, hive:2",
    ],
    [{}, "Cannot connect to NATS at hive:1, hive:2 (why)"],
  ])("goes by %j", (error, sentence) => {
    expect(explain(error).message).toContain(sentence);
    expect(explain(error).code).toBe("WAGGLE_UNREACHABLE");
  });
});

describe("a lost server", () => {
  it("is found again at the same address, however long it was away", async () => {
    const broker = await startBroker();
    const { port } = broker;
    const transport = await connect({ urls: [`nats://127.0.0.1:${port}`], credentials: token });
    const received = new Received(transport, "after");
    await broker.close();
    await statusOf(transport, "reconnecting");
    // A foreign server first: refusals, hang-ups and nonsense must not end the search.
    const stranger = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.end("-ERR 'Authorization Violation'\r\n");
    }).listen({ host: "127.0.0.1", port });
    await once(stranger, "connection");
    await once(stranger, "connection");
    stranger.close();
    await once(stranger, "close");
    await startBroker(port);
    await statusOf(transport, "connected");
    transport.publish("after", bytesOf("1"));
    await received.count(1);
  });

  it("that refuses the credentials for a while is found again too", async () => {
    const broker = await startBroker();
    const { port } = broker;
    const transport = await connect({ urls: [`nats://127.0.0.1:${port}`], credentials: token });
    await broker.close();
    const other = new DevelopmentBroker({ secret: "another", port, serverName: "another" });
    await other.listen();
    await new Promise<void>((resolve) => {
      let refused = 0;
      const isAuthorized = other.isAuthorized.bind(other);
      other.isAuthorized = (login) => {
        refused += 1;
        if (refused === 4) resolve(); // the library would have given up at the second
        return isAuthorized(login);
      };
    });
    await other.close();
    await startBroker(port);
    await statusOf(transport, "connected");
  });
});

for (const { path, version } of natsServersFor("NATS credentials and complaints").slice(0, 1)) {
  describe(`nats-server ${version} with users`, () => {
    const user = nkeys.createUser();
    let server: RunningNatsServer;

    beforeAll(async () => {
      server = await startNatsServer({
        binary: path,
        extraConfig: `
          max_payload: 2048
          authorization { users: [
            { user: ann, password: "${SECRET}", permissions: { publish: "ann.>", subscribe: ["ann.>", "_INBOX_ann.>"] } }
            { nkey: ${user.getPublicKey()} }
          ] }`,
      });
    });
    afterAll(() => server.stop());

    it("takes user and password, and an nkey from its seed or its file", async () => {
      const folder = mkdtempSync(join(tmpdir(), "waggle-nkey-"));
      closing.push(() => rmSync(folder, { recursive: true }));
      const seed = new TextDecoder().decode(user.getSeed());
      writeFileSync(join(folder, "nkey"), `${seed}\n`);
      for (const credentials of [
        { kind: "password", user: "ann", password: SECRET },
        { kind: "nkey", seed },
        { kind: "nkey-file", file: join(folder, "nkey") },
      ] as const) {
        const transport = await connect({ urls: [server.url], credentials });
        expect(transport.server()).toMatchObject({ version, hasJetStream: false, maxPayloadBytes: 2048 });
        expect(transport.maxPayloadBytes).toBe(2048);
      }
    });

    it("is asked from the inbox prefix that the user may use, and its complaints are heard", async () => {
      const errors: Error[] = [];
      const transport = await connect({
        urls: [server.url],
        credentials: { kind: "password", user: "ann", password: SECRET },
        inboxPrefix: "_INBOX_ann",
        onError: (error) => errors.push(error),
      });
      transport.subscribe("ann.ask", ({ reply }) => transport.publish("ann.said", bytesOf(reply ?? "")));
      const said = new Received(transport, "ann.said");
      expect(await transport.request("ann.ask", bytesOf("?"), { timeoutMs: 200 })).toEqual({
        kind: "timeout",
      });
      expect(said.texts()[0]).toMatch(/^_INBOX_ann\./);
      expect(errors).toEqual([]);
      transport.publish("journal", bytesOf("forged"));
      await transport.flush();
      await expect.poll(() => errors[0]?.message).toMatch(/permissions violation/i);
      expect(transport.status()).toBe("connected");
    });
  });
}
