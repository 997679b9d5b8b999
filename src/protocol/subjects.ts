// The subjects of the wire, v1 (docs/protocol.md). Everything that a server must be able to permit is a subject
// token, and a message never overrides its subject.

import { INBOX_PATTERN, NO_PROJECT, type ProjectId, type SwarmId } from "../ids.ts";

/** Prefix of all subjects of a swarm. */
export function swarmPrefix(swarm: SwarmId): string {
  return `waggle.v1.${swarm}`;
}

export type ProjectVerb =
  | "submit"
  | "cancel"
  | "retry"
  | "revoke"
  | "reschedule"
  | "await"
  | "set"
  | "pause"
  | "resume";
export type QueryName =
  | "status"
  | "task"
  | "tasks"
  | "explain"
  | "slots"
  | "log"
  | "events"
  | "journal"
  | "records"
  | "settings";
export const agentVerbs = [
  "join",
  "leave",
  "heartbeat",
  "progress",
  "chunk",
  "result",
  "acquire",
  "touch",
  "release",
] as const;
export type AgentVerb = (typeof agentVerbs)[number];

export const operatorVerbs = [
  "drain",
  "undrain",
  "policy",
  "project",
  "kind",
  "resource",
  "rate",
  "grant",
  "pause",
  "resume",
  "hold",
  "unhold",
  "transfer",
] as const;
export type OperatorVerb = (typeof operatorVerbs)[number];

export function isOperatorVerb(verb: string): verb is OperatorVerb {
  return (operatorVerbs as readonly string[]).includes(verb);
}

/** Builders of every subject of a swarm. */
export function subjectsOf(swarm: SwarmId) {
  const prefix = swarmPrefix(swarm);
  return {
    prefix,
    project: (project: ProjectId | string, verb: ProjectVerb) => `${prefix}.project.${project}.${verb}`,
    query: (project: ProjectId | string, what: QueryName) => `${prefix}.project.${project}.query.${what}`,
    operator: (verb: OperatorVerb) => `${prefix}.operator.${verb}`,
    agent: (group: string, agent: string, verb: AgentVerb) => `${prefix}.agent.${group}.${agent}.${verb}`,
    /** Leader to agent: assign, revoke, drain, fenced, rejoin, and changes of its slots. */
    assign: (group: string, agent: string) => `${prefix}.agent.${group}.${agent}.assign`,
    /** Leader to agent, as a request: logs of attempts. */
    agentLog: (group: string, agent: string) => `${prefix}.agent.${group}.${agent}.log`,
    event: (project: ProjectId | string, noun: string, verb: string) =>
      `${prefix}.event.${project}.${noun}.${verb}`,
    /** All events of a project; `_`: of the swarm and of every project. */
    eventsOf: (project: ProjectId | string) =>
      project === NO_PROJECT ? `${prefix}.event.>` : `${prefix}.event.${project}.>`,
    coordinator: `${prefix}.coordinator`,
    journal: `${prefix}.journal`,
    /** A segment of the journal: records, `Opened`, and the sealing record. `*`: any segment. */
    segment: (number: number | "*") => `${prefix}.journal.${number}`,
    segmentOpened: (number: number | "*") => `${prefix}.journal.${number}.opened`,
    segmentSealed: (number: number | "*") => `${prefix}.journal.${number}.sealed`,
    /** Subjects that only a leader subscribes to. */
    leaderPatterns: [
      `${prefix}.project.*.submit`,
      `${prefix}.project.*.cancel`,
      `${prefix}.project.*.retry`,
      `${prefix}.project.*.revoke`,
      `${prefix}.project.*.reschedule`,
      `${prefix}.project.*.await`,
      `${prefix}.project.*.set`,
      `${prefix}.project.*.pause`,
      `${prefix}.project.*.resume`,
      `${prefix}.operator.*`,
      `${prefix}.agent.*.*.join`,
      `${prefix}.agent.*.*.leave`,
      `${prefix}.agent.*.*.heartbeat`,
      `${prefix}.agent.*.*.progress`,
      `${prefix}.agent.*.*.chunk`,
      `${prefix}.agent.*.*.result`,
      `${prefix}.agent.*.*.acquire`,
      `${prefix}.agent.*.*.touch`,
      `${prefix}.agent.*.*.release`,
    ],
    /** Queries that every coordinator answers. */
    queryPattern: `${prefix}.project.*.query.*`,
  } as const;
}

/** Leader to a waiting client, below the client's inbox from `notify`: outcomes of tasks… */
export function doneSubject(inbox: string): string {
  return `${inbox}.done`;
}

/** …progress of running tasks… */
export function progressSubject(inbox: string): string {
  return `${inbox}.progress`;
}

/** …and chunks of their results. */
export function chunkSubject(inbox: string): string {
  return `${inbox}.chunk`;
}

export type Subjects = ReturnType<typeof subjectsOf>;

/** A valid reply subject: an inbox, with the common prefix or an own prefix like `_INBOX_ann`, without wildcards.
 *  Other subjects could reach the journal or the server's own interface. */
export function isInbox(reply: string): boolean {
  return INBOX_PATTERN.test(reply);
}
