// Replies to others, on a live coordinator where security is strict. A server permits any reply subject, so the leader
// must refuse: agents of group a and users of project x name inboxes and subjects of others. Each attack is counted,
// and nothing is delivered; a witness hears the whole account. With `security: open` the inboxes are reached, so the
// test would notice a missing check.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { permissionsText } from "../../src/auth/permissions-text.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { swarmId } from "../../src/ids.ts";
import { type Holder, inboxPrefixOf, permissionsOf } from "../../src/protocol/permissions.ts";
import { agentVerbs, subjectsOf } from "../../src/protocol/subjects.ts";
import { openNatsConnection } from "../../src/transport/nats.ts";
import { aShell } from "../cli/shell.ts";
import { natsServersFor, type RunningNatsServer, startNatsServer } from "../support/nats-server.ts";
import { Running } from "./secured-swarm.ts";

const swarm = swarmId("acme");
const subjects = subjectsOf(swarm);

const holders = {
  coordinator: { role: "coordinator", inboxPrefix: inboxPrefixOf({ name: "coordinator" }) },
  operator: { role: "operator", inboxPrefix: inboxPrefixOf({ name: "operator" }) },
  a: { role: "agent", group: "a", inboxPrefix: inboxPrefixOf({ group: "a" }) },
  submitter: { role: "submitter", project: "x", inboxPrefix: inboxPrefixOf({ name: "submitter" }) },
  owner: { role: "owner", project: "x", inboxPrefix: inboxPrefixOf({ name: "owner" }) },
} satisfies Record<string, Holder>;
type Name = keyof typeof holders;

function accounts(): string {
  const users = Object.entries(holders).map(
    ([name, holder]) =>
      `{ user: ${name}, password: secret, permissions: ${permissionsText(permissionsOf(swarm, holder))} }`,
  );
  const all = [...users, "{ user: witness, password: secret }"].join(", ");
  return `accounts { SWARM { jetstream: enabled, users: [${all}] }, SYS { } }\nsystem_account: SYS`;
}

/** What an attacker may ask, with a body that the leader would answer. */
interface Request {
  readonly as: Name;
  readonly subject: string;
  readonly body: object;
}

const ofProject = { as: ["submitter", "owner"], project: "x" } as const;
const bodies = {
  submit: { tasks: [{ kind: "k" }] },
  cancel: { tasks: [{ task: "t" }] },
  retry: { tasks: [{ task: "t" }] },
  reschedule: { tasks: [{ task: "t", notBefore: 1 }] },
  await: { tasks: ["t"], notify: "_INBOX.submitter.k" },
} as const;
const ownersBodies = { revoke: { tasks: [{ task: "t" }] }, set: {}, pause: {}, resume: {} } as const;
const queries = ["status", "task", "tasks", "explain", "log", "events", "settings"] as const;

const requests: readonly Request[] = [
  ...agentVerbs.map((verb) => ({ as: "a", subject: subjects.agent("a", "a1", verb), body: {} }) as const),
  ...ofProject.as.flatMap((as) => [
    ...Object.entries(bodies).map(([verb, body]) => ({
      as,
      subject: subjects.project("x", verb as keyof typeof bodies),
      body,
    })),
    ...queries.map((what) => ({ as, subject: subjects.query("x", what), body: { task: "t" } })),
  ]),
  ...Object.entries(ownersBodies).map(
    ([verb, body]) =>
      ({
        as: "owner",
        subject: subjects.project("x", verb as keyof typeof ownersBodies),
        body,
      }) as const,
  ),
];

/** Inboxes of others. */
const othersInboxes = [
  "_INBOX.operator.k.done",
  "_INBOX.coordinator.k.1",
  "_INBOX.b.k.1",
  "_INBOX.y-submitter.k.done",
  "_INBOX.known",
  "_INBOX_operator.k",
  // Look-alikes of the attackers' own inboxes.
  "_INBOX.evil.a.1",
  "_INBOX.a2.1",
  "_INBOX.submitter2.1",
];

/** Subjects that would act. */
const others = [
  "$JS.API.STREAM.DELETE.NONE",
  "$JS.API.STREAM.CREATE.NONE",
  "$JS.API.STREAM.MSG.GET.NONE",
  "$SYS.REQ.SERVER.PING",
  "$SRV.PING",
  subjects.assign("a", "other"),
  subjects.assign("b", "b1"),
  subjects.agentLog("b", "b1"),
  subjects.agent("b", "b1", "result"),
  subjects.event("y", "task", "completed"),
  subjects.event("_", "agent", "joined"),
  subjects.segment(77),
  subjects.segmentOpened(77),
  subjects.coordinator,
  subjects.operator("pause"),
  subjects.project("y", "cancel"),
];

describe.each(natsServersFor("replies to others"))("on nats-server $version", ({ path: binary }) => {
  let nats: RunningNatsServer;
  let folder: string;
  let coordinator: Running;
  let operator: Swarm;
  let witness: NatsConnection;
  const connections = {} as Record<Name, NatsConnection>;
  /** Subjects of attacks, with what arrived there. */
  let delivered: string[] = [];

  const addressOf = (user: string) => ({
    urls: [nats.url],
    credentials: { kind: "password", user, password: "secret" } as const,
    name: user,
  });

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "waggle-replies-"));
    nats = await startNatsServer({ binary, jetstream: true, extraConfig: accounts() });
    const url = (user: string) => nats.url.replace("//", `//${user}:secret@`);
    const env = {
      NATS_URL: url("coordinator"),
      NATS_INBOX_PREFIX: holders.coordinator.inboxPrefix,
      WAGGLE_SWARM: swarm,
    };
    coordinator = new Running(aShell({ cwd: folder, env }), ["up", "--no-dashboard"]);
    await coordinator.says("leading");
    const { inboxPrefix } = holders.operator;
    operator = await connect({ nats: url("operator"), inboxPrefix, swarm });
    for (const name of Object.keys(holders) as Name[])
      connections[name] = await openNatsConnection({
        ...addressOf(name),
        inboxPrefix: holders[name].inboxPrefix,
      });
    witness = await openNatsConnection(addressOf("witness"));
    witness.subscribe(">", { callback: (_, { subject }) => void delivered.push(subject) });
    await witness.flush();
    await operator.setProject("x", { inboxUsers: ["submitter", "owner"] });
  });
  afterAll(async () => {
    for (const each of Object.values(connections)) await each.close();
    await witness?.close();
    await operator?.close();
    await coordinator?.stop();
    await nats?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Sends every request with its own reply subject, and waits until the leader has handled all. */
  async function send(all: readonly (Request & { readonly reply: string })[]): Promise<void> {
    delivered = [];
    for (const { as, subject, body, reply } of all)
      connections[as].publish(subject, JSON.stringify({ v: 1, ...body }), { reply });
    for (const each of Object.values(connections)) await each.flush();
    // Answers that wait for a commit come before the answer to a later command.
    for (let turn = 0; turn < 2; turn += 1)
      await operator.setKind("marker", { importance: 1 + Math.random() });
    await witness.flush();
  }

  /** Messages that the leader counted as dropped for their reply subject. */
  const dropped = async () => {
    const { counters } = await operator.status();
    return {
      foreign: counters["reply-not-the-askers"] ?? 0,
      noInbox: counters["reply-not-an-inbox"] ?? 0,
    };
  };

  const attacksOn = (replies: readonly string[]) =>
    requests.flatMap((request) => replies.map((reply) => ({ ...request, reply })));
  const heardAt = (replies: readonly string[]) => replies.filter((reply) => delivered.includes(reply));

  /** Subjects of attacks on which the swarm also publishes. */
  const ownTraffic: readonly string[] = [subjects.coordinator];

  /** Reports, which the leader never answers; their reply subjects are checked all the same. */
  const unanswered = (["progress", "chunk"] as const).map((verb) => subjects.agent("a", "a1", verb));

  /** Requests without an answer at the inbox that `inboxOf` gives them. */
  async function silent(inboxOf: (request: Request) => string): Promise<string[]> {
    const asked = requests.map((request, at) => ({ ...request, reply: `${inboxOf(request)}.k.${at}` }));
    await send(asked);
    return asked.filter(({ reply }) => !delivered.includes(reply)).map(({ subject }) => subject);
  }

  it("every request is answered at its own inbox, and with open security at anybody's", async () => {
    await operator.setPolicy({ security: "open" });
    expect(await silent(({ as }) => holders[as].inboxPrefix)).toEqual(unanswered);
    expect(await silent(() => holders.operator.inboxPrefix)).toEqual(unanswered);
  });

  it("with strict security nothing reaches others' inboxes", async () => {
    await operator.setPolicy({ security: "strict" });
    const before = await dropped();
    const attacks = attacksOn(othersInboxes);
    await send(attacks);
    expect(heardAt(othersInboxes)).toEqual([]);
    const after = await dropped();
    expect(after.foreign - before.foreign).toBe(attacks.length);
    expect(await silent(({ as }) => holders[as].inboxPrefix)).toEqual(unanswered);
  });

  it.each(["strict", "open"] as const)(
    "with %s security nothing reaches other subjects",
    async (security) => {
      await operator.setPolicy({ security });
      const before = await dropped();
      const attacks = attacksOn(others);
      await send(attacks);
      expect(heardAt(others.filter((subject) => !ownTraffic.includes(subject)))).toEqual([]);
      const after = await dropped();
      expect(after.noInbox - before.noInbox).toBe(attacks.length);
      expect(await operator.status()).toMatchObject({
        journal: expect.not.objectContaining({ foreignRecords: 1 }),
      });
    },
  );

  it("the outcome of an accepted task reaches its submitter, and no inbox that a wait names", async () => {
    await operator.setPolicy({ security: "strict" });
    const own = "_INBOX.submitter.own";
    const ask = (verb: "submit" | "await" | "cancel", body: object) =>
      ({
        as: "submitter",
        subject: subjects.project("x", verb),
        body,
        reply: "_INBOX.submitter.k.2",
      }) as const;
    await send([ask("submit", { tasks: [{ id: "mine", kind: "k" }], notify: own })]);
    await send(othersInboxes.map((notify) => ask("await", { tasks: ["mine"], notify })));
    await send([ask("cancel", { tasks: [{ task: "mine", round: 1 }] })]);
    expect(heardAt([`${own}.done`])).toEqual([`${own}.done`]);
    expect(heardAt(othersInboxes.map((notify) => `${notify}.done`))).toEqual([]);
  });

  it("the whole journal is no answer about a project", async () => {
    await operator.setPolicy({ security: "open" }); // the witness has an inbox of its own
    for (const what of ["journal", "records"] as const) {
      const answer = await witness.request(subjects.query("x", what), "{}", { timeout: 10_000 });
      expect(answer.json()).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE", field: "project" });
    }
  });

  it("outcomes reach no inbox of others", async () => {
    await operator.setPolicy({ security: "strict" });
    const reply = "_INBOX.submitter.k.1";
    for (const notify of othersInboxes) {
      const submitted = { as: "submitter", subject: subjects.project("x", "submit") } as const;
      const awaited = { as: "submitter", subject: subjects.project("x", "await") } as const;
      const id = `notify-${othersInboxes.indexOf(notify)}`;
      await send([
        { ...submitted, body: { tasks: [{ id, kind: "k" }], notify }, reply },
        { ...awaited, body: { tasks: [id], notify }, reply },
      ]);
      expect(heardAt([notify, `${notify}.done`])).toEqual([]);
    }
    // None of them was accepted.
    await expect(operator.taskStatus("notify-0")).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
  });
});
