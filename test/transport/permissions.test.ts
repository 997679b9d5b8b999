// Permissions, on real nats-servers with users. A forbidden request ends within a second with WAGGLE_FORBIDDEN
// and the subject, whether publishing or the reply subject is forbidden. Agents and waits end likewise.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startAgent } from "../../src/agent/agent.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { type Coordinator, startCoordinator } from "../../src/coordinator/coordinator.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { openNatsJournal } from "../../src/journal/nats.ts";
import { connectNats, type NatsTransport } from "../../src/transport/nats.ts";
import { aShell, runIn } from "../cli/shell.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { hasProgram } from "../support/programs.ts";
import { silentLogger } from "../support/swarm.ts";

const script = fileURLToPath(new URL("../../examples/python-agent/agent.py", import.meta.url));
const SWARM = "waggle.v1.default";

for (const { path, version } of natsServersFor("permissions")) {
  describe(`nats-server ${version} with permissions`, () => {
    let server: RunningNatsServer;
    let transport: NatsTransport;
    let coordinator: Coordinator;

    beforeAll(async () => {
      server = await startNatsServer({
        binary: path,
        jetstream: true,
        extraConfig: `authorization { users: [
          { user: lead, password: x }
          { user: red, password: x, permissions: {
            publish: ["${SWARM}.project.red.>"], subscribe: ["_INBOX_red.>", "${SWARM}.coordinator"] } }
          { user: west, password: x, permissions: {
            publish: ["${SWARM}.agent.west.>"], subscribe: ["_INBOX_west.>", "${SWARM}.agent.west.>"] } }
          { user: lame, password: x, permissions: { publish: ["waggle.v1.>", "_INBOX.>"], subscribe: [">"] } }
          { user: finder, password: x, permissions: {
            publish: ["$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.>"], subscribe: [">"] } }
          { user: unsubscribed, password: x, permissions: { publish: [">"], subscribe: ["${SWARM}.>"] } }
          { user: prompter, password: x, permissions: {
            publish: ["$SRV.INFO.agents", "${SWARM}.>"], subscribe: ["_INBOX.>", "${SWARM}.>"] } }
          { user: mute, password: x, permissions: { publish: ["${SWARM}.agent.>", "${SWARM}.project.>"], subscribe: { allow: ["_INBOX_mute.>"], deny: ["_INBOX_mute.*.done"] } } }
        ] }`,
      });
      transport = await connectNats({ urls: [server.url], credentials: of("lead"), name: "lead" });
      coordinator = await startCoordinator({
        id: "c1",
        swarm: swarmId("default"),
        transport,
        journal: new MemoryJournal(new MemoryJournalStore()),
        clock: systemClock,
        random: systemRandom,
        logger: silentLogger,
      });
      await coordinator.whenLeading();
    });
    afterAll(async () => {
      await coordinator.stop();
      await transport.close();
      await server.stop();
    });

    const of = (user: string) => ({ kind: "password", user, password: "x" }) as const;
    const urlOf = (user: string) => server.url.replace("//", `//${user}:x@`);
    const swarmOf = (user: string, inboxPrefix: string | undefined, project: string): Promise<Swarm> =>
      connect({ nats: urlOf(user), inboxPrefix, project });

    /** The error of a call, and the time until it came. */
    async function refusal(
      call: Promise<unknown>,
    ): Promise<{ readonly error: unknown; readonly ms: number }> {
      const startedMs = performance.now();
      const error = await call.then(
        () => "nothing was refused",
        (thrown: unknown) => thrown,
      );
      return { error, ms: performance.now() - startedMs };
    }
    function expectForbidden({ error, ms }: Awaited<ReturnType<typeof refusal>>, sentence: string): void {
      expect(error).toMatchObject({
        code: "WAGGLE_FORBIDDEN",
        message: expect.stringContaining(sentence),
      });
      expect(ms).toBeLessThan(1_000);
    }

    it("a project's own requests pass, on its own inbox prefix", async () => {
      const red = await swarmOf("red", "_INBOX_red", "red");
      const { id } = await red.submit({ kind: "count", id: "t1" });
      expect((await red.project("red").taskStatus(id)).state).toBe("queued");
      expect((await red.project("red").story(id)).state).toBe("queued");
      const updates: string[] = [];
      const watching = red.task("t1").events$.subscribe(({ type }) => updates.push(type));
      await expect.poll(() => updates).toEqual(["submitted"]);
      watching.unsubscribe();
      await red.close();
    });

    it("a request on a subject that is not permitted ends with the subject: nothing was done", async () => {
      const red = await swarmOf("red", "_INBOX_red", "red");
      const publish = "the server does not permit this user to publish to ";
      const blue = await refusal(red.submit({ kind: "count", project: "blue" }));
      expectForbidden(blue, `${publish}${SWARM}.project.blue.submit. Nothing was done`);
      expectForbidden(await refusal(red.taskStatus("t1")), `${publish}${SWARM}.project._.query.task`);
      expectForbidden(
        await refusal(red.status()),
        `${publish}${SWARM}.project._.query.status. Nothing was done. Name a project that is permitted (--project, WAGGLE_PROJECT)`,
      );
      expectForbidden(await refusal(red.drain("a1")), `${publish}${SWARM}.operator.drain`);
      await red.close();
    });

    it("a request whose answer may not be heard ends with the inbox, each time, and does nothing", async () => {
      const red = await swarmOf("red", undefined, "red");
      for (let asked = 0; asked < 2; asked += 1)
        expectForbidden(
          await refusal(red.project("red").status()),
          "the server does not permit this user to subscribe to _INBOX.",
        );
      const { error } = await refusal(red.submit({ kind: "count", id: "unheard" }));
      expect(error).toMatchObject({
        message: expect.stringContaining("Nothing was done. Set an inbox prefix"),
      });
      await red.close();
      const lead = await swarmOf("lead", undefined, "red");
      await expect(lead.project("red").taskStatus("unheard")).rejects.toMatchObject({
        code: "WAGGLE_UNKNOWN_TASK",
      });
      await lead.close();
    });

    it("a wait whose outcome may not be heard ends with the inbox", async () => {
      const mute = await swarmOf("mute", "_INBOX_mute", "red");
      const { error, ms } = await refusal(mute.task("t1").outcome());
      const message = expect.stringMatching(/subscribe to _INBOX_mute\.\w+\.done/);
      expect(error).toMatchObject({ code: "WAGGLE_FORBIDDEN", message });
      expect(ms).toBeLessThan(1_000);
      await mute.close();
    });

    it("a user of one project reads it by command, with --project or WAGGLE_PROJECT", async () => {
      const red = await swarmOf("red", "_INBOX_red", "red");
      const { id } = await red.submit({ kind: "count", id: "cut" });
      await red.cancel(id);
      await red.close();
      const env = { NATS_URL: urlOf("red"), NATS_INBOX_PREFIX: "_INBOX_red" };
      const run = async (more: Record<string, string>, ...args: string[]) => {
        const { code, stdout, stderr } = await runIn(
          aShell({ cwd: tmpdir(), env: { ...env, ...more } }),
          ...args,
        );
        return { code, stdout, stderr };
      };
      const typed = (...args: string[]) => run({}, ...args, "--project", "red");
      const configured = (...args: string[]) => run({ WAGGLE_PROJECT: "red" }, ...args);
      const note = expect.stringContaining("only project red: this user may not ask about the whole swarm");

      expect(await typed("events")).toMatchObject({ code: 0, stdout: expect.stringContaining("cut") });
      expect(await configured("events")).toMatchObject({ code: 0, stdout: expect.stringContaining("cut") });
      const waited = { code: 4, stderr: expect.stringContaining("cancelled") };
      expect(await typed("wait", "cut")).toMatchObject(waited);
      expect(await configured("wait", "cut")).toMatchObject(waited);
      const shown = { code: 0, stdout: expect.stringContaining("project red") };
      expect(await run({}, "project", "show", "red")).toMatchObject(shown);
      const state = { code: 0, stdout: expect.stringMatching(/project +red\n/) };
      expect(await typed("status", "--all")).toMatchObject({ ...state, stderr: "" });
      expect(await configured("status")).toMatchObject({ ...state, stderr: note });
      const list = { code: 0, stdout: expect.stringContaining("cut") };
      expect(await typed("tasks")).toMatchObject({ ...list, stderr: "" });
      expect(await configured("tasks")).toMatchObject({ ...list, stderr: note });
      const explained = { code: 0, stdout: expect.stringContaining("cancelled"), stderr: "" };
      expect(await configured("explain", "cut")).toMatchObject(explained);
      expect(await run({}, "status")).toMatchObject({
        code: 5,
        stderr: expect.stringContaining(`${SWARM}.project._.query.status`),
      });
    });

    it("a user whose settings say projectOnly asks nothing about the whole swarm", async () => {
      const red = await swarmOf("red", "_INBOX_red", "red");
      const { id } = await red.submit({ kind: "count", id: "only-red" });
      await red.close();
      const cwd = mkdtempSync(join(tmpdir(), "waggle-project-only-"));
      const settings = { project: "red", projectOnly: true };
      writeFileSync(join(cwd, "waggle.config.json"), JSON.stringify(settings));
      const env = { NATS_URL: urlOf("red"), NATS_INBOX_PREFIX: "_INBOX_red" };
      for (const args of [["status"], ["tasks"], ["events"], ["task", id], ["explain", id]]) {
        const { code, stdout, stderr } = await runIn(aShell({ cwd, env }), ...args);
        expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
        expect(stdout).toContain(args[0] === "status" ? "red" : id);
      }
      const { code, stderr } = await runIn(aShell({ cwd, env }), "cancel", id);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const idle = await runIn(aShell({ cwd, env }), "cancel");
      expect(idle).toMatchObject({ code: 2, stderr: expect.stringContaining("give task ids or filters") });
      rmSync(cwd, { recursive: true });
    });

    it("an agent of a group joins under its credential, and under no other group", async () => {
      const deps = {
        swarm: swarmId("default"),
        connection: {
          kind: "server",
          server: { urls: [server.url], credentials: of("west"), inboxPrefix: "_INBOX_west" },
        },
      } as const;
      const options = { kinds: ["other"], handler: () => "done" };
      const agent = await startAgent({ ...options, id: "a1", group: "west" }, deps);
      expect(agent.status()).toBe("ready");
      await agent.stop();
      const east = await refusal(startAgent({ ...options, id: "a2", group: "east" }, deps));
      expect(east.error).toMatchObject({
        code: "WAGGLE_FORBIDDEN",
        message: expect.stringMatching(
          /^the server does not permit this user to (publish|subscribe) to waggle\.v1\.default\.agent\.east\.a2\..*Name a group that is permitted \(--group\)/,
        ),
      });
      expect((east.error as Error).message).not.toContain("inbox");
    });

    it("a journal without permissions ends with the subject, and repeats nothing", async () => {
      const open = (user: string) =>
        openNatsJournal({
          swarm: swarmId("default"),
          connection: { urls: [server.url], credentials: of(user), name: user },
        });
      const sentence = "the server does not permit this user to";
      expectForbidden(await refusal(open("lame")), `${sentence} publish to $JS.API.STREAM.NAMES. Nothing`);
      expectForbidden(await refusal(open("unsubscribed")), `${sentence} subscribe to _INBOX.`);
      const journal = await open("finder");
      const created = await refusal(journal.create(1));
      expectForbidden(created, `${sentence} publish to $JS.API.STREAM.CREATE.WAGGLE_default_1`);
      await journal.close();
    });

    it("a coordinator, doctor and recover without permissions for the journal say so soon", async () => {
      const verbs = [
        { argv: ["up", "--swarm", "other"], exitCode: 5 },
        { argv: ["doctor"], exitCode: 0 },
        { argv: ["journal", "recover", "--swarm", "other"], exitCode: 5 },
      ];
      for (const { argv, exitCode } of verbs) {
        const startedMs = performance.now();
        const shell = aShell({ cwd: tmpdir(), env: { NATS_URL: urlOf("lame") } });
        const { code, stdout, stderr } = await runIn(shell, ...argv);
        expect(stdout + stderr).toContain("publish to $JS.API.STREAM.NAMES");
        expect([argv[0], code]).toEqual([argv[0], exitCode]);
        expect(stdout + stderr).not.toMatch(/start the servers|\n +at /);
        expect(performance.now() - startedMs).toBeLessThan(5_000);
      }
    });

    it("a bridge without permission for discovery or heartbeats ends at once, and names the flag", async () => {
      const flag = "--call 'agents.prompt.>'";
      const cases = [
        {
          user: "west",
          flags: ["--list", "--inbox-prefix", "_INBOX_west"],
          subject: "publish to $SRV.INFO.agents",
        },
        { user: "west", flags: ["--inbox-prefix", "_INBOX_west"], subject: "subscribe to agents.hb.*.*.*" },
        { user: "prompter", flags: [], subject: "subscribe to agents.hb.*.*.*" },
      ];
      for (const { user, flags, subject } of cases) {
        const startedMs = performance.now();
        const shell = aShell({ cwd: tmpdir(), env: { NATS_URL: urlOf(user) } });
        const { code, stderr } = await runIn(shell, "bridge", "synadia", ...flags);
        expect(stderr).toMatch(/^error WAGGLE_FORBIDDEN: /m);
        expect(stderr).toContain(`${subject}.`);
        expect(stderr).toContain(flag);
        expect([user, code]).toEqual([user, 5]);
        expect(performance.now() - startedMs).toBeLessThan(5_000);
      }
    });

    it.runIf(hasProgram("python3", "the agent in Python"))(
      "the agent in Python joins its group on its own inbox prefix, and ends when a subject is forbidden",
      async () => {
        const start = (...flags: string[]) => {
          const args = [script, "--kind", "shout", "--id", "py", "--nats", urlOf("west"), ...flags];
          const agent = spawn("python3", args, { stdio: ["ignore", "ignore", "pipe"] });
          let said = "";
          agent.stderr.on("data", (chunk: Buffer) => {
            said += chunk.toString();
          });
          return { agent, said: () => said };
        };
        const west = start("--group", "west", "--inbox-prefix", "_INBOX_west");
        await expect.poll(west.said, { timeout: 10_000 }).toContain("py joined");
        west.agent.kill("SIGKILL");
        const forbidden = [
          [start("--group", "east", "--inbox-prefix", "_INBOX_west"), `${SWARM}.agent.east.py.`],
          [start("--group", "west"), "_INBOX."],
        ] as const;
        for (const [{ agent, said }, subject] of forbidden) {
          const code: unknown = agent.exitCode ?? (await once(agent, "exit"))[0];
          expect([code, said()]).toEqual([5, expect.stringContaining(subject)]);
        }
      },
    );

    it("an agent without permission for its assignments ends, and reports it", async () => {
      const deps = {
        swarm: swarmId("default"),
        connection: {
          kind: "server",
          server: { urls: [server.url], credentials: of("mute"), inboxPrefix: "_INBOX_mute" },
        },
      } as const;
      const { error } = await refusal(
        startAgent({ id: "a3", kinds: ["other"], handler: () => "done" }, deps),
      );
      expect(error).toMatchObject({
        code: "WAGGLE_FORBIDDEN",
        message: expect.stringContaining(`subscribe to ${SWARM}.agent._.a3.assign`),
      });
    });
  });
}
