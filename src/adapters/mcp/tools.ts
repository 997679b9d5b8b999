// The tools of `waggle mcp`. Every tool calls the public SDK, and answers in lines of text.

import * as z from "zod";
import { describe } from "../../audit/describe.ts";
import { describeObstacle, describeWait } from "../../audit/describe-wait.ts";
import type { JournaledEvent } from "../../audit/journaled-event.ts";
import { healthFrom } from "../../client/health.ts";
import { WaitTimedOutError } from "../../client/task-errors.ts";
import type { TaskHandle } from "../../client/task-handle.ts";
import type { TaskListOptions, TaskStateName } from "../../client/task-lists.ts";
import type { TaskRequest } from "../../client/task-request.ts";
import { resultOf } from "../../client/task-result.ts";
import type { TaskExplanation } from "../../client/task-stories.ts";
import { systemRandom } from "../../clock.ts";
import { headOf } from "../../cut-text.ts";
import { InvalidValueError, OutcomeUnknownError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import { taskStates } from "../../protocol/task-list-schemas.ts";
import { reportOf } from "../task-report.ts";
import { type Answer, boundedLines, record, textFrom } from "./answer.ts";
import { statusLines } from "./status-lines.ts";
import { type Tool, type ToolContext, toolOf } from "./tool.ts";

const task = z.string().describe("id of the task, as submit answered it");
const project = z.string().describe("project of the task; default: the only project with a task of this id");
const waitSeconds = z
  .number()
  .min(0)
  .max(limits.mcpWaitSecondsMax)
  .describe(
    `longest wait for the end of the task, 0 to ${limits.mcpWaitSecondsMax} s; then the answer is its present ` +
      "state, and the task goes on. Many clients give up a call after 60 s",
  );

interface SubmitInput {
  readonly kind: string;
  readonly payload?: unknown;
  readonly id?: string;
  readonly project?: string;
  readonly user?: string;
  readonly role?: string;
  readonly needs?: NonNullable<TaskRequest["needs"]>;
  readonly affinity?: string;
  readonly attributes?: NonNullable<TaskRequest["attributes"]>;
  readonly priority?: number;
  readonly tokens?: number;
  readonly maxAttempts?: number;
  readonly timeoutMs?: number;
  readonly notBefore?: string;
  readonly deadline?: string;
  readonly waitSeconds?: number;
}

const submit = toolOf<SubmitInput>({
  name: "submit",
  title: "Submit a task",
  description:
    "Hands one task to the swarm, which picks an agent of the kind, retries failed attempts and keeps the task over " +
    "crashes. Answers the task's id; with waitSeconds also the result, if the task ends in time. `status` lists the kinds " +
    "that agents serve. A task of a kind without agents waits until an agent joins. Giving up this call does not " +
    "cancel the task: use `cancel`.",
  changes: true,
  each: {
    kind: z.string().describe("kind of the task: the capability that an agent needs, such as `count`"),
    payload: z
      .unknown()
      .describe(
        "input of the agent: a string is handed over as it is, any other value as JSON. At most 256 KiB",
      ),
    id: z
      .string()
      .describe(
        "id of the task, for a safe repeat: the same id and content is the same task. Default: a new id",
      ),
    project: z.string().describe("project that the task counts for; default: that of the server"),
    user: z.string().describe("user that the task counts for; default: that of the server"),
    role: z.string().describe("only agents of this role"),
    needs: z
      .record(z.string(), z.union([z.string(), z.array(z.string())]))
      .describe('only agents with these labels: by label the accepted value or values, as {"gpu": "a100"}'),
    affinity: z
      .string()
      .describe("key of a session or the like: prefers the agent that ran the last task with the key"),
    attributes: z.record(z.string(), z.string()).describe("values of your own by name, at most 4 KiB"),
    priority: z.int().describe("lower runs first; default 100"),
    tokens: z.int().min(0).describe("estimate of the tokens of an attempt, for budgets"),
    maxAttempts: z.int().min(1).max(limits.maxAttemptsMax).describe("default 3"),
    timeoutMs: z.int().min(1).describe("longest time of one attempt, ms; default 1 hour"),
    notBefore: z.string().describe("earliest start, ISO 8601: 2026-11-20T18:00:00Z"),
    deadline: z.string().describe("the task expires unless it ends before, ISO 8601"),
    waitSeconds: waitSeconds.describe(
      `${waitSeconds.description}. Default 0: answer as soon as it is accepted`,
    ),
  },
  required: ["kind"],
  otherwise: { data: "payload", input: "payload", timeout: "timeoutMs", wait: "waitSeconds" },
  example: '{ "kind": "count", "payload": "how many words" }',
  run: async ({ waitSeconds: wait = 0, ...given }, context) => {
    const swarm = await context.swarm();
    const { notBefore, deadline, id = `mcp-${systemRandom.id(12)}`, ...rest } = given;
    const request = {
      ...rest,
      id,
      stream: true, // also without a wait: the same id and content must stay the same task
      ...(notBefore === undefined ? {} : { notBefore: instantOf("notBefore", notBefore) }),
      ...(deadline === undefined ? {} : { deadline: instantOf("deadline", deadline) }),
    };
    const { signal } = context;
    const handle = await swarm.submit(request, { notify: wait > 0, signal }).catch((error: unknown) => {
      if (!(error instanceof OutcomeUnknownError)) throw error;
      throw new OutcomeUnknownError(`${error.message}. Submit again with "id": "${id}", which is harmless`);
    });
    const warnings = handle.warnings.map(({ message }) => message);
    const accepted = record({
      ...{ task: handle.id, project: handle.project, state: "accepted" },
      ...(warnings.length === 0 ? {} : { warnings }),
    });
    if (wait === 0) return [accepted];
    const ended = await awaited(handle, { wait, from: 0 }, context);
    return [accepted, ...ended];
  },
});

interface ResultInput {
  readonly task: string;
  readonly project?: string;
  readonly waitSeconds?: number;
  readonly from?: number;
}

const result = toolOf<ResultInput>({
  name: "result",
  title: "Read the result of a task",
  description:
    "Waits until the task ends, and answers its result: a line about the attempt, then the result as the agent gave " +
    "it. A task that failed, expired or was cancelled is an error with the reason. A waiting or running task is no " +
    "error: the answer gives the state and the reason of a wait; call again later.",
  changes: false,
  each: {
    task,
    project,
    waitSeconds: waitSeconds.describe(`${waitSeconds.description}. Default ${limits.mcpWaitSecondsDefault}`),
    from: z.int().min(0).describe("first character to answer, to read on in a long result; default 0"),
  },
  required: ["task"],
  otherwise: { id: "task", taskId: "task", wait: "waitSeconds" },
  example: '{ "task": "t1" }',
  run: async (
    { task: id, project: named, waitSeconds: wait = limits.mcpWaitSecondsDefault, from = 0 },
    context,
  ) => {
    const swarm = await context.swarm();
    const status = await swarm.taskStatus(id, { signal: context.signal, ...ofProject(named) });
    return await awaited(swarm.task(id, { project: status.project }), { wait, from }, context);
  },
});

/** The result of a task, or its state when the wait ends first. */
async function awaited(
  handle: TaskHandle,
  { wait, from }: { readonly wait: number; readonly from: number },
  { swarm: open, signal, report }: ToolContext,
): Promise<Answer> {
  const { id, project: of } = handle;
  const stop = report === undefined ? undefined : follow(handle, report);
  try {
    const outcome = await handle.outcome({ timeoutMs: wait * 1_000, signal });
    return resultAnswer(outcome, from);
  } catch (error) {
    if (!(error instanceof WaitTimedOutError)) throw error;
    const { state, waiting, agent } = await (await open()).explain(id, { project: of, signal });
    const why = waiting === undefined ? undefined : describeWait(waiting);
    return [
      record({ task: id, project: of, state, agent, ...(why === undefined ? {} : { why }) }),
      "The task has not ended. Call result again to wait on, or explain for details.",
    ];
  } finally {
    stop?.();
  }
}

/** Tells of each step of a task, of chunks of its result, and at intervals that it goes on: clients then wait longer.
 *  @returns a function that ends the reports */
function follow(handle: TaskHandle, report: (message: string) => void): () => void {
  const updates = handle.events$.subscribe({
    next: (update) => {
      const text = reportOf(update);
      if (text !== undefined) report(text);
    },
    error: () => undefined, // the wait for the outcome reports errors
  });
  const chunks = handle.chunks().subscribe({
    next: (chunk) => {
      if (chunk.encoding === undefined) report(headOf(chunk.data, limits.mcpProgressCharactersMax));
    },
    error: () => undefined, // the wait for the outcome reports errors
  });
  const ticking = setInterval(() => report(`task ${handle.id} has not ended`), limits.mcpProgressMs);
  return () => {
    updates.unsubscribe();
    chunks.unsubscribe();
    clearInterval(ticking);
  };
}

function resultAnswer(outcome: Outcome, from: number): Answer {
  const done = resultOf(outcome);
  const { agent, attempts, latencyMs, tokens } = done;
  const isBytes = outcome.encoding === "base64";
  const head = record({
    ...{ task: outcome.task, state: outcome.state, agent, attempts, latencyMs, tokens },
    ...(isBytes ? { encoding: "base64" } : {}),
  });
  return [head, textFrom(isBytes ? (outcome.result ?? "") : done.text(), from)];
}

interface StatusInput {
  readonly project?: string;
}

const status = toolOf<StatusInput>({
  name: "status",
  title: "Look at the swarm",
  description:
    "The present state of the swarm: the leader and the tasks by state. Then one line per hold with its reason, queue, " +
    "project, resource, rate and online agent. An agent has kinds, success rate and free capacity.",
  changes: false,
  each: {
    project: z.string().describe("only tasks, users and budget of this project; default: the whole swarm"),
  },
  example: '{ "project": "red" }',
  run: async (input, { swarm: open, signal }) => {
    const swarm = await open();
    const lines = statusLines(await swarm.status({ ...input, signal }));
    return [boundedLines(lines, { hint: 'ask about one project with "project", or run `waggle status`' })];
  },
});

interface TaskInput {
  readonly task: string;
  readonly project?: string;
}

/** The arguments of tools that take the id of a task. */
const ofOneTask = {
  each: { task, project },
  required: ["task"],
  otherwise: { id: "task", taskId: "task" },
  example: '{ "task": "t1" }',
} as const;

const explain = toolOf<TaskInput>({
  name: "explain",
  title: "Explain a task",
  description:
    "Why a task waits and what would change it, or why each attempt went to its agent and how the attempt ended. " +
    "Begins with the task's state.",
  changes: false,
  ...ofOneTask,
  run: async ({ task: id, project: named }, { swarm: open, signal }) => {
    const swarm = await open();
    const explanation = await swarm.explain(id, { signal, ...ofProject(named) });
    return [boundedLines(explanationLines(explanation), { hint: `run \`waggle explain ${id}\` for all` })];
  },
});

function explanationLines(explanation: TaskExplanation): string[] {
  const { task: id, kind, role, project: of, user, state, agent, at, stale, waiting } = explanation;
  const { attempts, attemptCount, deadLetterReason } = explanation;
  const moment = new Date(at).toISOString();
  const head = record({
    ...{ task: id, kind, role, project: of, user, state, agent, attempts: attemptCount, deadLetterReason },
    ...{ at: moment, stale },
  });
  return [
    head,
    ...(waiting?.obstacles.map((obstacle) => `why: ${describeObstacle(obstacle, waiting)}`) ?? []),
    ...attempts.map((attempt) => record(attempt)),
    ...(waiting?.agents.map((standing) => record(standing)) ?? []),
  ];
}

const health = toolOf<object>({
  name: "health",
  title: "Judge the swarm's health",
  description:
    "One verdict on the swarm by fixed rules: tasks move, attempts succeed, agents are present. Then the findings, " +
    "worst first, and the next command for an operator.",
  changes: false,
  each: {},
  example: "{}",
  run: async (_, { swarm: open, signal }) => {
    const ask = async () => (await open()).status({ signal });
    const { level, verdict, next, findings } = await healthFrom(ask);
    const lines = [
      record({ level, verdict, next }),
      ...findings.map(({ level: of, area, text, next: then }) =>
        record({ level: of, area, text, next: then }),
      ),
    ];
    return [boundedLines(lines, { hint: "run `waggle health` for all" })];
  },
});

interface EventsInput {
  readonly task?: string;
  readonly agent?: string;
  readonly kind?: string;
  readonly attributes?: Readonly<Record<string, string>>;
  readonly project?: string;
  readonly types?: string[];
  readonly tail?: number;
}

const events = toolOf<EventsInput>({
  name: "events",
  title: "Read the journal",
  description:
    "The last events of the journal that match all given filters, oldest first, one line each: time, batch, what " +
    "happened and why. Every decision of the swarm is such an event.",
  changes: false,
  each: {
    task: z.string().describe("only events of this task"),
    agent: z.string().describe("only events of this agent"),
    kind: z.string().describe("only events of tasks of this kind"),
    attributes: z
      .record(z.string(), z.string())
      .describe('only events of tasks with all these attributes, as {"ticket": "OPS-17"}'),
    project: z.string().describe("only events of this project"),
    types: z.array(z.string()).describe("only events of these types, such as TaskAssigned, AttemptFailed"),
    tail: z
      .int()
      .min(1)
      .max(limits.mcpEventsMax)
      .describe(`number of events, 1 to ${limits.mcpEventsMax}; default ${limits.eventsTailDefault}`),
  },
  otherwise: { type: "types", limit: "tail", count: "tail", attribute: "attributes" },
  example: '{ "task": "t1" }',
  run: async ({ tail = limits.eventsTailDefault, ...filter }, context) => {
    const found = await lastEvents(filter, tail, context);
    if (found.length === 0) return ["no event matches"];
    return [
      boundedLines(found.map(eventLine), { keep: "last", hint: "narrow the filters for the earlier ones" }),
    ];
  },
});

/** Each reading begins further back, until enough events are found. */
async function lastEvents(
  filter: Omit<EventsInput, "tail">,
  tail: number,
  { swarm: open, signal }: ToolContext,
): Promise<JournaledEvent[]> {
  const swarm = await open();
  const { idx, journal } = await swarm.status({ signal, ...ofProject(filter.project) });
  for (let span = 2 * tail; ; span *= 8) {
    const from = Math.max(journal.auditFirstIdx, idx - span + 1);
    const last: JournaledEvent[] = [];
    for await (const found of swarm.events({ ...filter, from, signal })) {
      if (found.event.type === "TermRenewed" && filter.types === undefined) continue; // the heartbeat of an idle leader
      last.push(found);
      if (last.length > 2 * tail) last.splice(0, last.length - tail);
    }
    signal.throwIfAborted();
    if (last.length >= tail || from === journal.auditFirstIdx) return last.slice(-tail);
  }
}

function eventLine({ idx, at, event, isChanged }: JournaledEvent): string {
  const changed = isChanged === true ? " · CHANGED after it was written: run `waggle verify`" : "";
  return `${new Date(at).toISOString()} ${idx} ${event.type}: ${describe(event)}${changed}`;
}

interface TasksInput extends Pick<TaskListOptions, "attributes"> {
  readonly states?: readonly TaskStateName[];
  readonly kind?: string;
  readonly project?: string;
  readonly user?: string;
  readonly agent?: string;
  readonly limit?: number;
}

const tasks = toolOf<TasksInput>({
  name: "tasks",
  title: "Find tasks",
  description:
    "Tasks that match all given filters: running tasks, then waiting tasks, then tasks ended in the last day, newest " +
    "first. The first line has their number, and each further line is one task.",
  changes: false,
  each: {
    states: z.array(z.enum(taskStates)).describe("only tasks in these states, such as dead-lettered"),
    kind: z.string().describe("only tasks of this kind"),
    attributes: z
      .record(z.string(), z.string())
      .describe('only tasks with all these attributes, as {"ticket": "OPS-17"}'),
    project: z.string().describe("only tasks of this project"),
    user: z.string().describe("only tasks of this user"),
    agent: z.string().describe("only tasks whose last attempt went to this agent"),
    limit: z.int().min(1).max(limits.tasksPageMax).describe("number of tasks; default 20"),
  },
  otherwise: { state: "states", attribute: "attributes", tail: "limit" },
  example: '{ "attributes": { "ticket": "OPS-17" } }',
  run: async ({ states, limit = 20, ...filter }, { swarm: open, signal }) => {
    const state = states === undefined ? {} : { state: states };
    const page = await (await open()).taskPage({ ...filter, ...state, limit, signal });
    const lines = [record({ tasks: page.total, stale: page.stale }), ...page.tasks.map(record)];
    return [boundedLines(lines, { hint: "narrow the filters for the others" })];
  },
});

const cancel = toolOf<TaskInput>({
  name: "cancel",
  title: "Cancel a task",
  description:
    "Ends a task that has not ended: a waiting task never runs, and the agent of a running task is notified to stop. " +
    "Answers `cancelled`, or the state of a task that had ended before.",
  changes: true,
  isDestructive: true,
  ...ofOneTask,
  run: async ({ task: id, project: named }, { swarm: open, signal }) => {
    const swarm = await open();
    const of = named ?? (await swarm.taskStatus(id, { signal })).project;
    const { cancelled, state } = await swarm.cancel(id, { project: of, signal });
    return [record({ task: id, project: of, cancelled, state })];
  },
});

export const tools: readonly Tool[] = [submit, result, status, tasks, explain, health, events, cancel];

function ofProject(named: string | undefined): { readonly project?: string } {
  return named === undefined ? {} : { project: named };
}

/** @throws InvalidValueError naming the argument */
function instantOf(field: string, text: string): Date {
  const at = new Date(text);
  if (!Number.isNaN(at.getTime())) return at;
  throw new InvalidValueError(`${field}: is no time: ${JSON.stringify(text)}; write 2026-11-20T18:00:00Z`, {
    field,
  });
}
