// A swarm on a server with generated credentials. Each holder's command line runs in the holder's folder, within the
// test's process. The server's log has every refused subject.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { expect, vi } from "vitest";
import { type AuthFolder, authFolderOf } from "../../src/auth/auth-folder.ts";
import { addCredential, initAuth, type Wanted } from "../../src/auth/credentials.ts";
import type { AuthMode } from "../../src/auth/roster.ts";
import { freePort } from "../../src/broker/free-port.ts";
import { findNamedServer } from "../../src/broker/named-server.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { loadSettings, type Settings } from "../../src/config/settings.ts";
import { openNatsConnection } from "../../src/transport/nats.ts";
import { aShell, type FakeShell, runIn } from "../cli/shell.ts";
import { type SecuredServer, startProcess } from "../support/secured-server.ts";

export const swarm = "acme";

type Named = Pick<Wanted, "name" | "role" | "group" | "project" | "serves" | "calls">;

/** Also within hooks, where vitest's `expect.poll` does not work. */
const patience = { timeout: 30_000, interval: 50 };

/** A verb that runs until Ctrl-C. */
export class Running {
  readonly ended: ReturnType<typeof runIn>;
  readonly #shell: FakeShell;

  constructor(shell: FakeShell, args: readonly string[]) {
    this.#shell = shell;
    this.ended = runIn(shell, ...args);
  }

  get said(): string {
    return this.#shell.stdout.text + this.#shell.stderr.text;
  }

  async says(text: string | RegExp): Promise<void> {
    await vi.waitFor(() => expect(this.said).toMatch(text), patience);
  }

  async stop(): ReturnType<typeof runIn> {
    this.#shell.interrupt();
    return await this.ended;
  }
}

export class SecuredSwarm {
  readonly server: SecuredServer;
  readonly #home: string;
  readonly #folder: AuthFolder;
  readonly #running: Running[] = [];
  #fences = 0;
  #read = 0;

  private constructor(home: string, folder: AuthFolder, server: SecuredServer) {
    this.#home = home;
    this.#folder = folder;
    this.server = server;
  }

  /** The server, and the credentials: the coordinator's and the operator's, and those that are named. */
  static async start(binary: string, mode: AuthMode, wanted: readonly Named[]): Promise<SecuredSwarm> {
    const home = mkdtempSync(join(tmpdir(), "waggle-secured-"));
    const folder = authFolderOf(home);
    initAuth(folder, { swarm, mode, hosts: [], port: await freePort(), now: Date.now() });
    for (const role of ["coordinator", "operator"] as const)
      addCredential(folder, { swarm, name: role, role, ttlMs: undefined, now: Date.now() });
    for (const each of wanted) addCredential(folder, { swarm, ...each, ttlMs: undefined, now: Date.now() });
    return new SecuredSwarm(home, folder, await startProcess(binary, folder.serverConfig));
  }

  /** One more credential, which a server in mode jwt accepts at once. */
  add(wanted: Named & Pick<Wanted, "ttlMs">): void {
    addCredential(this.#folder, { swarm, now: Date.now(), ...wanted });
  }

  /** The folder that the holder gets. */
  folderOf(name: string): string {
    return join(this.#folder.path, "credentials", swarm, name);
  }

  settingsOf(name: string): Settings {
    return loadSettings({ flags: {}, env: {}, cwd: this.folderOf(name) });
  }

  /** Runs a verb to its end. @param name of the credential */
  async run(name: string, ...args: string[]) {
    return await this.begin(name, ...args).ended;
  }

  async runWith(stdin: string, name: string, ...args: string[]) {
    return await new Running(this.#shell(name, stdin), args).ended;
  }

  /** Starts a verb that runs until `stop`. */
  begin(name: string, ...args: readonly string[]): Running {
    const running = new Running(this.#shell(name), args);
    this.#running.push(running);
    return running;
  }

  /** The same, with an input that the test writes. */
  beginWith(stdin: Readable, name: string, ...args: readonly string[]): Running {
    const running = new Running({ ...this.#shell(name), stdin }, args);
    this.#running.push(running);
    return running;
  }

  #shell(name: string, stdin = ""): FakeShell {
    const { PATH = "" } = process.env;
    return aShell({ cwd: this.folderOf(name), env: { PATH, HOME: this.#home }, stdin });
  }

  /** The SDK, as the holder's programs use it. */
  async connect(name: string, group?: string): Promise<Swarm> {
    const { nats, credentials, inboxPrefix, project, projectOnly, queriesOnly } = this.settingsOf(name);
    const scope = group === undefined ? { project, projectOnly, queriesOnly } : { group };
    return await connect({ nats, credentials, inboxPrefix, swarm, ...scope, user: "ann" });
  }

  /** The library's connection, which checks nothing before it sends. */
  async open(name: string) {
    const settings = this.settingsOf(name);
    const named = await findNamedServer({ ...settings, env: {} });
    if (named === undefined) throw new Error(`${name} has no server`);
    const { inboxPrefix = "" } = settings;
    return await openNatsConnection({ ...named.address, inboxPrefix, name });
  }

  /** What the server refused since the last call. */
  async violations(): Promise<string[]> {
    // The server logs in order: what it refused before this publish is in the log before.
    this.#fences += 1;
    const fence = `fence.${this.#fences}.end`;
    const connection = await this.open("operator");
    connection.publish(fence);
    await connection.flush();
    await connection.close();
    await vi.waitFor(() => expect(this.server.log()).toContain(fence), patience);
    const lines = this.server.log().slice(this.#read).split("\n");
    this.#read = this.server.log().length;
    return lines.filter((line) => line.includes("Violation") && !line.includes('"fence.'));
  }

  async stop(): Promise<void> {
    for (const running of this.#running.reverse()) await running.stop();
    await this.server.stop();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
