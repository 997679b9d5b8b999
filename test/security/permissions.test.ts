// The table of permissions against whole runs of every role on a real server. The server enforces the table, and a
// proxy in front of it records each role's subjects: none is refused, and no entry of the table is unused.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Agent } from "../../src/agent/agent.ts";
import { permissionsText } from "../../src/auth/permissions-text.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { WaggleError } from "../../src/errors.ts";
import { swarmId } from "../../src/ids.ts";
import { encode } from "../../src/protocol/codec.ts";
import {
  type Holder,
  inboxPrefixOf,
  permissionsOf,
  type Role,
  roles,
} from "../../src/protocol/permissions.ts";
import { streamRequest } from "../../src/protocol/server-subjects.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";
import { connectNats } from "../../src/transport/nats.ts";
import { parseServerUrls } from "../../src/transport/server-address.ts";
import { TcpProxy } from "../chaos/proxy.ts";
import { aShell, runIn } from "../cli/shell.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { allows, SubjectRecorder } from "../support/subject-recorder.ts";

const swarm = swarmId("acme");
const [server] = natsServersFor("permissions of roles");

const holders: Readonly<Record<Role, Holder>> = {
  coordinator: { role: "coordinator", inboxPrefix: inboxPrefixOf({ name: "coordinator" }) },
  agent: { role: "agent", group: "west", inboxPrefix: inboxPrefixOf({ group: "west" }) },
  submitter: { role: "submitter", project: "red", inboxPrefix: inboxPrefixOf({ name: "submitter" }) },
  owner: { role: "owner", project: "red", inboxPrefix: inboxPrefixOf({ name: "owner" }) },
  auditor: { role: "auditor", inboxPrefix: inboxPrefixOf({ name: "auditor" }) },
  operator: { role: "operator", inboxPrefix: inboxPrefixOf({ name: "operator" }) },
  metrics: { role: "metrics", inboxPrefix: inboxPrefixOf({ name: "metrics" }) },
};

function accounts(): string {
  const users = roles.map(
    (role) =>
      `{ user: ${role}, password: secret, permissions: ${permissionsText(permissionsOf(swarm, holders[role]))} }`,
  );
  return `accounts { SWARM { jetstream: enabled, users: [${users.join(", ")}] }, SYS { } }\nsystem_account: SYS`;
}

/** An owner's client asks as an operator first; refused by the server, it asks as the owner. */
const refusedFirst = (["project", "pause", "resume"] as const).map((verb) =>
  subjectsOf(swarm).operator(verb),
);

/** Each connects as one role through its own proxy. */
class Recorded {
  readonly recorder: SubjectRecorder;
  readonly #proxy: TcpProxy;
  readonly #role: Role;

  private constructor(role: Role, recorder: SubjectRecorder, proxy: TcpProxy) {
    this.recorder = recorder;
    this.#role = role;
    this.#proxy = proxy;
  }

  static async start(role: Role, port: number): Promise<Recorded> {
    const recorder = new SubjectRecorder();
    const proxy = await TcpProxy.start({ host: "127.0.0.1", port }, () => recorder.tap());
    return new Recorded(role, recorder, proxy);
  }

  get url(): string {
    return `nats://${this.#role}:secret@127.0.0.1:${this.#proxy.port}`;
  }

  get env(): Record<string, string> {
    return { NATS_URL: this.url, NATS_INBOX_PREFIX: holders[this.#role].inboxPrefix, WAGGLE_SWARM: swarm };
  }

  async connect(): Promise<Swarm> {
    const { inboxPrefix } = holders[this.#role];
    const { group } = { group: "_", ...holders[this.#role] };
    return await connect({ nats: this.url, inboxPrefix, swarm, project: "red", user: "ann", group });
  }

  /** A question that clients in other languages ask, and ours does not. */
  async ask(subject: string): Promise<void> {
    const { inboxPrefix } = holders[this.#role];
    const transport = await connectNats({ ...parseServerUrls(this.url, "test"), inboxPrefix, name: "test" });
    const outcome = await transport.request(subject, encode({ v: 1 }), { timeoutMs: 5_000 });
    expect(outcome.kind).toBe("answered");
    await transport.close();
  }

  /** Entries of the table without a message, and subjects without an entry. */
  compare(): { readonly unused: readonly string[]; readonly missing: readonly string[] } {
    const { publish, subscribe, answers } = permissionsOf(swarm, holders[this.#role]);
    const published = [...this.recorder.published];
    const subscribed = [...this.recorder.subscribed];
    const uncovered = published.filter((subject) => !publish.some((entry) => allows(entry, subject)));
    const isAnswer = (subject: string) => answers !== undefined && subject.startsWith("_INBOX.");
    return {
      unused: [
        ...publish.filter((entry) => !published.some((subject) => allows(entry, subject))),
        ...subscribe.filter((entry) => !subscribed.some((subject) => allows(entry, subject))),
        ...(answers !== undefined && !uncovered.some(isAnswer) ? ["answers"] : []),
      ],
      missing: [
        ...uncovered.filter((subject) => !isAnswer(subject) && !refusedFirst.includes(subject)),
        ...subscribed.filter((subject) => !subscribe.some((entry) => allows(entry, subject))),
      ],
    };
  }

  close(): Promise<void> {
    return this.#proxy.close();
  }
}

describe.runIf(server !== undefined)("the permissions of roles", () => {
  let nats: RunningNatsServer;
  let folder: string;
  const coordinators: Coordinator[] = [];
  const recorded = {} as Record<Role, Recorded>;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "waggle-permissions-"));
    nats = await startNatsServer({ binary: server?.path ?? "", jetstream: true, extraConfig: accounts() });
    for (const role of roles) recorded[role] = await Recorded.start(role, nats.port);
  });
  afterAll(async () => {
    for (const coordinator of coordinators) await coordinator.stop();
    for (const each of Object.values(recorded)) await each.close();
    await nats?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("suffice for a whole run of each role, and hold no entry that no run uses", async () => {
    for (const name of ["first", "second"]) {
      const env = { ...recorded.coordinator.env, WAGGLE_NAME: name, ...quickBases };
      coordinators.push(new Coordinator(aShell({ cwd: folder, env })));
      await expect.poll(() => coordinators.at(-1)?.said).toMatch(/leading|stand/);
    }
    const agents = await recorded.agent.connect();
    const operator = await recorded.operator.connect();
    await operator.setResource("gpu", { slots: 1 });
    const agent = await runAgent(agents);

    for (const role of ["submitter", "owner", "auditor", "operator", "coordinator"] as const)
      await recorded[role].ask(subjectsOf(swarm).query("red", "events"));
    for (const role of ["auditor", "operator", "coordinator"] as const)
      await recorded[role].ask(subjectsOf(swarm).query("_", "records"));
    for (const role of ["submitter", "owner"] as const)
      await useProject(await recorded[role].connect(), role);
    for (const role of ["auditor", "operator", "coordinator"] as const)
      await useSwarm(await recorded[role].connect(), role, agent.id);
    const metrics = await recorded.metrics.connect();
    await metrics.status();
    await outliveSegment(operator, recorded.coordinator.recorder);
    await agent.drain();
    for (const open of [agents, operator, metrics]) await open.close();
    for (const coordinator of coordinators) await coordinator.stop();

    const found = Object.fromEntries(roles.map((role) => [role, recorded[role].compare()]));
    expect(found).toEqual(Object.fromEntries(roles.map((role) => [role, { unused: [], missing: [] }])));
    const violations = nats
      .log()
      .split("\n")
      .filter(
        (line) => line.includes("Violation") && !refusedFirst.some((subject) => line.includes(subject)),
      );
    expect(violations).toEqual([]);
  }, 120_000);
});

/** Old segments are removed within the run. */
const quickBases = { WAGGLE_BASE_EVENTS: "20", WAGGLE_BASE_SYNC: "100ms", WAGGLE_RETAIN: "1s" };

/** `waggle up` within this process. */
class Coordinator {
  readonly #shell: ReturnType<typeof aShell>;
  readonly #ended: Promise<unknown>;

  constructor(shell: ReturnType<typeof aShell>) {
    this.#shell = shell;
    this.#ended = runIn(shell, "up", "--no-dashboard");
  }

  get said(): string {
    return this.#shell.stdout.text + this.#shell.stderr.text;
  }

  async stop(): Promise<void> {
    this.#shell.interrupt();
    await this.#ended;
  }
}

/** An agent that reports, streams, and holds a slot for a while. */
async function runAgent(agents: Swarm): Promise<Agent> {
  const agent = await agents.agent({
    id: "a1",
    kinds: ["work", "slow"],
    maxConcurrent: 8,
    handler: async (task, { signal, progress, emit, acquire, log }) => {
      log("begins");
      progress(0.5);
      emit("part");
      if (task.kind === "slow") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      else {
        const slot = await acquire("gpu", { idleTimeoutMs: 60_000 });
        slot.touch();
        await delay(50);
        await slot.release();
      }
      return "done";
    },
  });
  return agent;
}

/** All that the role may do in its project. */
async function useProject(swarm: Swarm, role: "submitter" | "owner"): Promise<void> {
  const red = swarm.project("red");
  const events = watch(red);
  const done = await red.submit({ kind: "work", payload: "x", stream: true });
  await done.result();
  await red.status();
  await red.settings();
  await lookAt(red, done.id);
  await swarm.task(done.id, { project: "red" }).outcome();
  const slow = await red.submit({ kind: "slow", payload: "x" });
  await expect.poll(async () => (await red.taskStatus(slow.id)).state).toBe("running");
  if (role === "owner") {
    await red.revoke(slow.id);
    await red.set({ queueMax: 1_000 });
    await red.pause();
    await red.resume();
  }
  await red.cancel(slow.id);
  await red.retry(slow.id);
  await red.cancel(slow.id);
  const later = await red.submit({ kind: "work", payload: "x", notBefore: Date.now() + 60_000 });
  await red.reschedule(later.id, { notBefore: Date.now() + 120_000 });
  await later.cancel();
  await events.stop();
  await swarm.close();
}

/** All that the role may do to the swarm; without an operator's rights, to read. */
async function useSwarm(swarm: Swarm, role: Role, agent: string): Promise<void> {
  const events = watch(swarm);
  const page = await swarm.taskPage({ state: "completed" });
  await swarm.status();
  await swarm.settings();
  const task = page.tasks[0]?.task ?? "";
  await lookAt(swarm, task);
  await swarm.explainSlots("gpu");
  if (role !== "auditor") await operate(swarm, { agent, task });
  await events.stop();
  await swarm.close();
}

async function operate(
  swarm: Swarm,
  { agent, task }: { readonly agent: string; readonly task: string },
): Promise<void> {
  await swarm.drain(agent);
  await swarm.undrain(agent);
  await swarm.setPolicy({ rules: "waggle" });
  await swarm.setProject("blue", { queueMax: 10 });
  await swarm.setKind("work", { importance: 2 });
  await swarm.setResource("gpu", { slots: 2 });
  await swarm.setRate("claude", { window: "per_minute", tokensMax: 1_000_000 });
  await swarm.setGrant("blue", { kinds: ["work"] });
  await swarm.removeGrant("blue");
  await swarm.pause("blue");
  await swarm.resume("blue");
  await swarm.hold({ agent }, { forMs: 100 });
  await swarm.unhold({ agent });
  const red = swarm.project("red");
  await red.retry(task).catch(refused);
  await red.revoke(task, { attempt: 1 }).catch(refused);
  await red.reschedule(task, { notBefore: Date.now() }).catch(refused);
  await red.cancel(task).catch(refused);
  await swarm.task(task, { project: "red" }).outcome();
  await swarm.transferLead();
}

/** A request of a wrong moment is refused by the leader: that it arrived is enough here. */
function refused(error: unknown): void {
  expect(error).toBeInstanceOf(WaggleError);
  expect((error as WaggleError).code).not.toBe("WAGGLE_FORBIDDEN");
}

async function lookAt(
  scope: Pick<Swarm, "taskStatus" | "explain" | "story" | "log" | "taskPage">,
  id: string,
) {
  await scope.taskPage();
  await scope.taskStatus(id);
  await scope.explain(id);
  const story = await scope.story(id);
  await scope.log(story);
}

function watch(scope: Pick<Swarm, "events">): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const read = (async () => {
    for await (const _ of scope.events({ from: "start", follow: true, signal: stopping.signal }));
  })().catch(() => undefined);
  return {
    stop: async () => {
      stopping.abort();
      await read;
    },
  };
}

/** Until the leader has removed a segment beyond the retention. */
async function outliveSegment(swarm: Swarm, { published }: SubjectRecorder): Promise<void> {
  const isRemoved = () => [...published].some((subject) => allows(streamRequest("DELETE", "*"), subject));
  await expect
    .poll(
      async () => {
        for (let kind = 0; kind < 10; kind += 1) await swarm.setKind(`k${kind}`, { importance: 1 + kind });
        for (let kind = 0; kind < 10; kind += 1) await swarm.setKind(`k${kind}`, { importance: 2 + kind });
        return isRemoved();
      },
      { timeout: 60_000, interval: 300 },
    )
    .toBe(true);
}
