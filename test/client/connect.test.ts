// Connecting over a real network: the development broker, a coordinator, and an agent in a separate thread.

import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect as connectSocket, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createUser } from "@nats-io/nkeys";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { DevelopmentBroker } from "../../src/broker/server.ts";
import { type ConnectOptions, connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { type Coordinator, startCoordinator } from "../../src/coordinator/coordinator.ts";
import { InvalidConfigError, UnreachableError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { limits } from "../../src/limits.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import { silentLogger } from "../support/swarm.ts";
import { ManualClock } from "./manual-clock.ts";

const secret = "for-tests-only";
/** Logs in through a relay, where the proof of the secret names the wrong port. */
const userKey = createUser();

let broker: DevelopmentBroker;
let transport: NatsTransport;
let coordinator: Coordinator;
let port: number;
let url: string;
const open: Swarm[] = [];

beforeAll(async () => {
  broker = new DevelopmentBroker({
    ...{ secret, userKey: userKey.getPublicKey(), port: 0, serverName: "waggle-test" },
  });
  port = await broker.listen();
  url = `nats://${secret}@127.0.0.1:${port}`;
  const credentials = { kind: "token", token: secret } as const;
  transport = await connectNats({ urls: [`nats://127.0.0.1:${port}`], credentials, name: "test" });
  const journal = new MemoryJournal(new MemoryJournalStore());
  const parts = { transport, journal, clock: systemClock, random: systemRandom, logger: silentLogger };
  coordinator = await startCoordinator({ id: "c1", swarm: swarmId("test"), ...parts });
  await coordinator.whenLeading();
});
afterAll(async () => {
  await coordinator?.stop();
  await transport?.close();
  await broker?.close();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(open.splice(0).map((swarm) => swarm.close()));
});

async function aConnection(options: ConnectOptions = {}): Promise<Swarm> {
  const swarm = await connect({ nats: url, swarm: "test", ...options });
  open.push(swarm);
  return swarm;
}

describe("connect", () => {
  it("gives a swarm in which an agent of one connection runs tasks of a second connection", async () => {
    const [here, there] = await Promise.all([aConnection(), aConnection({ user: "bob" })]);
    const agent = await there.agent({
      id: "shouter",
      kinds: ["shout"],
      maxConcurrent: 4,
      handler: (task, context) => {
        context.reportTokens(3);
        return task.payload.toUpperCase();
      },
    });
    const handles = await Promise.all(
      ["a", "b", "c"].map((payload) => here.submit({ kind: "shout", payload })),
    );
    const results = await Promise.all(handles.map((handle) => handle.result()));
    expect(results.map((result) => result.text())).toEqual(["A", "B", "C"]);
    expect(results[0]).toMatchObject({ agent: "shouter", tokens: 3 });
    await agent.drain();
    expect((await here.status()).agents).toMatchObject([{ id: "shouter", status: "offline" }]);
  });

  it("over a given transport leaves the transport open, for agents too", async () => {
    const swarm = await aConnection({ transport });
    const agent = await swarm.agent({
      id: "in-thread",
      kinds: ["add"],
      handler: (task) => Number(task.payload) + 1,
    });
    expect((await (await swarm.submit({ kind: "add", payload: "1" })).result()).json()).toBe(2);
    await agent.drain();
    await swarm.close();
    expect(transport.status()).toBe("connected");
  });

  it("drains its agents on close: running attempts end first", async () => {
    const swarm = await aConnection();
    const other = await aConnection();
    let finish: (() => void) | undefined;
    // A task may reach its handler before the agent's start resolves, and `close` aborts pending starts.
    await swarm.agent({
      id: "closer",
      kinds: ["slow"],
      handler: () =>
        new Promise((resolve) => {
          finish = () => resolve("done");
        }),
    });
    const handle = await other.submit({ kind: "slow" });
    await vi.waitFor(() => expect(finish).toBeDefined());
    const closing = swarm.close();
    finish?.();
    await closing;
    expect((await handle.result()).text()).toBe("done");
    const { agents } = await other.status();
    expect(agents.find(({ id }) => id === "closer")).toMatchObject({ status: "offline" });
  });

  it("stops agents that take too long to finish when it is closed", async () => {
    const clock = new ManualClock();
    const swarm = await aConnection({ clock });
    const other = await aConnection();
    let hasStarted = false;
    let wasAborted = false;
    await swarm.agent({
      kinds: ["endless"],
      handler: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            wasAborted = true;
            reject(signal.reason);
          });
          hasStarted = true;
        }),
    });
    const { id } = await other.submit({ kind: "endless", maxAttempts: 2 });
    await vi.waitFor(() => expect(hasStarted).toBe(true));
    const closing = swarm.close();
    await clock.advance(limits.closeDrainMs - 1);
    expect(wasAborted).toBe(false);
    await clock.advance(1);
    await closing;
    expect(wasAborted).toBe(true);
    expect(await other.cancel(id), "it was to be tried again").toMatchObject({ cancelled: true });
  });

  it("aborts agents that wait for a leader on close", async () => {
    const swarm = await aConnection({ swarm: "nobody-leads-this" });
    const starting = swarm.agent({ kinds: ["a"], handler: () => undefined }).catch((error: unknown) => error);
    await swarm.close();
    expect(await starting).toBeInstanceOf(UnreachableError);
    await expect(swarm.agent({ kinds: ["a"], handler: () => undefined })).rejects.toBeInstanceOf(
      UnreachableError,
    );
  });

  it("names the wrong field of a task, whichever message held the task", async () => {
    const swarm = await aConnection();
    const tasks = [{ kind: "fine" }, { kind: "a", weight: 0 }];
    const [, wrong] = await Promise.allSettled(tasks.map((task) => swarm.submit(task)));
    expect(wrong).toMatchObject({
      reason: { field: "weight", message: expect.stringMatching(/^weight: /) },
    });
  });

  it("refuses agents without options, as a coded error", async () => {
    const swarm = await aConnection();
    await expect(swarm.agent(undefined as never)).rejects.toBeInstanceOf(InvalidConfigError);
  });

  it("takes several addresses, and the one in NATS_URL", async () => {
    const swarm = await aConnection({ nats: [url, url] });
    expect((await swarm.status()).swarm).toBe("test");
    vi.stubEnv("NATS_URL", url);
    const other = await connect({ swarm: "test" });
    open.push(other);
    expect((await other.status()).leader).toBe("c1");
  });

  it("reaches the swarm, project and user of the environment, as the commands do", async () => {
    const names = { NATS_URL: url, WAGGLE_SWARM: "test", WAGGLE_PROJECT: "reports", WAGGLE_USER: "ann" };
    for (const [name, value] of Object.entries(names)) vi.stubEnv(name, value);
    const swarm = await connect();
    open.push(swarm);
    expect(swarm.id).toBe("test");
    const { id } = await swarm.submit({ kind: "of-the-environment" });
    const [submitted] = (await swarm.story(id)).events;
    expect(submitted?.event).toMatchObject({ task: { project: "reports", user: "ann" } });
    const said = await connect({ swarm: "said" });
    open.push(said);
    expect(said.id).toBe("said");
  });

  it("finds the broker of the data folder that the environment names", async () => {
    const empty = mkdtempSync(join(tmpdir(), "waggle-client-"));
    vi.stubEnv("WAGGLE_DATA_FOLDER", empty);
    await expect(connect()).rejects.toThrow(empty);
    rmSync(empty, { recursive: true });
  });

  it("closes itself at the end of a block, and ends what waits", async () => {
    let waiting: Promise<unknown> | undefined;
    {
      await using swarm = await connect({ nats: url, swarm: "test" });
      const handle = await swarm.submit({ kind: "nobody-does-this" });
      waiting = handle.result().catch((error: unknown) => error);
    }
    expect(await waiting).toBeInstanceOf(UnreachableError);
  });
});

describe("a connection that is lost and found again", () => {
  it("is logged once for its owner and its agents, without the secret", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "info" }, { write: (line) => lines.push(line) });
    const texts = () => lines.map((line) => JSON.parse(line).msg as string);
    let relayed = new Relay(port);
    const relayPort = await relayed.listen();
    const folder = mkdtempSync(join(tmpdir(), "waggle-key-"));
    const seed = new TextDecoder().decode(userKey.getSeed());
    const nkey = join(folder, "user.nk");
    writeFileSync(nkey, seed);
    try {
      const swarm = await aConnection({
        nats: `nats://127.0.0.1:${relayPort}`,
        credentials: { nkey },
        logger,
      });
      await swarm.agent({ kinds: ["a"], handler: () => undefined });
      await relayed.close();
      const lost = `lost the server at 127.0.0.1:${relayPort}; reconnecting`;
      await expect.poll(() => texts().filter((text) => text === lost).length).toBe(1);
      relayed = new Relay(port);
      await relayed.listen(relayPort);
      const found = `connected again to the server at 127.0.0.1:${relayPort}`;
      await expect.poll(() => texts().filter((text) => text === found).length, { timeout: 10_000 }).toBe(1);
      expect(lines.join("")).not.toContain(seed);
      await swarm.close();
    } finally {
      await relayed.close();
      rmSync(folder, { recursive: true });
    }
  });
});

/** A relay to the broker, which the test can cut. */
class Relay {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(toPort: number) {
    this.#server = createServer((near) => {
      const far = connectSocket(toPort, "127.0.0.1");
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from);
        from.on("error", () => to.destroy()); // the opposite end was cut
        from.pipe(to);
      }
    });
  }

  async listen(port = 0): Promise<number> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

describe("connect fails", () => {
  it("with UnreachableError and advice when nothing runs", async () => {
    const empty = mkdtempSync(join(tmpdir(), "waggle-client-"));
    try {
      await expect(connect({ dataFolder: empty })).rejects.toThrow(/waggle up/);
      await expect(connect({ dataFolder: empty })).rejects.toBeInstanceOf(UnreachableError);
    } finally {
      rmSync(empty, { recursive: true });
    }
  });

  it("with UnreachableError when nothing listens, without showing the secret", async () => {
    const error = await connect({ nats: "nats://hunter2@127.0.0.1:1" }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnreachableError);
    expect(String(error)).not.toContain("hunter2");
  });

  it.each([
    ["swarm", { swarm: "no.dots" }, InvalidConfigError],
    ["project", { project: "_" }, InvalidConfigError],
    ["user", { user: "two words" }, InvalidConfigError],
    ["natsContext", { natsContext: "another" }, InvalidConfigError],
  ] as const)("with the name of the wrong option: %s", async (field, options, type) => {
    const error = await connect({ nats: url, ...options }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ field });
  });

  it.each([
    [{ url: "nats://127.0.0.1:1" }, "url", /did you mean nats\?/],
    [{ projects: "p" }, "projects", /did you mean project\?/],
    [{ colour: "red" }, "colour", /there are nats,/],
    [null, undefined, /must be an object/],
  ])("with the unknown option: %o", async (options, field, message) => {
    const error = await connect(options as ConnectOptions).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidConfigError);
    expect(error).toMatchObject({ field, message: expect.stringMatching(message) });
  });

  it("with the name of the wrong variable", async () => {
    vi.stubEnv("WAGGLE_SWARM", "no.dots");
    const error = await connect({ nats: url }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidConfigError);
    expect(error).toMatchObject({
      field: "WAGGLE_SWARM",
      message: expect.stringMatching(/^WAGGLE_SWARM: /),
    });
  });

  it("with the reason of its signal", async () => {
    const reason = new Error("not wanted");
    await expect(connect({ nats: url, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});
