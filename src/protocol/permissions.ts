// The permissions that a server must give to each role: one table from role to subjects, built by the functions that
// build the subjects of the wire. `waggle auth` writes them into configurations and JWTs, and `waggle doctor` compares.
// A test records a whole run of each role on a real server: no entry is missing, and none is unused.
//
// Everything is allowed by name, and the server denies the rest. A NATS wildcard stands for whole tokens, so streams
// `WAGGLE_<swarm>_<n>` cannot be named: a coordinator needs an account in which no other streams are.

import { NO_PROJECT, type SwarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import {
  accountLimits,
  consumerRequest,
  discoveryPattern,
  streamNames,
  streamRequest,
} from "./server-subjects.ts";
import { type Answers, type Services, servicePermissions } from "./service-permissions.ts";
import {
  agentVerbs,
  operatorVerbs,
  type ProjectVerb,
  type QueryName,
  type Subjects,
  subjectsOf,
} from "./subjects.ts";

export const roles = [
  "coordinator",
  "agent",
  "submitter",
  "owner",
  "auditor",
  "operator",
  "metrics",
] as const;
export type Role = (typeof roles)[number];

/** One sentence per role, for help and lists. */
export const roleMeanings: Readonly<Record<Role, string>> = {
  coordinator: "runs `waggle up`: leads the swarm and writes the journal",
  agent: "agents of one group: they join, run attempts and hold slots",
  submitter: "submits tasks of one project, and reads that project",
  owner: "a submitter that also changes and pauses its project, and revokes its attempts",
  auditor: "reads everything about the swarm, and changes nothing",
  operator: "an auditor that also changes settings, and cancels or retries tasks of any project",
  metrics: "reads the status of the swarm, and nothing else",
};

/** The holder of a credential. `inboxPrefix` is the prefix of its reply subjects, `services` what it may do beyond its
 *  role. */
export type Holder = { readonly inboxPrefix: string; readonly services?: Services } & (
  | { readonly role: "agent"; readonly group: string }
  | { readonly role: "submitter" | "owner"; readonly project: string }
  | { readonly role: "coordinator" | "auditor" | "operator" | "metrics" }
);

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** Answers to each received request, on the request's own reply subject. Undefined: none. */
  readonly answers?: Answers | undefined;
}

/** How often an agent's credential may answer a question for a log. Its process and its stand-in thread both hear
 *  each question, and each may answer once. */
const agentAnswers: Answers = { max: 1, expiresMs: limits.agentAnswerMs };

/** Agents of one group share the prefix, and every other credential has its own. So no name may be a group, too. Where
 *  security is strict, the leader answers only at these inboxes. */
export function inboxPrefixOf(named: { readonly group: string } | { readonly name: string }): string {
  return `${ALL_INBOXES}.${"group" in named ? named.group : named.name}`;
}

/** Begins the reply subjects of every credential that `waggle auth` makes. */
const ALL_INBOXES = "_INBOX";
/** Every inbox, for coordinators to publish to. No role may subscribe to them. */
export const allInboxes = `${ALL_INBOXES}.>`;

/** The least permissions of a holder. Tokens may be templates of a scoped signing key, as `{{tag(project)}}`. */
export function permissionsOf(swarm: SwarmId, holder: Holder): Permissions {
  const role = permissionsOfRole(swarm, holder);
  if (holder.services === undefined) return role;
  const services = servicePermissions(holder.services);
  return {
    publish: [...role.publish, ...services.publish],
    subscribe: [...role.subscribe, ...services.subscribe],
    answers: services.answers ?? role.answers,
  };
}

function permissionsOfRole(swarm: SwarmId, holder: Holder): Permissions {
  const subjects = subjectsOf(swarm);
  const own = below(holder.inboxPrefix);
  switch (holder.role) {
    case "coordinator":
      return coordinator(subjects, own);
    case "agent":
      return agent(subjects, holder.group, own);
    case "submitter":
      return inProject(subjects, holder.project, { verbs: submitterVerbs, own });
    case "owner":
      return inProject(subjects, holder.project, { verbs: ownerVerbs, own });
    case "auditor":
      return reader(subjects, own);
    case "operator":
      return operator(subjects, own);
    case "metrics":
      return {
        publish: [subjects.query(NO_PROJECT, "status")],
        subscribe: [subjects.coordinator, own],
      };
  }
}

const submitterVerbs: readonly ProjectVerb[] = ["submit", "cancel", "retry", "reschedule", "await"];
const ownerVerbs: readonly ProjectVerb[] = [...submitterVerbs, "revoke", "set", "pause", "resume"];
/** What an operator may do in every project: repair, but not submit in another's name. */
const repairVerbs: readonly ProjectVerb[] = ["cancel", "retry", "reschedule", "revoke", "await"];
const projectQueries: readonly QueryName[] = [
  "status",
  "task",
  "tasks",
  "explain",
  "log",
  "events",
  "settings",
];
/** About the swarm alone. */
const swarmQueries: readonly QueryName[] = ["journal", "records", "slots"];

function coordinator(subjects: Subjects, own: string): Permissions {
  const { leaderPatterns, queryPattern, segment, segmentOpened, segmentSealed } = subjects;
  const led = operator(subjects, own); // it declares settings, and its holder may use an operator's verbs
  return {
    publish: [
      accountLimits,
      streamNames,
      ...(["INFO", "CREATE", "DELETE", "MSG.GET"] as const).map((verb) => streamRequest(verb, "*")),
      ...(["CREATE", "DELETE", "MSG.NEXT"] as const).map((verb) => consumerRequest(verb, "*", "*")),
      segment("*"),
      segmentOpened("*"),
      segmentSealed("*"),
      subjects.assign("*", "*"),
      subjects.agentLog("*", "*"),
      subjects.event("*", "*", "*"),
      subjects.coordinator,
      allInboxes,
      ...led.publish,
    ],
    subscribe: [...leaderPatterns, queryPattern, discoveryPattern, ...led.subscribe],
  };
}

function agent(subjects: Subjects, group: string, own: string): Permissions {
  return {
    publish: agentVerbs.map((verb) => subjects.agent(group, "*", verb)),
    subscribe: [subjects.assign(group, "*"), subjects.agentLog(group, "*"), subjects.coordinator, own],
    answers: agentAnswers,
  };
}

function inProject(
  subjects: Subjects,
  project: string,
  { verbs, own }: { readonly verbs: readonly ProjectVerb[]; readonly own: string },
): Permissions {
  return {
    publish: [
      ...verbs.map((verb) => subjects.project(project, verb)),
      ...projectQueries.map((what) => subjects.query(project, what)),
    ],
    subscribe: [subjects.eventsOf(project), subjects.coordinator, own],
  };
}

function reader(subjects: Subjects, own: string): Permissions {
  return {
    publish: [
      ...projectQueries.map((what) => subjects.query("*", what)),
      ...swarmQueries.map((what) => subjects.query(NO_PROJECT, what)),
    ],
    subscribe: [subjects.eventsOf(NO_PROJECT), subjects.coordinator, own],
  };
}

function operator(subjects: Subjects, own: string): Permissions {
  const { publish, subscribe } = reader(subjects, own);
  const repairs = repairVerbs.map((verb) => subjects.project("*", verb));
  return {
    publish: [...publish, ...repairs, ...operatorVerbs.map((verb) => subjects.operator(verb))],
    subscribe,
  };
}

function below(prefix: string): string {
  return `${prefix}.>`;
}
