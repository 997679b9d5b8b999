// Branded identifiers and instants: one cannot pass for another. Not here: checks of external input
// (protocol/schemas.ts uses the patterns below).

declare const brand: unique symbol;
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name };

/** 1–64 characters of `[A-Za-z0-9_-]`; a subject token. */
export type SwarmId = Brand<string, "SwarmId">;
/** 1–64 characters of `[A-Za-z0-9_-]`, not `_` alone; a subject token. */
export type ProjectId = Brand<string, "ProjectId">;
/** 1–64 characters of `[A-Za-z0-9_-]`; a subject token. */
export type AgentId = Brand<string, "AgentId">;
/** A group of agents that share a credential: 1–64 characters of `[A-Za-z0-9_-]`; a subject token. */
export type GroupId = Brand<string, "GroupId">;
/** 1–128 printable characters without spaces. */
export type UserId = Brand<string, "UserId">;
/** 1–128 printable characters without spaces. */
export type TaskId = Brand<string, "TaskId">;
/** The kind of work that a task needs and an agent can do; 1–128 printable characters without spaces. */
export type Kind = Brand<string, "Kind">;
/** A shared resource with slots (an LLM quota); 1–128 printable characters without spaces. */
export type ResourceName = Brand<string, "ResourceName">;
/** Id of one session of an agent; 1–64 characters of `[A-Za-z0-9_-]`, unique per start. */
export type Incarnation = Brand<string, "Incarnation">;
/** Id of a slot lease within its agent, from request to release; 1–64 characters of `[A-Za-z0-9_-]`, chosen by the
 *  agent and never reused. */
export type SlotHandle = Brand<string, "SlotHandle">;
/** Names one granted attempt: `<term>.<agent's assignment number>`. */
export type Token = Brand<string, "Token">;

/** Leadership epoch, from 1. */
export type Term = Brand<number, "Term">;
/** Position of a batch in the journal, from 1, contiguous. */
export type BatchIndex = Brand<number, "BatchIndex">;
/** The n-th execution of a task, from 1. */
export type AttemptNumber = Brand<number, "AttemptNumber">;
/** The n-th assignment to one incarnation of an agent, from 1, contiguous. */
export type AssignmentNumber = Brand<number, "AssignmentNumber">;
/** Journal time: milliseconds since the Unix epoch, never decreasing along the journal. */
export type Instant = Brand<number, "Instant">;

/** Swarm, project and agent ids, incarnations. */
export const SUBJECT_TOKEN_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;
/** User, kind and task ids: printable, no spaces, no controls, no separators invisible to a reader. */
export const NAME_PATTERN = /^[^\s\p{C}\p{Z}]{1,128}$/u;
/** A label in a grant: `name=value`, or `name` for any value. */
export const GRANT_LABEL_PATTERN = /^[A-Za-z0-9_./-]{1,64}(?:=[^\p{C}]{1,128})?$/u;
/** An inbox: a subject of a single user, with the common prefix or an own prefix such as `_INBOX_ann`, without
 *  wildcards. */
export const INBOX_PATTERN = /^_INBOX[A-Za-z0-9_-]*(?:\.[^.*>\s]+)+$/;
/** Stands in a subject where an event or a query belongs to no project; no project may be called so. */
export const NO_PROJECT = "_";
/** Group token in the subjects of an agent without a group. */
export const NO_GROUP = "_" as GroupId;
/** Project of tasks whose submitter names none. */
export const DEFAULT_PROJECT = "default";

const brandingAs =
  <B>() =>
  (value: unknown) =>
    value as B;

export const swarmId: (value: string) => SwarmId = brandingAs<SwarmId>();
export const projectId: (value: string) => ProjectId = brandingAs<ProjectId>();
export const agentId: (value: string) => AgentId = brandingAs<AgentId>();
export const userId: (value: string) => UserId = brandingAs<UserId>();
export const taskId: (value: string) => TaskId = brandingAs<TaskId>();
export const resourceName: (value: string) => ResourceName = brandingAs<ResourceName>();
export const kind: (value: string) => Kind = brandingAs<Kind>();
export const incarnation: (value: string) => Incarnation = brandingAs<Incarnation>();
export const slotHandle: (value: string) => SlotHandle = brandingAs<SlotHandle>();
export const token: (value: string) => Token = brandingAs<Token>();
export const term: (value: number) => Term = brandingAs<Term>();
export const batchIndex: (value: number) => BatchIndex = brandingAs<BatchIndex>();
export const attemptNumber: (value: number) => AttemptNumber = brandingAs<AttemptNumber>();
export const assignmentNumber: (value: number) => AssignmentNumber = brandingAs<AssignmentNumber>();
export const instant: (value: number) => Instant = brandingAs<Instant>();

/** Names a task: ids belong to their project, so two projects may each have a task of the same id. */
export interface TaskRef {
  readonly project: ProjectId;
  readonly task: TaskId;
}

/** Key of a task in maps and sets, and its name in texts about several projects: `acme/t1`. A project id has no slash,
 *  so the first slash separates. */
export function taskKey({ project, task }: { readonly project: string; readonly task: string }): string {
  return `${project}/${task}`;
}

/** Whether coordinators answer requests from inboxes with this prefix. A prefix may have several tokens:
 *  `_INBOX_ann.laptop`. */
export function isInboxPrefix(prefix: string): boolean {
  return INBOX_PATTERN.test(`${prefix}.x`);
}

/** The task of a key from `taskKey`. */
export function refOfKey(key: string): TaskRef {
  const slash = key.indexOf("/");
  return { project: projectId(key.slice(0, slash)), task: taskId(key.slice(slash + 1)) };
}

/** Key of an attempt in maps and sets. */
export function attemptKey(named: {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
}): string {
  return `${named.project}/${named.task}#${named.attempt}`;
}
