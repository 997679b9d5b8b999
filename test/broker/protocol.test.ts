// The development broker from the outside, byte by byte, with input that no client library sends.

import { nkeys } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { DevelopmentBroker, type DevelopmentBrokerOptions } from "../../src/broker/server.ts";
import { limits } from "../../src/limits.ts";
import { brokerProof } from "../../src/transport/mutual-proof.ts";
import { RawClient } from "./raw-client.ts";

const secret = "correct horse";
const userKey = nkeys.createUser();
const started: DevelopmentBroker[] = [];
let clients: RawClient[] = [];
let port: number;

async function startBroker(overrides: Partial<DevelopmentBrokerOptions> = {}): Promise<number> {
  const userKeyText = userKey.getPublicKey();
  const broker = new DevelopmentBroker({
    secret,
    port: 0,
    serverName: "test",
    userKey: userKeyText,
    ...overrides,
  });
  started.push(broker);
  return await broker.listen();
}
async function open(at = port): Promise<RawClient> {
  const client = await RawClient.open(at);
  clients.push(client);
  return client;
}
async function login(options: Record<string, unknown> = {}, at = port): Promise<RawClient> {
  const client = await RawClient.login(at, { secret, ...options });
  clients.push(client);
  return client;
}

function signedBy(key: nkeys.KeyPair, nonce: string): object {
  const sig = Buffer.from(key.sign(Buffer.from(nonce))).toString("base64url");
  return { nkey: key.getPublicKey(), sig };
}

beforeAll(async () => {
  port = await startBroker();
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.close()));
  clients = [];
});
afterAll(async () => {
  await Promise.all(started.map((broker) => broker.close()));
});

describe("greeting and secret", () => {
  it("introduces itself as core NATS with headers, without JetStream, wanting a secret", async () => {
    const client = await open();
    const info = JSON.parse(client.received.slice("INFO ".length)) as Record<string, unknown>;
    expect(info).toMatchObject({
      server_name: "test",
      version: "2.9.0-waggle",
      proto: 1,
      headers: true,
      auth_required: true,
      max_payload: limits.maxPayloadBytesDefault,
      port,
    });
    expect(info["server_id"]).toMatch(/^[0-9A-F]{32}$/);
    expect(info).not.toHaveProperty("jetstream");
  });

  it.each([
    ["a wrong secret", 'CONNECT {"auth_token":"wrong"}'],
    ["no secret", "CONNECT {}"],
    ["the secret itself", 'CONNECT {"auth_token":"correct horse"}'],
    ["an answer that is no text", 'CONNECT {"auth_token":["correct horse"]}'],
    ["an answer by inheritance", 'CONNECT {"__proto__":{"auth_token":"correct horse"}}'],
    ["a key without a signature", `CONNECT {"nkey":"${userKey.getPublicKey()}"}`],
    ["a signature that is no text", `CONNECT {"nkey":"${userKey.getPublicKey()}","sig":7}`],
    ["a key that is not the user's", 'CONNECT {"nkey":"toString","sig":""}'],
    ["a PING before CONNECT", "PING"],
    ["a SUB before CONNECT", "SUB > 1"],
    ["a PUB before CONNECT", "PUB a 1000000"],
  ])("hangs up on %s", async (_what, line) => {
    const client = await open();
    client.clear();
    client.send(`${line}\r\n`);
    expect(await client.untilClosed()).toBe("-ERR 'Authorization Violation'\r\n");
  });

  it("proves itself to a client that asks, and shows the secret to nobody", async () => {
    const client = await open();
    const challenge = "my own random text";
    client.send(
      `CONNECT ${JSON.stringify({ auth_token: client.answerWith(secret, challenge), challenge })}\r\nPING\r\n`,
    );
    const received = await client.until(/PONG\r\n/);
    const { proof } = JSON.parse(/INFO (\{.*"proof".*\})\r\nPONG/.exec(received)?.[1] ?? "{}") as {
      proof?: string;
    };
    expect(proof).toBe(brokerProof({ secret, nonce: client.nonce, challenge }));
    expect(received).not.toContain(secret);
  });

  it("greets each client with a nonce of its own, which names the port", async () => {
    const nonces = [(await open()).nonce, (await open()).nonce];
    expect(new Set(nonces).size).toBe(2);
    for (const nonce of nonces) expect(nonce).toMatch(new RegExp(`^waggle-${port}-[A-Za-z0-9_-]{22}$`));
  });

  it.each(["auth_token", "sig"])("refuses an %s requested from a different connection", async (field) => {
    const asked = await open();
    const client = await open();
    client.clear();
    const answer =
      field === "auth_token" ? { auth_token: asked.answerWith(secret) } : signedBy(userKey, asked.nonce);
    client.send(`CONNECT ${JSON.stringify(answer)}\r\n`);
    expect(await client.untilClosed()).toBe("-ERR 'Authorization Violation'\r\n");
  });

  it("refuses an answer for another challenge, and the broker's own proof as an answer", async () => {
    for (const answer of [
      (client: RawClient) => client.answerWith(secret, "another"),
      ({ nonce }: RawClient) => brokerProof({ secret, nonce, challenge: "mine" }),
    ]) {
      const client = await open();
      client.clear();
      client.send(`CONNECT ${JSON.stringify({ auth_token: answer(client), challenge: "mine" })}\r\n`);
      expect(await client.untilClosed()).toBe("-ERR 'Authorization Violation'\r\n");
    }
  });

  it("takes the signature of the user's key, and of no other", async () => {
    const client = await open();
    client.send(`CONNECT ${JSON.stringify(signedBy(userKey, client.nonce))}\r\nPING\r\n`);
    await client.until(/PONG\r\n/);
    const stranger = await open();
    stranger.clear();
    const nkey = userKey.getPublicKey();
    stranger.send(`CONNECT ${JSON.stringify({ ...signedBy(nkeys.createUser(), stranger.nonce), nkey })}\r\n`);
    expect(await stranger.untilClosed()).toBe("-ERR 'Authorization Violation'\r\n");
  });

  it.each(['CONNECT {"auth_token":', "CONNECT", "CONNECT null", "CONNECT 5"])(
    "hangs up on %s",
    async (line) => {
      const client = await open();
      client.clear();
      client.send(`${line}\r\n`);
      expect(await client.untilClosed()).toMatch(
        /^-ERR '(Unknown Protocol Operation|Authorization Violation)'\r\n$/,
      );
    },
  );

  it("disconnects a client without CONNECT in time", async () => {
    const client = await open(await startBroker({ connectMs: 40 }));
    client.clear();
    expect(await client.untilClosed()).toBe("-ERR 'Authentication Timeout'\r\n");
  });

  it("delivers nothing to a client without the secret", async () => {
    const spy = await open();
    spy.clear();
    spy.send("SUB > 1\r\n");
    const speaker = await login();
    speaker.send("PUB a 2\r\nhi\r\n");
    await speaker.settled();
    expect(await spy.untilClosed()).not.toContain("MSG");
  });
});

describe("violations of the protocol", () => {
  it.each([
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "\r\n",
    "\0\0\0\0",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "MSG a 1 2\r\nhi\r\n",
    "PUBLISH a 2\r\nhi\r\n",
    "PUB\r\n",
    "PUB a\r\n",
    "PUB a b c 2\r\nhi\r\n",
    "PUB a -1\r\n",
    "PUB a 2x\r\nhi\r\n",
    "PUB a 99999999999\r\n",
    "PUB a 2\r\nhigh\r\n",
    "PUB a 2\r\nhi\n\n",
    "HPUB a 2\r\nhi\r\n",
    "HPUB a 9 2\r\nhi\r\n",
    "HPUB a b c 2 2\r\nhi\r\n",
    "SUB a\r\n",
    "SUB a b c d\r\n",
    "UNSUB\r\n",
    "UNSUB 1 two\r\n",
    "UNSUB 1 2 3\r\n",
  ])("disconnects only the client that sends %j", async (bytes) => {
    const bystander = await login();
    const client = await login();
    client.send(bytes);
    expect(await client.untilClosed()).toBe("-ERR 'Unknown Protocol Operation'\r\n");
    expect(await bystander.settled()).toBe("");
  });

  it.each([
    ["a line that never ends", "PUB a".padEnd(limits.controlLineBytesMax + 1, "a")],
    ["a line that ends too late", `PUB ${"a".repeat(limits.controlLineBytesMax)} 0\r\n\r\n`],
    ["a subscription as long", `SUB ${"a".repeat(limits.controlLineBytesMax)} 1\r\n`],
  ])("hangs up on %s", async (_what, bytes) => {
    const client = await login();
    client.send(bytes);
    expect(await client.untilClosed()).toBe("-ERR 'Maximum Control Line Exceeded'\r\n");
  });

  it("hangs up on a line that never ends and comes in pieces", async () => {
    const client = await login();
    for (let sent = 0; sent <= limits.controlLineBytesMax && !client.isClosed; sent += 512) {
      client.send(sent === 0 ? "PUB ".padEnd(512, "a") : "a".repeat(512));
    }
    client.send("aa");
    expect(await client.untilClosed()).toBe("-ERR 'Maximum Control Line Exceeded'\r\n");
  });

  it("hangs up on a payload over the limit as soon as it is announced", async () => {
    const client = await login();
    client.send(`PUB a ${limits.maxPayloadBytesDefault + 1}\r\n`);
    expect(await client.untilClosed()).toBe("-ERR 'Maximum Payload Violation'\r\n");
  });

  it.each(["a..b", ".a", "a.", "a.>.b"])("refuses a subscription to %s and goes on", async (subject) => {
    const client = await login();
    client.send(`SUB ${subject} 1\r\n`);
    expect(await client.settled()).toBe("-ERR 'Invalid Subject'\r\n");
  });
});

describe("operations", () => {
  it("delivers a message with subject, sid, reply and size", async () => {
    const client = await login();
    client.send("SUB a.* 7\r\nPUB a.b 5\r\nhello\r\nPUB a.c reply.here 0\r\n\r\n");
    expect(await client.settled()).toBe("MSG a.b 7 5\r\nhello\r\nMSG a.c 7 reply.here 0\r\n\r\n");
  });

  it("passes headers through, and omits them for clients without support", async () => {
    const [knows, knowsNot] = [await login(), await login({ headers: false })];
    for (const client of [knows, knowsNot]) client.send("SUB h 1\r\n");
    await Promise.all([knows.settled(), knowsNot.settled()]);
    const headers = "NATS/1.0\r\nA: b\r\n\r\n";
    knows.send(`HPUB h ${headers.length} ${headers.length + 2}\r\n${headers}hi\r\n`);
    knows.send(`HPUB h r ${headers.length} ${headers.length}\r\n${headers}\r\n`);
    expect(await knows.settled()).toBe(
      `HMSG h 1 ${headers.length} ${headers.length + 2}\r\n${headers}hi\r\n` +
        `HMSG h 1 r ${headers.length} ${headers.length}\r\n${headers}\r\n`,
    );
    expect(await knowsNot.settled()).toBe("MSG h 1 2\r\nhi\r\nMSG h 1 r 0\r\n\r\n");
  });

  it("takes lower case, tabs, several spaces and bare line feeds", async () => {
    const client = await login();
    client.send("sub\ta.b  1\npub  a.b\t2\r\nhi\r\nPub a.b   reply  2\nhi\r\nhpub h 0 0\r\n\r\n");
    expect(await client.settled()).toBe("MSG a.b 1 2\r\nhi\r\nMSG a.b 1 reply 2\r\nhi\r\n");
  });

  it("acknowledges each operation to a verbose client", async () => {
    const client = await open();
    client.clear();
    client.send(`CONNECT ${JSON.stringify({ auth_token: client.answerWith(secret), verbose: true })}\r\n`);
    client.send("SUB a 1\r\nPUB b 0\r\n\r\nUNSUB 1\r\nPING\r\n");
    expect(await client.until(/PONG/)).toBe("+OK\r\n+OK\r\n+OK\r\n+OK\r\nPONG\r\n");
  });

  it("delivers no own messages to a client without echo", async () => {
    const [silent, other] = [await login({ echo: false }), await login()];
    for (const client of [silent, other]) client.send("SUB e 1\r\n");
    await Promise.all([silent.settled(), other.settled()]);
    silent.send("PUB e 2\r\nmy\r\n");
    expect(await silent.settled()).toBe("");
    expect(await other.settled()).toBe("MSG e 1 2\r\nmy\r\n");
    other.send("PUB e 2\r\nyo\r\n");
    await other.settled();
    expect(await silent.settled()).toBe("MSG e 1 2\r\nyo\r\n");
  });

  it("reports a missing receiver only to the requester", async () => {
    const [asks, doesNot] = [await login({ no_responders: true }), await login()];
    for (const client of [asks, doesNot]) {
      client.send("SUB inbox.* 3\r\nPUB nobody inbox.1 2\r\nhi\r\nPUB nobody 2\r\nhi\r\n");
    }
    expect(await asks.settled()).toBe("HMSG inbox.1 3 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
    expect(await doesNot.settled()).toBe("");
  });

  it("counts a message as unheard when only its sender without echo listens", async () => {
    const client = await login({ no_responders: true, echo: false });
    client.send("SUB alone 1\r\nSUB in 2\r\nPUB alone in 0\r\n\r\n");
    expect(await client.settled()).toBe("HMSG in 2 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
  });

  it("keeps the first subscription when a sid is used again, as a client does that reconnects", async () => {
    const client = await login();
    client.send("SUB a 1\r\nSUB a 1\r\nPUB a 0\r\n\r\n");
    expect(await client.settled()).toBe("MSG a 1 0\r\n\r\n");
  });
});

describe("UNSUB", () => {
  it("ends a subscription at once, and takes unknown ones", async () => {
    const client = await login();
    client.send("SUB a 1\r\nUNSUB 1\r\nUNSUB 1\r\nUNSUB never\r\nPUB a 0\r\n\r\n");
    expect(await client.settled()).toBe("");
  });

  it("ends a subscription after a number of messages, earlier messages included", async () => {
    const client = await login({ no_responders: true });
    client.send("SUB a 1\r\nPUB a 1\r\n1\r\nUNSUB 1 3\r\n");
    client.send("PUB a 1\r\n2\r\nPUB a 1\r\n3\r\nPUB a 1\r\n4\r\n");
    expect(await client.settled()).toBe("MSG a 1 1\r\n1\r\nMSG a 1 1\r\n2\r\nMSG a 1 1\r\n3\r\n");
    client.send("SUB r 9\r\nPUB a r 0\r\n\r\n");
    expect(await client.settled()).toContain("NATS/1.0 503");
  });

  it("ends a subscription that has had as many already", async () => {
    const client = await login();
    client.send("SUB a 1\r\nPUB a 0\r\n\r\nPUB a 0\r\n\r\nUNSUB 1 2\r\nPUB a 0\r\n\r\n");
    expect(await client.settled()).toBe("MSG a 1 0\r\n\r\n".repeat(2));
  });
});

describe("queue groups", () => {
  it("give members turns, exactly, when they come and go too", async () => {
    const clients = [await login(), await login(), await login()];
    for (const client of clients) {
      client.send("SUB q.* team 1\r\n");
      await client.settled();
    }
    const speaker = await login();
    speaker.send("PUB q.x 0\r\n\r\n".repeat(300));
    await speaker.settled();
    const counts = await Promise.all(
      clients.map(async (client) => (await client.settled()).split("MSG").length - 1),
    );
    expect(counts).toEqual([100, 100, 100]);
    clients[0]?.send("UNSUB 1\r\n");
    await clients[0]?.settled();
    speaker.send("PUB q.x 0\r\n\r\n".repeat(300));
    await speaker.settled();
    const rest = await Promise.all(
      clients.slice(1).map(async (client) => (await client.settled()).split("MSG").length - 1),
    );
    expect(rest).toEqual([150, 150]);
  });

  it("are one group by name, whatever patterns the members chose", async () => {
    const client = await login();
    client.send("SUB q.a team 1\r\nSUB q.* team 2\r\nSUB > other 3\r\nPUB q.a 0\r\n\r\nPUB q.a 0\r\n\r\n");
    const messages = (await client.settled()).match(/MSG q\.a \d/g)?.sort();
    expect(messages).toEqual(["MSG q.a 1", "MSG q.a 2", "MSG q.a 3", "MSG q.a 3"]);
  });

  it("pass over a member without echo for its own message", async () => {
    const [silent, other] = [await login({ echo: false }), await login()];
    for (const client of [silent, other]) {
      client.send("SUB q team 1\r\n");
      await client.settled();
    }
    silent.send("PUB q 0\r\n\r\n".repeat(10));
    expect(await silent.settled()).toBe("");
    expect((await other.settled()).split("MSG").length - 1).toBe(10);
  });
});

describe("frames cut anywhere", () => {
  const headers = "NATS/1.0\r\n\r\n";
  const script =
    `SUB c.* 1\r\nPUB c.a 5\r\nhello\r\nPUB c.b r 4\r\n\r\n\r\n\r\nHPUB c.c ${headers.length} ${headers.length + 1}\r\n` +
    `${headers}!\r\npub\tc.d 2\r\nhi\r\nPUB c.e 0\r\n\r\n`;
  const wanted =
    `MSG c.a 1 5\r\nhello\r\nMSG c.b 1 r 4\r\n\r\n\r\n\r\nHMSG c.c 1 ${headers.length} ${headers.length + 1}\r\n` +
    `${headers}!\r\nMSG c.d 1 2\r\nhi\r\nMSG c.e 1 0\r\n\r\n`;

  it("are put together, sent byte by byte", async () => {
    const client = await login();
    for (const byte of script) {
      client.send(byte);
      await new Promise((resolve) => setImmediate(resolve)); // a separate TCP segment
    }
    expect(await client.settled()).toBe(wanted);
  });

  it("are put together when a payload of the largest size comes in pieces", async () => {
    const client = await login();
    const payload = "x".repeat(limits.maxPayloadBytesDefault);
    client.send(`SUB big 1\r\nPUB big ${payload.length}\r\n`);
    for (let at = 0; at < payload.length; at += 100_000) client.send(payload.slice(at, at + 100_000));
    client.send("\r\nPUB big 4\r\nnext\r\n");
    expect(await client.settled()).toBe(
      `MSG big 1 ${payload.length}\r\n${payload}\r\nMSG big 1 4\r\nnext\r\n`,
    );
  });
});

describe("slow and silent clients", () => {
  it("pings, and disconnects a client that never answers", async () => {
    const at = await startBroker({ pingMs: 30 });
    const [silent, lively] = [await login({}, at), await login({}, at)];
    const answering = setInterval(() => lively.send("PONG\r\n"), 10);
    expect(await silent.untilClosed()).toMatch(/^(PING\r\n)+-ERR 'Stale Connection'\r\n$/);
    clearInterval(answering);
    expect(lively.isClosed).toBe(false);
  });

  it("disconnects only the client that reads nothing while others publish", async () => {
    const sleeper = await login();
    const reader = await login();
    const speaker = await login();
    for (const client of [sleeper, reader]) {
      client.send("SUB flood 1\r\n");
      await client.settled();
    }
    sleeper.pause();
    const payload = "x".repeat(1_000_000);
    const messages = Math.ceil((limits.brokerPendingBytesMax * 1.5) / payload.length);
    for (let sent = 0; sent < messages; sent += 1) {
      speaker.send(`PUB flood ${payload.length}\r\n${payload}\r\n`);
      await speaker.settled();
      await reader.settled();
    }
    sleeper.resume();
    const received = await sleeper.untilClosed();
    expect(received.length).toBeLessThan(messages * payload.length);
    expect([reader.isClosed, speaker.isClosed]).toEqual([false, false]);
  });

  it("loses nothing for a reader that is merely slower than its publisher", async () => {
    const [reader, speaker] = [await login(), await login()];
    reader.send("SUB fast 1\r\n");
    await reader.settled();
    const payload = "x".repeat(100_000);
    const messages = 300;
    for (let sent = 0; sent < messages; sent += 1)
      speaker.send(`PUB fast ${payload.length}\r\n${payload}\r\n`);
    speaker.send("PUB fast 3\r\nend\r\n");
    const message = `MSG fast 1 100000\r\n${payload}\r\n`;
    const wanted = `${message.repeat(messages)}MSG fast 1 3\r\nend\r\n`;
    expect((await reader.untilLength(wanted.length)) === wanted).toBe(true);
  });
});
