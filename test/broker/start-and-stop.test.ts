// A data folder's broker from start to stop, with real detached processes.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { keepBroker } from "../../src/broker/broker-keeper.ts";
import type { BrokerRecord } from "../../src/broker/broker-record.ts";
import { makeDataFolder } from "../../src/broker/data-folder.ts";
import { type FindBrokerOptions, type FoundBroker, findBroker } from "../../src/broker/find-broker.ts";
import { launch } from "../../src/broker/launch.ts";
import { hasEnded } from "../../src/broker/process-identity.ts";
import { stopBroker } from "../../src/broker/stop-broker.ts";
import { BrokerError, UnreachableError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import type { ServerCredentials } from "../../src/transport/server-address.ts";
import { keptLog } from "../support/kept-log.ts";
import { natsServersFor } from "../support/nats-server.ts";

let scratch: string;
let dataFolder: string;

beforeEach(() => {
  scratch = realpathSync(mkdtempSync(join(tmpdir(), "waggle-life-")));
  dataFolder = join(scratch, ".waggle");
});
afterEach(async () => {
  await stopBroker(dataFolder);
  rmSync(scratch, { recursive: true, force: true });
});

/** A PATH without a nats-server, and a home without NATS contexts. */
const bareEnv = () => ({ PATH: scratch, HOME: scratch });
const find = (overrides: Partial<FindBrokerOptions> = {}) =>
  findBroker({ mode: "find-or-start", dataFolder, env: bareEnv(), ...overrides });
const readRecord = () => JSON.parse(readFileSync(join(dataFolder, "broker.json"), "utf8")) as BrokerRecord;
const changeRecord = (changes: Partial<BrokerRecord>) =>
  writeFileSync(join(dataFolder, "broker.json"), JSON.stringify({ ...readRecord(), ...changes }));
const modeOf = (file: string) => (statSync(join(dataFolder, file)).mode & 0o777).toString(8);

async function works(found: FoundBroker): Promise<boolean> {
  const transport = await connectNats({ ...found.address, name: "life" });
  const outcome = await transport.request("nobody", new Uint8Array(0), { timeoutMs: 5_000 });
  await transport.close();
  return outcome.kind === "no-responders";
}

describe("the broker of a data folder", () => {
  it("is the development broker without a nats-server, and reports it", async () => {
    const found = await find();
    expect(found).toMatchObject({ kind: "development", local: { wasStarted: true, storeDir: null } });
    expect(found.sentence).toMatch(
      /^the development broker at 127\.0\.0\.1:\d+, started .*no nats-server is on the PATH/,
    );
    expect(await works(found)).toBe(true);
  });

  it("keeps its secret readable only to the owner, and off every command line", async () => {
    const found = await find();
    const { secret } = readRecord();
    const files = ["broker.json", "development-broker.json", "broker.log", "user.nk"];
    expect(files.map(modeOf)).toEqual(files.map(() => "600"));
    expect(modeOf(".")).toBe("700");
    expect(readFileSync(join(dataFolder, "broker.log"), "utf8")).not.toContain(secret);
    expect(found.sentence).not.toContain(secret);
    if (process.platform === "linux") {
      expect(readFileSync(`/proc/${found.local?.pid}/cmdline`, "utf8")).not.toContain(secret);
    }
  });

  it("is found by the second starter, and in mode find-only", async () => {
    const first = await find();
    const second = await find();
    const third = await find({ mode: "find-only" });
    expect([second, third].map(({ local }) => local?.wasStarted)).toEqual([false, false]);
    expect([second, third].map(({ local }) => local?.pid)).toEqual([first.local?.pid, first.local?.pid]);
    expect([second.address, third.address]).toEqual([first.address, first.address]);
  });

  it("is a single broker when several processes start at the same time", async () => {
    const found = await Promise.all([find(), find(), find(), find(), find()]);
    expect(new Set(found.map(({ local }) => local?.pid)).size).toBe(1);
    expect(found.filter(({ local }) => local?.wasStarted).length).toBe(1);
    expect(await Promise.all(found.map(works))).toEqual([true, true, true, true, true]);
  });

  it("is a single broker when several commands start at the same time", async () => {
    const starters = await Promise.all([startElsewhere(), startElsewhere(), startElsewhere()]);
    const pids = starters.map(({ brokerPid }) => brokerPid);
    expect(pids).toEqual([readRecord().pid, readRecord().pid, readRecord().pid]);
    for (const { child } of starters) child.kill("SIGKILL");
  });

  it.each(["SIGKILL", "SIGINT", "SIGHUP"] as const)(
    "outlives a %s to its starter's whole process group",
    async (signal) => {
      const { child, brokerPid } = await startElsewhere();
      const ended = once(child, "exit");
      process.kill(-(child.pid ?? 0), signal);
      await ended;
      expect(await hasEnded(brokerPid ?? 0)).toBe(false);
      expect(await works(await find({ mode: "find-only" }))).toBe(true);
    },
  );

  it("is not started in mode find-only", async () => {
    const looking = find({ mode: "find-only" });
    await expect(looking).rejects.toThrow(UnreachableError);
    await expect(looking).rejects.toThrow(/`waggle up`/);
  });

  it("stops on request, once, and returns at the same port with the same secret", async () => {
    const first = await find();
    const stopped = await stopBroker(dataFolder);
    expect(stopped.wasRunning).toBe(true);
    expect(stopped.sentence).toContain(`stopped the development broker at ${first.address.urls[0]}`);
    expect(await hasEnded(first.local?.pid ?? 0)).toBe(true);
    expect(await stopBroker(dataFolder)).toMatchObject({ wasRunning: false });
    await expect(find({ mode: "find-only" })).rejects.toThrow(UnreachableError);

    const second = await find();
    expect(second.local).toMatchObject({ wasStarted: true });
    expect(second.local?.pid).not.toBe(first.local?.pid);
    expect(second.address).toEqual(first.address);
  });

  it("takes the user's key from other tools", async () => {
    const { address } = await find();
    const file = join(dataFolder, "user.nk");
    const transport = await connectNats({
      ...address,
      credentials: { kind: "nkey-file", file },
      name: "tool",
    });
    expect(transport.status()).toBe("connected");
    await transport.close();
  });

  it("is refused in a folder to which other users may write", async () => {
    await find();
    for (const mode of [0o770, 0o702]) {
      chmodSync(dataFolder, mode);
      for (const look of [() => find(), () => find({ mode: "find-only" }), () => stopBroker(dataFolder)]) {
        await expect(look()).rejects.toThrow(/other users may write to .*chmod go-w/);
      }
    }
    chmodSync(dataFolder, 0o755); // others may look: the files themselves are closed to them
    expect((await find({ mode: "find-only" })).kind).toBe("development");
  });

  it.runIf(process.getuid?.() === 0)(
    "is refused in a folder of another user, and behind that user's link",
    async () => {
      await find();
      const link = join(scratch, "link");
      symlinkSync(dataFolder, link);
      lchownSync(link, 65_534, 65_534);
      await expect(find({ dataFolder: link })).rejects.toThrow(/link belongs to another user \(id 65534/);
      chownSync(dataFolder, 65_534, 65_534);
      await expect(find({ mode: "find-only" })).rejects.toThrow(/belongs to another user .*--data-folder/);
      chownSync(dataFolder, 0, 0);
    },
  );

  it("follows no link at the path of a file", async () => {
    const found = await find();
    await stopBroker(dataFolder);
    const victims = ["broker.json", "development-broker.json"].map((file) => {
      const victim = join(scratch, `victim-${file}`);
      renameSync(join(dataFolder, file), victim);
      symlinkSync(victim, join(dataFolder, file));
      return { victim, file: join(dataFolder, file), content: readFileSync(victim, "utf8") };
    });
    expect((await find()).address).toEqual(found.address);
    for (const { victim, file, content } of victims) {
      expect(readFileSync(victim, "utf8")).toBe(content);
      expect(lstatSync(file).isSymbolicLink()).toBe(false);
    }
  });

  it("does not write its log to where a link leads", async () => {
    await find();
    await stopBroker(dataFolder);
    const victim = join(scratch, "victim");
    rmSync(join(dataFolder, "broker.log"));
    symlinkSync(victim, join(dataFolder, "broker.log"));
    await expect(find()).rejects.toThrow(/cannot write to .*broker\.log: .* no link/);
    expect(existsSync(victim)).toBe(false);
  });

  it("stopping nothing is not an error", async () => {
    expect(await stopBroker(join(scratch, "nowhere"))).toMatchObject({ wasRunning: false });
  });

  it("is replaced when its process was killed: same port, same secret", async () => {
    const first = await find();
    process.kill(first.local?.pid ?? 0, "SIGKILL");
    const second = await find();
    expect(second.local).toMatchObject({ wasStarted: true });
    expect(second.address).toEqual(first.address);
  });

  it("takes a new port when a foreign process took its own; the process never sees the secret", async () => {
    const first = await find();
    await stopBroker(dataFolder);
    const heard: string[] = [];
    const stranger = await listenAt(Number(first.address.urls[0]?.split(":").at(-1)), heard);
    const second = await find();
    expect(second.address.urls).not.toEqual(first.address.urls);
    expect(second.address.credentials).toEqual(first.address.credentials);
    expect(await works(second)).toBe(true);
    expect(heard.join("")).toBe("");
    stranger.close();
  });

  it("is replaced when it hangs", async () => {
    const first = await find();
    process.kill(first.local?.pid ?? 0, "SIGSTOP");
    const second = await find();
    expect(second.local).toMatchObject({ wasStarted: true });
    expect(await hasEnded(first.local?.pid ?? 0)).toBe(true);
    expect(await works(second)).toBe(true);
  });

  it("is never mistaken for a process with a reused id", async () => {
    await find();
    await stopBroker(dataFolder);
    changeRecord({ pid: process.pid });
    expect(await stopBroker(dataFolder)).toMatchObject({ wasRunning: false });
    changeRecord({ pid: process.pid });
    expect((await find()).local).toMatchObject({ wasStarted: true });
  });

  it("is not guessed from a damaged record", async () => {
    await find();
    await stopBroker(dataFolder);
    for (const damaged of [
      "",
      "{",
      "[]",
      JSON.stringify({ ...readRecordOr({}), url: "nats://evil.example:4222" }),
    ]) {
      writeFileSync(join(dataFolder, "broker.json"), damaged);
      await expect(find()).rejects.toThrow(BrokerError);
      await expect(find({ mode: "find-only" })).rejects.toThrow(/broker\.json does not describe a broker/);
    }
    rmSync(join(dataFolder, "broker.json"));
  });

  it("reports the last log line when it does not start", async () => {
    await find();
    await stopBroker(dataFolder);
    const binary = join(scratch, "nats-server");
    writeFileSync(
      binary,
      "#!/bin/sh\ncase $1 in --version) echo nats-server: v2.99.0;; *) echo out of bees; exit 1;; esac\n",
      {
        mode: 0o755,
      },
    );
    const starting = find({ kind: "nats-server", env: { PATH: `${scratch}:/bin:/usr/bin`, HOME: scratch } });
    await expect(starting).rejects.toThrow(/does not start; .*broker\.log ends with: "out of bees"/);
    expect(readRecord().pid).toBe(null);
    changeRecord({ kind: "development" });
  });

  it("is refused with a remedy when its program cannot be run", async () => {
    const program = {
      kind: "nats-server",
      binary: { path: join(scratch, "absent"), version: "2.99.0" },
    } as const;
    const starting = launch(program, { folder: makeDataFolder(dataFolder), port: 1, secret: "s" });
    await expect(starting).rejects.toThrow(
      /cannot run .*absent \(.*ENOENT\): let this user execute the file, or name a running server with --nats/,
    );
  });

  it("is not replaced by a broker of a different kind with an empty journal", async () => {
    await find();
    await stopBroker(dataFolder);
    changeRecord({ kind: "nats-server" });
    await expect(find()).rejects.toThrow(/is in JetStream, and no nats-server is on the PATH/);
  });
});

/** Takes one second on a quiet machine. */
const BACK_MS_MAX = 5_000;

describe("a broker that is kept running", () => {
  let log: ReturnType<typeof keptLog>;
  const closing: (() => unknown)[] = [];
  beforeEach(() => {
    log = keptLog();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const said = () => log.lines.map(({ msg }) => msg).join("\n");
  async function connectTo(found: FoundBroker): Promise<NatsTransport> {
    const transport = await connectNats({ ...found.address, name: "keeper" });
    closing.push(() => transport.close());
    return transport;
  }
  function keepWith(transport: NatsTransport, { local }: FoundBroker): void {
    const url = local?.url ?? "";
    closing.push(keepBroker({ dataFolder, url, env: bareEnv(), transport, log: log.logger }));
  }
  async function keep(found: FoundBroker): Promise<NatsTransport> {
    const transport = await connectTo(found);
    keepWith(transport, found);
    return transport;
  }
  /** The broker answers the connection, which was made before. */
  const comesBack = (transport: NatsTransport) =>
    expect
      .poll(async () => (await transport.request("nobody", new Uint8Array(0), { timeoutMs: 1_000 })).kind, {
        timeout: 15_000,
      })
      .toBe("no-responders");
  const killBroker = async ({ local }: FoundBroker) => {
    process.kill(local?.pid ?? 0, "SIGKILL");
    await expect.poll(() => hasEnded(local?.pid ?? 0), { timeout: 5_000 }).toBe(true);
  };

  it("returns once after a kill, to all its clients", async () => {
    const found = await find();
    const transports = [await keep(found), await keep(found)];
    const bystander = await connectTo(found);
    const killedAt = performance.now();
    await killBroker(found);
    await Promise.all([...transports, bystander].map(comesBack));
    expect(performance.now() - killedAt).toBeLessThan(BACK_MS_MAX);
    expect(log.lines.filter(({ msg }) => msg.startsWith("the broker had ended"))).toHaveLength(1);
    expect(said()).toContain(`(process ${found.local?.pid}): started again at ${found.local?.url} `);
    expect((await find({ mode: "find-only" })).address).toEqual(found.address);
  });

  it("stays stopped after 'waggle down', also after a kill", async () => {
    const found = await find();
    const transport = await keep(found);
    await stopBroker(dataFolder);
    await expect.poll(said, { timeout: 10_000 }).toContain("was stopped with `waggle down`");
    const again = await find();
    await comesBack(transport);
    await killBroker(again);
    await stopBroker(dataFolder);
    await expect(find({ mode: "find-only" })).rejects.toThrow(/was stopped: `waggle up` starts it again/);
    await new Promise((resolve) => setTimeout(resolve, 4 * limits.brokerAwayMs));
    expect(readRecord().pid).toBe(null);
  });

  it("is retried with growing pauses when it cannot start, and reports the reason", async () => {
    const found = await find();
    const transport = await connectTo(found);
    await killBroker(found);
    // A process with ending threads holds the port for a moment.
    const stranger = await vi.waitFor(() => listenAt(Number(found.local?.url.split(":").at(-1)), []));
    keepWith(transport, found);
    await expect
      .poll(said, { timeout: 10_000 })
      .toMatch(/(cannot be started again: .*EADDRINUSE.*; trying again.*){2}/s);
    expect(readRecord().url).toBe(found.local?.url);
    stranger.close();
    await comesBack(transport);
    expect(said()).toContain("started again at");
  });

  it("is left alone while its process runs", async () => {
    const found = await find();
    const transport = await keep(found);
    process.kill(found.local?.pid ?? 0, "SIGSTOP");
    await expect
      .poll(said, { timeout: 20_000 })
      .toContain(`process ${found.local?.pid} runs and does not answer`);
    process.kill(found.local?.pid ?? 0, "SIGCONT");
    await comesBack(transport);
    expect(said()).not.toContain("started again at");
  });
});

for (const { path, version } of natsServersFor("life of nats-server")) {
  describe(`nats-server ${version} in a data folder`, () => {
    const env = () => ({ PATH: dirname(path), HOME: scratch });

    it("is preferred, has JetStream, and keeps its secret and its streams in the folder", async () => {
      const found = await find({ env: env() });
      expect(found).toMatchObject({ kind: "nats-server", local: { version, wasStarted: true } });
      expect(found.local?.storeDir).toBe(join(dataFolder, "jetstream"));
      expect(found.sentence).toContain(`nats-server ${version} with JetStream at 127.0.0.1:`);
      expect(modeOf("nats-server.conf")).toBe("600");
      const transport = await connectNats({ ...found.address, name: "life" });
      expect(transport.server()).toMatchObject({ version, hasJetStream: true });
      await transport.close();
    });

    it("is one, when several start it at the same time, and stops cleanly", async () => {
      const found = await Promise.all([find({ env: env() }), find({ env: env() }), find({ env: env() })]);
      expect(new Set(found.map(({ local }) => local?.pid)).size).toBe(1);
      expect(await stopBroker(dataFolder)).toMatchObject({ wasRunning: true });
      expect(await hasEnded(found[0]?.local?.pid ?? 0)).toBe(true);
      expect((await find({ env: env() })).address).toEqual(found[0]?.address);
    });

    it("refuses clients without the secret", async () => {
      const found = await find({ env: env() });
      const stranger = connectNats({ urls: found.address.urls, name: "stranger" });
      await expect(stranger).rejects.toThrow(/refused the credentials/);
    });

    it("takes its one user's password from clients without keys, and no token", async () => {
      const { address } = await find({ env: env() });
      const { secret } = readRecord();
      const open = (credentials: ServerCredentials) => connectNats({ ...address, credentials, name: "tool" });
      const transport = await open({ kind: "password", user: "waggle", password: secret });
      expect(transport.status()).toBe("connected");
      await transport.close();
      await expect(open({ kind: "token", token: secret })).rejects.toThrow(/refused the credentials/);
    });

    it("logs in without a secret on the wire, by the key of the folder", async () => {
      const { address } = await find({ env: env() });
      expect(address.credentials).toEqual({ kind: "nkey-file", file: join(dataFolder, "user.nk") });
      expect(modeOf("user.nk")).toBe("600");
    });
  });
}

function readRecordOr(fallback: object): object {
  try {
    return readRecord();
  } catch {
    return fallback;
  }
}

async function listenAt(port: number, heard: string[]) {
  const { createServer } = await import("node:net");
  const server = createServer((socket) => {
    socket.write('INFO {"server_name":"stranger"}\r\n');
    socket.on("data", (data) => heard.push(String(data)));
    socket.on("error", () => socket.destroy());
  }).listen({ host: "127.0.0.1", port });
  await once(server, "listening");
  return server;
}

interface Starter {
  readonly child: ChildProcess;
  readonly brokerPid: number;
}

/** A process in a separate group that starts the broker and then stays. */
async function startElsewhere(): Promise<Starter> {
  const module = fileURLToPath(new URL("../../src/broker/find-broker.ts", import.meta.url));
  const code = `
    import { findBroker } from ${JSON.stringify(module)};
    const { local } = await findBroker(${JSON.stringify({ mode: "find-or-start", dataFolder, env: bareEnv() })});
    console.log(local.pid);
    setInterval(() => undefined, 1_000);
  `;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", code], {
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [printed] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  return { child, brokerPid: Number(printed) };
}
