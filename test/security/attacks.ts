// Attacks that generated permissions must stop, by role: publishes and subscriptions beyond the role's own traffic. The
// list is written by hand and checks the table of permissions, so nothing here is derived from the table.

import { swarmId } from "../../src/ids.ts";
import { subjectsOf } from "../../src/protocol/subjects.ts";

/** Names of the credentials in attacks.test.ts, in the swarm acme. */
export type Attacker =
  | "coordinator"
  | "operator"
  | "auditor"
  | "metrics"
  | "a" // agents of group a
  | "x-submitter"
  | "x-owner";

export interface Attack {
  readonly as: Attacker;
  readonly does: "publish" | "subscribe";
  readonly subject: string;
}

const acme = subjectsOf(swarmId("acme"));
const other = subjectsOf(swarmId("other"));
const P = acme.prefix;

const verbsOfProject = [
  "submit",
  "cancel",
  "retry",
  "revoke",
  "reschedule",
  "await",
  "set",
  "pause",
  "resume",
];
const verbsOfAgent = [
  "join",
  "leave",
  "heartbeat",
  "progress",
  "chunk",
  "result",
  "acquire",
  "touch",
  "release",
];
const verbsOfOperator = [
  ...["drain", "undrain", "policy", "project", "kind", "resource", "rate"],
  ...["pause", "resume", "hold", "unhold", "grant", "transfer"],
];
const queries = [
  ...["status", "task", "tasks", "explain", "slots", "log", "events", "journal", "records", "settings"],
];

const everyoneButCoordinator: readonly Attacker[] = [
  "operator",
  "auditor",
  "metrics",
  "a",
  "x-submitter",
  "x-owner",
];
const everyone: readonly Attacker[] = ["coordinator", ...everyoneButCoordinator];

/** `does` by each attacker on each subject. */
function each(as: readonly Attacker[], does: Attack["does"], subjects: readonly string[]): Attack[] {
  return as.flatMap((attacker) => subjects.map((subject) => ({ as: attacker, does, subject })));
}

/** The server's own interface. */
const system = [
  ...each(everyone, "publish", [
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.ACCOUNT.SYS.CONNZ",
    "$JS.API.STREAM.PURGE.WAGGLE_acme_1",
    "$JS.API.STREAM.UPDATE.WAGGLE_acme_1",
    "$JS.API.STREAM.SNAPSHOT.WAGGLE_acme_1",
    "$JS.API.STREAM.RESTORE.WAGGLE_acme_1",
    "$JS.API.STREAM.MSG.DELETE.WAGGLE_acme_1",
    "$JS.API.STREAM.PEER.REMOVE.WAGGLE_acme_1",
    "$JS.API.STREAM.LEADER.STEPDOWN.WAGGLE_acme_1",
    "$JS.API.STREAM.LIST",
    "$JS.API.DIRECT.GET.WAGGLE_acme_1",
    "$JS.API.CONSUMER.DURABLE.CREATE.WAGGLE_acme_1.d",
    "$JS.API.CONSUMER.CREATE.WAGGLE_acme_1",
    "$JS.API.CONSUMER.INFO.WAGGLE_acme_1.c",
    "$JS.API.CONSUMER.MSG.NEXT.WAGGLE_acme_1.c.d",
    "$JS.API.CONSUMER.CREATE.WAGGLE_acme_1.c.filter",
    "$JS.API.CONSUMER.DELETE.WAGGLE_acme_1.c.d",
    "$JS.API.STREAM.INFO.WAGGLE_acme_1.x",
    "$JS.API.STREAM.CREATE.EVIL.x",
    "$JS.API.STREAM.DELETE.WAGGLE_acme_1.x",
    "$JS.API.STREAM.MSG.GET.WAGGLE_acme_1.x",
    "$JS.ACK.WAGGLE_acme_1.c.1.1.1.1.0",
    "$JS.FC.WAGGLE_acme_1.c.x",
    "$KV.bucket.key",
    "$SRV.PING",
    "$JS.API.SERVER.REMOVE",
    "$JS.API.INFO.x",
    "$JS.NONE.INFO",
    "$XX.API.INFO",
    "$JS.API.STREAM.NAMES.x",
    "$JS.API.EVIL",
    "$JS.API.STREAM.EVIL",
    "$JS.EVIL.STREAM.NAMES",
    "$XX.API.STREAM.NAMES",
    "$JS.API.EVIL.NAMES",
    ...["INFO", "CREATE", "DELETE"].flatMap((verb) => [
      `$XX.API.STREAM.${verb}.s`,
      `$JS.EVIL.STREAM.${verb}.s`,
      `$JS.API.EVIL.${verb}.s`,
    ]),
    "$JS.API.STREAM.EVIL.s",
    "$XX.API.STREAM.MSG.GET.s",
    "$JS.EVIL.STREAM.MSG.GET.s",
    "$JS.API.EVIL.MSG.GET.s",
    "$JS.API.STREAM.EVIL.GET.s",
    "$JS.API.STREAM.MSG.EVIL.s",
    ...["CREATE", "DELETE"].flatMap((verb) => [
      `$XX.API.CONSUMER.${verb}.s.c`,
      `$JS.EVIL.CONSUMER.${verb}.s.c`,
      `$JS.API.EVIL.${verb}.s.c`,
    ]),
    "$JS.API.CONSUMER.EVIL.s.c",
    "$XX.API.CONSUMER.MSG.NEXT.s.c",
    "$JS.EVIL.CONSUMER.MSG.NEXT.s.c",
    "$JS.API.EVIL.MSG.NEXT.s.c",
    "$JS.API.CONSUMER.EVIL.NEXT.s.c",
    "$JS.API.CONSUMER.MSG.EVIL.s.c",
  ]),
  ...each(everyone, "subscribe", ["$SYS.>", "$JS.>", "$JS.API.>", "$JS.EVENT.>", "$KV.>"]),
  ...each(everyoneButCoordinator, "publish", [
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.INFO.WAGGLE_acme_1",
    "$JS.API.STREAM.CREATE.EVIL",
    "$JS.API.STREAM.DELETE.WAGGLE_acme_1",
    "$JS.API.STREAM.MSG.GET.WAGGLE_acme_1",
    "$JS.API.CONSUMER.CREATE.WAGGLE_acme_1.c",
    "$JS.API.CONSUMER.DELETE.WAGGLE_acme_1.c",
    "$JS.API.CONSUMER.MSG.NEXT.WAGGLE_acme_1.c",
  ]),
  ...each(everyoneButCoordinator, "subscribe", ["$SRV.>", "$SRV.PING"]),
];

/** Look-alikes of the attacker's own inbox. */
const inboxes = everyone.flatMap((as) =>
  each([as], "subscribe", [`_INBOX.evil.${as}.k`, `_EVIL.${as}.k`, `_INBOX.${as}2.k`, `_INBOX_${as}.k`]),
);

/** Traffic of coordinators. */
const leading = [
  ...each(everyoneButCoordinator, "publish", [
    acme.segment(1),
    acme.segmentOpened(1),
    acme.segmentSealed(1),
    acme.coordinator,
    acme.event("x", "task", "completed"),
    acme.event("_", "agent", "joined"),
    acme.assign("a", "a1"),
    acme.assign("b", "b1"),
    acme.agentLog("a", "a1"),
    acme.agentLog("b", "b1"),
    "_INBOX.coordinator.k.1",
    "_INBOX.x-submitter.k.done",
    "_INBOX.y-submitter.k.done",
    "_INBOX.b.k.1",
    "_INBOX.known",
  ]),
  ...each(everyone, "subscribe", [
    ">",
    "*",
    "waggle.>",
    `${P}.>`,
    `${P}.*`,
    `${P}.*.>`,
    "_INBOX.>",
    "_INBOX.*.>",
    "_INBOX.*.*.>",
    "_INBOX.>",
    "_INBOX.*.>",
    "_INBOX.>",
    "_INBOX.y-submitter.>",
    "_INBOX.b.>",
    "_INBOX.evil.x.k",
    "_EVIL.coordinator.k",
    "_INBOX_x.>",
    acme.segment("*"),
    `${P}.journal.>`,
    `${P}.evil`,
    `${P}.evil.x`,
  ]),
  ...each(everyoneButCoordinator, "subscribe", [
    ...acme.leaderPatterns,
    acme.queryPattern,
    acme.assign("b", "b1"),
    acme.assign("*", "*"),
    acme.agentLog("b", "b1"),
    acme.agentLog("*", "*"),
    acme.project("x", "submit"),
    acme.query("x", "task"),
    "_INBOX.coordinator.>",
  ]),
  ...each(["coordinator"], "subscribe", [
    acme.assign("b", "b1"),
    acme.agentLog("b", "b1"),
    `${P}.agent.a.a1.evil`,
    `${P}.agent.a.a1.evil.x`,
    `${P}.project.x.evil`,
    `${P}.project.x.evil.x`,
    ...verbsOfProject.map((verb) => `${P}.evil.x.${verb}`),
    ...verbsOfAgent.map((verb) => `${P}.evil.a.a1.${verb}`),
    `${P}.evil.x.query.status`,
    `${P}.project.x.query.status.more`,
    `${P}.operator.pause.more`,
    "$EVIL.PING",
  ]),
  ...each(["coordinator"], "publish", [
    acme.project("x", "submit"),
    acme.agent("a", "a1", "result"),
    acme.agent("a", "a1", "join"),
    `${P}.evil`,
    `${P}.journal.1.evil`,
    `${P}.journal.1.x.y`,
    `${P}.evil.1`,
    `${P}.evil.1.opened`,
    `${P}.evil.1.sealed`,
    `${P}.evil.a.a1.assign`,
    `${P}.agent.a.a1.evil`,
    `${P}.evil.a.a1.log`,
    `${P}.evil.x.task.completed`,
    `${P}.event.x.task.completed.more`,
    "_EVIL.x.k",
  ]),
];

/** Subjects of other swarms and versions. */
const elsewhere = [
  ...each(everyone, "publish", [
    other.coordinator,
    other.segment(1),
    other.segmentOpened(1),
    other.segmentSealed(1),
    other.assign("a", "a1"),
    other.agentLog("a", "a1"),
    other.event("x", "task", "completed"),
    "waggle.v1.acme2.coordinator",
    ...[other.prefix, "waggle.v2.acme", "evil.v1.acme"].flatMap((prefix) => [
      `${prefix}.coordinator`,
      `${prefix}.journal.1`,
      `${prefix}.journal.1.opened`,
      `${prefix}.journal.1.sealed`,
      `${prefix}.agent.a.a1.assign`,
      `${prefix}.agent.a.a1.log`,
      `${prefix}.event.x.task.completed`,
      ...verbsOfProject.map((verb) => `${prefix}.project.x.${verb}`),
      ...queries.map((what) => `${prefix}.project._.query.${what}`),
      ...queries.map((what) => `${prefix}.project.x.query.${what}`),
      ...verbsOfOperator.map((verb) => `${prefix}.operator.${verb}`),
      ...verbsOfAgent.map((verb) => `${prefix}.agent.a.a1.${verb}`),
    ]),
  ]),
  ...each(
    everyone,
    "subscribe",
    [other.prefix, "waggle.v2.acme", "evil.v1.acme"].flatMap((prefix) => [
      `${prefix}.coordinator`,
      `${prefix}.event.>`,
      `${prefix}.event.x.>`,
      `${prefix}.event.x.task.completed`,
      `${prefix}.operator.pause`,
      `${prefix}.agent.a.a1.assign`,
      `${prefix}.agent.a.a1.log`,
      `${prefix}.project.x.query.status`,
      ...verbsOfProject.map((verb) => `${prefix}.project.x.${verb}`),
      ...verbsOfAgent.map((verb) => `${prefix}.agent.a.a1.${verb}`),
    ]),
  ),
];

const agents = [
  ...each(["a"], "publish", [
    ...verbsOfAgent.map((verb) => `${P}.agent.b.b1.${verb}`),
    ...verbsOfAgent.map((verb) => `${P}.agent._.b1.${verb}`),
    ...verbsOfAgent.map((verb) => `${P}.evil.a.a1.${verb}`),
    ...verbsOfProject.map((verb) => `${P}.project.x.${verb}`),
    ...queries.map((what) => `${P}.project.x.query.${what}`),
    ...queries.map((what) => `${P}.project._.query.${what}`),
    ...verbsOfOperator.map((verb) => `${P}.operator.${verb}`),
    `${P}.agent.a.a1.evil`,
    `${P}.agent.a.a1.join.more`,
    `${P}.agent.a.join`,
  ]),
  ...each(["a"], "subscribe", [
    acme.eventsOf("_"),
    acme.eventsOf("x"),
    `${P}.agent.>`,
    `${P}.agent.*.*.>`,
    `${P}.agent.a.>`,
    `${P}.agent.a.a1.evil`,
    `${P}.agent.a.*.heartbeat`,
    `${P}.agent.a.*.result`,
    `${P}.evil.a.a1.assign`,
    `${P}.evil.a.a1.log`,
  ]),
];

const inProject: readonly Attacker[] = ["x-submitter", "x-owner"];
const projects = [
  ...each(inProject, "publish", [
    ...verbsOfProject.map((verb) => `${P}.project.y.${verb}`),
    ...verbsOfProject.map((verb) => `${P}.project._.${verb}`),
    ...verbsOfProject.map((verb) => `${P}.evil.x.${verb}`),
    ...queries.map((what) => `${P}.project.y.query.${what}`),
    ...queries.map((what) => `${P}.project._.query.${what}`),
    ...queries.map((what) => `${P}.evil.x.query.${what}`),
    ...queries.map((what) => `${P}.project.x.evil.${what}`),
    ...verbsOfOperator.map((verb) => `${P}.operator.${verb}`),
    ...verbsOfAgent.map((verb) => `${P}.agent.a.a1.${verb}`),
    `${P}.project.x.evil`,
    `${P}.project.x.submit.more`,
    `${P}.project.x.query.evil`,
    `${P}.project.x.query.slots`,
    `${P}.project.x.query.records`,
    `${P}.project.x.query.status.more`,
  ]),
  ...each(
    ["x-submitter"],
    "publish",
    (["revoke", "set", "pause", "resume"] as const).map((verb) => acme.project("x", verb)),
  ),
  ...each(inProject, "subscribe", [
    acme.eventsOf("_"),
    acme.eventsOf("y"),
    acme.event("*", "task", "completed"),
    acme.event("_", "agent", "joined"),
    `${P}.evil.x.task.completed`,
    acme.assign("a", "a1"),
    "_INBOX.a.>",
  ]),
];

const readers: readonly Attacker[] = ["operator", "auditor"];
/** Questions about the whole swarm alone. */
const wholeQueries = ["journal", "records", "slots"];
const swarmWide = [
  ...each(["coordinator", ...readers], "publish", [
    ...wholeQueries.map((what) => `${P}.project.x.query.${what}`),
    ...wholeQueries.map((what) => `${P}.evil._.query.${what}`),
    ...wholeQueries.map((what) => `${P}.project._.evil.${what}`),
    `${P}.project._.query.evil`,
  ]),
  ...each(readers, "publish", [
    acme.project("x", "submit"),
    ...verbsOfAgent.map((verb) => `${P}.agent.a.a1.${verb}`),
    ...queries.map((what) => `${P}.evil.x.query.${what}`),
    ...queries.map((what) => `${P}.project.x.evil.${what}`),
    `${P}.project.x.query.evil`,
    `${P}.project.x.query.status.more`,
  ]),
  ...each(["auditor"], "publish", [
    ...verbsOfProject.map((verb) => `${P}.project.x.${verb}`),
    ...verbsOfOperator.map((verb) => `${P}.operator.${verb}`),
  ]),
  ...each(["operator", "coordinator"], "publish", [
    `${P}.project.x.evil`,
    `${P}.evil.x.cancel`,
    `${P}.evil.pause`,
    `${P}.operator.evil`,
    ...verbsOfOperator.map((verb) => `${P}.operator.${verb}.more`),
    ...verbsOfOperator.map((verb) => `${P}.evil.${verb}`),
    ...verbsOfProject.map((verb) => `${P}.evil.x.${verb}`),
    ...verbsOfProject.map((verb) => `${P}.project.x.${verb}.more`),
    ...queries.map((what) => `${P}.evil.x.query.${what}`),
    ...queries.map((what) => `${P}.project.x.evil.${what}`),
    `${P}.project.x.query.evil`,
    `${P}.project.x.query.status.more`,
  ]),
  ...each(["metrics"], "publish", [
    ...queries.map((what) => `${P}.project.x.query.${what}`),
    ...queries.filter((what) => what !== "status").map((what) => `${P}.project._.query.${what}`),
    ...verbsOfProject.map((verb) => `${P}.project.x.${verb}`),
    ...verbsOfOperator.map((verb) => `${P}.operator.${verb}`),
    ...verbsOfAgent.map((verb) => `${P}.agent.a.a1.${verb}`),
    `${P}.evil._.query.status`,
    `${P}.project._.evil.status`,
    `${P}.project._.query.status.more`,
  ]),
  ...each(["metrics"], "subscribe", [acme.eventsOf("_"), acme.eventsOf("x")]),
];

export const attacks: readonly Attack[] = [
  ...new Map(
    [...system, ...inboxes, ...leading, ...elsewhere, ...agents, ...projects, ...swarmWide].map((attack) => [
      `${attack.as} ${attack.does} ${attack.subject}`,
      attack,
    ]),
  ).values(),
];
