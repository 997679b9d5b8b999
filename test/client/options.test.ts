// Every public call refuses options and arguments of a wrong name or type. The types of the tables come from
// the calls and their options. A new call or option without a row here does not compile; a missing check fails.

import { describe, expect, it } from "vitest";
import type { AgentOptions } from "../../src/agent/agent.ts";
import { type ExecOptions, execHandler } from "../../src/agent/exec.ts";
import { type HttpOptions, httpHandler } from "../../src/agent/http.ts";
import type { SlotReport } from "../../src/agent/slot-usage.ts";
import { type AcquireOptions, Slots } from "../../src/agent/slots.ts";
import type { WrapOptions } from "../../src/agent/wraps.ts";
import type { AskOptions } from "../../src/client/asker.ts";
import type { CancelOptions } from "../../src/client/cancels.ts";
import { type ConnectOptions, connect } from "../../src/client/connect.ts";
import type { EventsOptions } from "../../src/client/event-stream.ts";
import type {
  Grant,
  HoldOptions,
  RemoveRateOptions,
  SettingsOptions,
  TransferOptions,
} from "../../src/client/operations.ts";
import type { RescheduleOptions } from "../../src/client/reschedules.ts";
import type { RetryOptions } from "../../src/client/retries.ts";
import type { RevokeOptions } from "../../src/client/revokes.ts";
import type { SubmitOutcome } from "../../src/client/submit-many.ts";
import {
  type ProjectOptions,
  type ProjectSwarm,
  type StatusOptions,
  type SubmitOptions,
  type Swarm,
  SwarmClient,
} from "../../src/client/swarm.ts";
import {
  type ChunksOptions,
  SwarmTask,
  type TaskHandle,
  type WaitOptions,
} from "../../src/client/task-handle.ts";
import type { TaskListOptions } from "../../src/client/task-lists.ts";
import type { TaskRequest } from "../../src/client/task-request.ts";
import type { ReplayOptions, SlotWaitOptions, TaskOptions } from "../../src/client/task-stories.ts";
import { systemClock } from "../../src/clock.ts";
import type {
  KindPatch,
  PolicyPatch,
  ProjectPatch,
  RatePatch,
  ResourcePatch,
} from "../../src/core/settings-patch.ts";
import { WaggleError } from "../../src/errors.ts";
import { aClient, watch } from "./client-fixture.ts";

const invalidDate = new Date(Number.NaN);
const revoked = Proxy.revocable({}, {});
revoked.revoke();

/** Only the right type passes, and no value is converted. */
const wrong = {
  text: [null, 5, Number.NaN, true, ["a"], {}, invalidDate],
  name: [null, 5, Number.NaN, true, ["a"], {}, "", "two words"],
  texts: [null, 5, true, [5], {}],
  number: [null, "5", Number.NaN, true, [5], {}, invalidDate, 5n],
  whole: [null, "5", Number.NaN, Number.POSITIVE_INFINITY, 1.5, -1e18, [5], new Date()],
  wait: [null, "5", Number.NaN, -1, [5], {}, new Date()],
  flag: [null, "yes", 1, []],
  instant: [null, "2026-11-20", Number.NaN, Number.POSITIVE_INFINITY, invalidDate, -1, [5], {}],
  signal: [null, 5, {}, new AbortController()],
  callback: [null, 5, "f", {}],
  object: [null, 5, "x", []],
} as const;

const ask = { timeoutMs: wrong.wait, signal: wrong.signal };
const acquire = {
  weight: wrong.number,
  timeoutMs: wrong.whole.filter((value) => value !== Number.POSITIVE_INFINITY),
  signal: wrong.signal,
  holder: wrong.name,
  tokens: wrong.whole,
  project: [...wrong.name, "a.b"],
  user: wrong.name,
  label: [null, 5, true, ["a"], {}, "", " ", "two\nlines", "x".repeat(129)],
  as: wrong.name,
  idleTimeoutMs: [...wrong.whole, 999, 86_400_001],
};
const report = {
  inputTokens: wrong.whole,
  outputTokens: wrong.whole,
  totalTokens: wrong.whole,
  partial: wrong.flag,
};

// biome-ignore lint/suspicious/noExplicitAny: plain JavaScript passes anything
type Anything = any;
type Run<On> = (on: On, given: Anything) => unknown;
type Values<Options> = { readonly [Name in keyof Required<Options>]: readonly unknown[] };

interface Options<On> {
  readonly values: Readonly<Record<string, readonly unknown[]>>;
  readonly run: Run<On>;
  /** Valid options, to combine with wrong options. */
  readonly base: object;
}

interface Call<On> {
  readonly options?: Options<On>;
  /** By name: wrong values, and the call with a value. */
  readonly args?: Readonly<Record<string, readonly [values: readonly unknown[], run: Run<On>]>>;
}

const taking =
  <Given extends object>() =>
  <On>(values: Values<Given>, run: Run<On>, base: object = {}): Options<On> => ({
    values,
    run,
    base,
  });

type CallOf<On> = {
  [Name in keyof On]-?: On[Name] extends (...given: Anything) => unknown ? Name : never;
}[keyof On];
type Calls<On> = Record<Exclude<CallOf<On>, symbol>, Call<On>>;

const task: Values<TaskRequest> = {
  kind: wrong.name,
  payload: [
    () => 1,
    5n,
    Symbol("x"),
    new ArrayBuffer(8),
    new Int16Array(2),
    new Map(),
    Promise.resolve(1),
    revoked.proxy,
  ],
  id: wrong.name,
  project: [...wrong.name, "_", "a.b"],
  user: wrong.name,
  role: wrong.name,
  needs: [...wrong.object, { gpu: 5 }, { gpu: [] }, { ä: "x" }, { gpu: "x".repeat(129) }],
  affinity: wrong.name,
  attributes: [...wrong.object, { a: 5 }, { ä: "x" }, { a: "x".repeat(4_096) }],
  weight: wrong.number,
  priority: wrong.whole,
  tokens: wrong.whole,
  deadline: wrong.instant,
  notBefore: wrong.instant,
  maxAttempts: [...wrong.whole, 0, 101],
  timeoutMs: [...wrong.whole, 0],
  stallMs: wrong.whole,
  stream: wrong.flag,
  traceparent: [null, 5, "", "00-0-0-00", `00-${"0".repeat(32)}-${"1".repeat(16)}-01`],
  tracestate: [null, 5, "", "ä=1", "x".repeat(513)],
};

const cancel = { ...ask, round: [...wrong.whole, 0] };
const retry = { ...ask, deadline: wrong.instant, round: [...wrong.whole, 1] };

const revoke = { ...ask, attempt: [...wrong.whole, 0] };
const reschedule = { ...ask, notBefore: wrong.instant, round: [...wrong.whole, 0] };

const names = [null, 5, true, [], [5], {}, "", "two words", ["two words"]];
const list: Values<TaskListOptions> = {
  ...ask,
  state: [...names, "faild"],
  kind: names,
  project: task.project,
  user: names,
  agent: names,
  attributes: task.attributes,
  olderThanMs: wrong.whole,
  sort: wrong.text,
  limit: [...wrong.whole, 0],
  fresh: wrong.flag,
  after: wrong.text,
};

const many = [null, 5, Number.NaN, true, () => 1];

const askFor = (run: Run<Swarm>): Options<Swarm> => taking<AskOptions>()<Swarm>(ask, run);

const project: Values<ProjectPatch> = {
  creditWeight: wrong.number.slice(1),
  maxConcurrent: wrong.whole.slice(1),
  budget: [5, "x", [], { tokens: null }, { tokens: "5" }, { windowMs: Number.NaN }, { mode: "x" }],
  queueMax: wrong.whole.slice(1),
  results: wrong.text,
  priorityRange: [5, "1..2", { min: 1 }, { min: "1", max: 2 }],
  weightRange: [5, "1..2", { min: 1 }, { min: "1", max: 2 }],
  user: wrong.name.slice(1),
  inboxUsers: ["ann", 5, [], ["a.b"], [""]],
};

const resource: Values<ResourcePatch> = {
  slots: wrong.whole,
  maxWaiters: wrong.whole,
  alpha: wrong.number.slice(1),
  optimizeFor: wrong.text.slice(1),
  autoTune: wrong.flag.slice(1),
};

const policy: Values<PolicyPatch> = {
  rules: wrong.text,
  projectTurn: wrong.text,
  userTurn: wrong.text,
  agentRule: wrong.text,
  lambda: wrong.number,
  speedExponent: wrong.number,
  alpha: wrong.number,
  optimizeFor: wrong.text,
  autoTune: wrong.flag,
  starvationLimit: wrong.whole,
  guaranteeMs: wrong.whole,
  topN: wrong.whole.slice(1),
  budget: project.budget,
  tokensDefault: wrong.whole,
  rememberMs: wrong.whole,
  rememberedTasks: wrong.whole,
  projects: wrong.text,
  resources: wrong.text,
  slotsDefault: wrong.whole,
  agents: wrong.text,
  security: wrong.text,
};

const askForTask = (run: Run<Swarm>) => taking<TaskOptions>()<Swarm>({ ...ask, project: task.project }, run);
const swarmCalls: Calls<Swarm> = {
  submit: { options: taking<TaskRequest>()<Swarm>(task, (to, given) => to.submit(given), { kind: "count" }) },
  submitMany: {
    options: taking<SubmitOptions>()<Swarm>(
      { ...ask, notify: wrong.flag, failFast: wrong.flag, retry: wrong.flag, onBackpressure: wrong.callback },
      (to, given) => to.submitMany([{ kind: "count" }], given),
    ),
    args: { tasks: [[null, 5, "abc", { kind: "count" }], (to, given) => to.submitMany(given)] },
  },
  task: {
    options: taking<ProjectOptions>()<Swarm>({ project: task.project }, (of, given) => of.task("t1", given)),
    args: { id: [wrong.name, (of, given) => of.task(given)] },
  },
  cancel: {
    options: taking<CancelOptions>()<Swarm>({ ...cancel, project: task.project }, (to, given) =>
      to.cancel("t1", given),
    ),
    args: {
      id: [["", "two words"], (to, given) => to.cancel(given)],
      tasks: [many, (to, given) => to.cancel(given)],
    },
  },
  retry: {
    options: taking<RetryOptions>()<Swarm>({ ...retry, project: task.project }, (to, given) =>
      to.retry("t1", given),
    ),
    args: {
      id: [["", "two words"], (to, given) => to.retry(given)],
      tasks: [many, (to, given) => to.retry(given)],
    },
  },
  revoke: {
    options: taking<RevokeOptions>()<Swarm>({ ...revoke, project: task.project }, (to, given) =>
      to.revoke("t1", given),
    ),
    args: {
      id: [["", "two words"], (to, given) => to.revoke(given)],
      tasks: [many, (to, given) => to.revoke(given)],
    },
  },
  reschedule: {
    options: taking<RescheduleOptions>()<Swarm>(
      { ...reschedule, project: task.project },
      (to, given) => to.reschedule("t1", given),
      { notBefore: 1 },
    ),
    args: {
      id: [["", "two words"], (to, given) => to.reschedule(given, { notBefore: 1 })],
      tasks: [many, (to, given) => to.reschedule(given, { notBefore: 1 })],
    },
  },
  tasks: { options: taking<TaskListOptions>()<Swarm>(list, (of, given) => of.tasks(given)) },
  taskPage: { options: taking<TaskListOptions>()<Swarm>(list, (of, given) => of.taskPage(given)) },
  agent: {
    options: taking<AgentOptions>()<Swarm>(
      {
        id: wrong.name,
        group: wrong.name,
        kinds: [null, "count", 5, [5], [null]],
        handler: wrong.callback,
        maxConcurrent: wrong.whole,
        prefetch: wrong.whole,
        role: wrong.name,
        type: wrong.name,
        labels: [null, 5, [], { a: 5 }],
        errorText: [null, 5, "yes", {}],
        signal: wrong.signal,
      },
      (to, given) => to.agent(given),
      { kinds: ["count"], handler: () => 1 },
    ),
  },
  acquire: {
    options: taking<AcquireOptions>()<Swarm>(acquire, (to, given) => to.acquire("gpu", given)),
    args: { resources: [[null, 5, [], [5], "", ["a", "two words"]], (to, given) => to.acquire(given)] },
  },
  acquireStart: {
    options: taking<AcquireOptions>()<Swarm>(acquire, (to, given) => to.acquireStart("gpu", given)),
    args: { resources: [[null, 5, []], (to, given) => to.acquireStart(given)] },
  },
  wrap: {
    options: taking<WrapOptions>()<Swarm>(
      { ...acquire, resource: wrong.texts },
      (to, given) => to.wrap(() => 1, given),
      {
        resource: "gpu",
      },
    ),
    args: { work: [wrong.callback, (to, given) => to.wrap(given, { resource: "gpu" })] },
  },
  releaseHandle: {
    options: taking<SlotReport>()<Swarm>(report, (to, given) => to.releaseHandle("h", given)),
    args: {
      handle: [wrong.text, (to, given) => to.releaseHandle(given)],
      refused: [[null, 5, []], (to, given) => to.releaseHandle("h", undefined, { refused: given })],
    },
  },
  events: {
    options: taking<EventsOptions>()<Swarm>(
      {
        from: [null, 0, -1, 1.5, Number.NaN, "yesterday", "2027-02-30", invalidDate, [], {}],
        follow: wrong.flag,
        task: wrong.name,
        agent: [...wrong.name, "a.b"],
        kind: wrong.name,
        attributes: task.attributes,
        contents: wrong.flag,
        project: task.project,
        types: [null, "TaskAssigned", [], [5], ["taskassigned"], ["TaskAssigned", "x"]],
        signal: wrong.signal,
      },
      (of, given) => of.events(given),
    ),
  },
  status: {
    options: taking<StatusOptions>()<Swarm>(
      {
        ...ask,
        project: task.project,
        rows: [null, 5, [], {}, { table: "x", from: 0 }, { table: "agents", from: -1 }],
      },
      (of, given) => of.status(given),
    ),
  },
  story: {
    options: askForTask((of, given) => of.story("t1", given)),
    args: { id: [wrong.name, (of, given) => of.story(given)] },
  },
  log: {
    options: askForTask((of, given) => of.log("t1", given)),
    args: {
      task: [
        [...wrong.name, { status: {}, attempts: [] }, { status: { task: "t1", project: "p" }, attempts: 1 }],
        (of, given) => of.log(given),
      ],
    },
  },
  health: { options: taking<AskOptions>()<Swarm>(ask, (of, given) => of.health(given)) },
  taskStatus: {
    options: askForTask((of, given) => of.taskStatus("t1", given)),
    args: { id: [wrong.name, (of, given) => of.taskStatus(given)] },
  },
  explain: {
    options: askForTask((of, given) => of.explain("t1", given)),
    args: { id: [wrong.name, (of, given) => of.explain(given)] },
  },
  replayAssignment: {
    options: taking<ReplayOptions>()<Swarm>(
      { ...ask, project: task.project, attempt: wrong.number, onProgress: wrong.callback },
      (of, given) => of.replayAssignment("t1", given),
    ),
    args: { id: [wrong.name, (of, given) => of.replayAssignment(given)] },
  },
  explainSlots: {
    options: taking<SlotWaitOptions>()<Swarm>(
      { ...ask, agent: wrong.name, handle: wrong.text },
      (of, given) => of.explainSlots("gpu", given),
    ),
    args: { resource: [wrong.text, (of, given) => of.explainSlots(given)] },
  },
  settings: {
    options: taking<SettingsOptions>()<Swarm>(
      { ...ask, name: wrong.name, project: task.project },
      (of, given) => of.settings(given),
    ),
  },
  setPolicy: { options: taking<PolicyPatch>()<Swarm>(policy, (of, given) => of.setPolicy(given)) },
  setProject: {
    options: taking<ProjectPatch>()<Swarm>(project, (of, given) => of.setProject("red", given)),
    args: { project: [task.project, (of, given) => of.setProject(given, {})] },
  },
  removeProject: {
    options: askFor((of, given) => of.removeProject("red", given)),
    args: { project: [task.project, (of, given) => of.removeProject(given)] },
  },
  setKind: {
    options: taking<KindPatch>()<Swarm>(
      { importance: wrong.number, cheaper: wrong.name.slice(1), cheaperType: wrong.name.slice(1) },
      (of, given) => of.setKind("count", given),
    ),
    args: { kind: [wrong.name, (of, given) => of.setKind(given, { importance: 2 })] },
  },
  setResource: {
    options: taking<ResourcePatch>()<Swarm>(resource, (of, given) => of.setResource("gpu", given)),
    args: { resource: [wrong.name, (of, given) => of.setResource(given, { slots: 1 })] },
  },
  removeResource: {
    options: askFor((of, given) => of.removeResource("gpu", given)),
    args: { resource: [wrong.name, (of, given) => of.removeResource(given)] },
  },
  setRate: {
    options: taking<RatePatch>()<Swarm>(
      { window: wrong.text, tokensMax: wrong.whole, sliding: wrong.flag },
      (of, given) => of.setRate("sonnet", given),
    ),
    args: { type: [wrong.name, (of, given) => of.setRate(given, { window: "per_day", tokensMax: 1 })] },
  },
  removeRate: {
    options: taking<RemoveRateOptions>()<Swarm>({ ...ask, window: wrong.text }, (of, given) =>
      of.removeRate("sonnet", given),
    ),
    args: { type: [wrong.name, (of, given) => of.removeRate(given)] },
  },
  setGrant: {
    options: taking<Grant>()<Swarm>(
      {
        kinds: wrong.texts,
        roles: wrong.texts,
        types: wrong.texts,
        labels: wrong.texts,
        projects: wrong.texts,
        resources: wrong.texts,
        maxConcurrent: wrong.whole,
        tokens: wrong.whole,
      },
      (of, given) => of.setGrant("gpu", given),
    ),
    args: { group: [[...wrong.name, "a.b"], (of, given) => of.setGrant(given, {})] },
  },
  removeGrant: {
    options: askFor((of, given) => of.removeGrant("gpu", given)),
    args: { group: [[...wrong.name, "a.b"], (of, given) => of.removeGrant(given)] },
  },
  pause: {
    options: askFor((of, given) => of.pause("red", given)),
    args: { project: [task.project, (of, given) => of.pause(given)] },
  },
  resume: {
    options: askFor((of, given) => of.resume("red", given)),
    args: { project: [task.project, (of, given) => of.resume(given)] },
  },
  hold: {
    options: taking<HoldOptions>()<Swarm>(
      { ...ask, forMs: wrong.whole, until: wrong.instant, lengthen: [null, "yes", 1, {}] },
      (of, given) => of.hold({ agent: "a1" }, given),
      { forMs: 1_000 },
    ),
    args: {
      target: [
        [null, 5, {}, { agent: 5 }, { agent: "a", type: "b" }],
        (of, given) => of.hold(given, { forMs: 1_000 }),
      ],
    },
  },
  unhold: {
    options: askFor((of, given) => of.unhold({ type: "claude" }, given)),
    args: { target: [[null, 5, {}, { kind: "k" }], (of, given) => of.unhold(given)] },
  },
  drain: {
    options: askFor((of, given) => of.drain("a1", given)),
    args: { agent: [wrong.name, (of, given) => of.drain(given)] },
  },
  undrain: {
    options: askFor((of, given) => of.undrain("a1", given)),
    args: { agent: [wrong.name, (of, given) => of.undrain(given)] },
  },
  transferLead: {
    options: taking<TransferOptions>()<Swarm>({ ...ask, to: wrong.text }, (of, given) =>
      of.transferLead(given),
    ),
  },
  project: { args: { project: [task.project, (of, given) => of.project(given)] } },
  close: {},
  currentAttempt: {},
};

const waits: Values<WaitOptions> = ask;
const handleCalls: Calls<TaskHandle> = {
  result: { options: taking<WaitOptions>()<TaskHandle>(waits, (of, given) => of.result(given)) },
  outcome: { options: taking<WaitOptions>()<TaskHandle>(waits, (of, given) => of.outcome(given)) },
  chunks: {
    options: taking<ChunksOptions>()<TaskHandle>({ signal: wrong.signal }, (of, given) => of.chunks(given)),
  },
  retry: {
    options: taking<Omit<RetryOptions, "project">>()<TaskHandle>(retry, (of, given) => of.retry(given)),
  },
  cancel: {
    options: taking<Omit<CancelOptions, "project">>()<TaskHandle>(cancel, (of, given) => of.cancel(given)),
  },
};

const askProject = (run: Run<ProjectSwarm>) => taking<AskOptions>()<ProjectSwarm>(ask, run);
const askTaskOfProject = (run: Run<ProjectSwarm>) =>
  taking<TaskOptions>()<ProjectSwarm>({ ...ask, project: [...task.project, "blue"] }, run);
const projectCalls: Calls<ProjectSwarm> = {
  taskStatus: { options: askTaskOfProject((of, given) => of.taskStatus("t1", given)) },
  story: { options: askTaskOfProject((of, given) => of.story("t1", given)) },
  explain: { options: askTaskOfProject((of, given) => of.explain("t1", given)) },
  log: { options: askTaskOfProject((of, given) => of.log("t1", given)) },
  submit: { args: { project: [["blue"], (to, project) => to.submit({ kind: "count", project })] } },
  submitMany: { args: { tasks: [[null, 5, "x", {}], (to, given) => to.submitMany(given)] } },
  task: {
    options: taking<ProjectOptions>()<ProjectSwarm>({ project: [...task.project, "blue"] }, (of, given) =>
      of.task("t1", given),
    ),
    args: { id: [wrong.name, (of, given) => of.task(given)] },
  },
  tasks: { options: taking<TaskListOptions>()<ProjectSwarm>(list, (of, given) => of.tasks(given)) },
  taskPage: { options: taking<TaskListOptions>()<ProjectSwarm>(list, (of, given) => of.taskPage(given)) },
  cancel: {
    options: taking<CancelOptions>()<ProjectSwarm>(
      { ...cancel, project: [...task.project, "blue"] },
      (to, given) => to.cancel("t1", given),
    ),
    args: { tasks: [many, (to, given) => to.cancel(given)] },
  },
  retry: {
    options: taking<RetryOptions>()<ProjectSwarm>(
      { ...retry, project: [...task.project, "blue"] },
      (to, given) => to.retry("t1", given),
    ),
    args: { tasks: [many, (to, given) => to.retry(given)] },
  },
  revoke: {
    options: taking<RevokeOptions>()<ProjectSwarm>(
      { ...revoke, project: [...task.project, "blue"] },
      (to, given) => to.revoke("t1", given),
    ),
    args: { tasks: [many, (to, given) => to.revoke(given)] },
  },
  reschedule: {
    options: taking<RescheduleOptions>()<ProjectSwarm>(
      { ...reschedule, project: [...task.project, "blue"] },
      (to, given) => to.reschedule("t1", given),
      { notBefore: 1 },
    ),
    args: { tasks: [many, (to, given) => to.reschedule(given, { notBefore: 1 })] },
  },
  events: { args: { project: [["blue", null], (of, given) => of.events({ project: given })] } },
  status: { options: askProject((of, given) => of.status(given)) },
  settings: { options: askProject((of, given) => of.settings(given)) },
  set: {
    options: taking<ProjectPatch>()<ProjectSwarm>(project, (of, given) => of.set(given)),
    args: { timeoutMs: [ask.timeoutMs, (of, given) => of.set({}, { timeoutMs: given })] },
  },
  pause: { options: askProject((of, given) => of.pause(given)) },
  resume: { options: askProject((of, given) => of.resume(given)) },
  remove: { options: askProject((of, given) => of.remove(given)) },
};

const functions: Record<"connect" | "execHandler" | "httpHandler", Call<undefined>> = {
  connect: {
    options: taking<ConnectOptions>()<undefined>(
      {
        nats: wrong.texts,
        natsContext: wrong.text,
        credentials: [null, 5, [], { creds: 5 }, { cred: "x" }, { tls: { ca: 5 } }],
        inboxPrefix: wrong.text,
        insecure: wrong.flag,
        codec: [null, 5, "aes", {}, { encode: 5, decode: 5 }],
        swarm: wrong.text,
        project: task.project,
        projectOnly: wrong.flag,
        queriesOnly: wrong.flag,
        user: wrong.name,
        group: wrong.name,
        dataFolder: wrong.text,
        logger: [null, 5, {}, console],
        signal: wrong.signal,
        transport: wrong.object,
        clock: wrong.object,
        random: wrong.object,
      },
      (_, given) => connect(given),
      { nats: "nats://127.0.0.1:1" },
    ),
  },
  execHandler: {
    options: taking<ExecOptions>()<undefined>(
      {
        command: wrong.text,
        cwd: wrong.text,
        env: [null, 5, [], { A: 5 }],
        holdScope: [null, 5, "swarm", {}],
      },
      (_, given) => execHandler(given),
      { command: "true" },
    ),
  },
  httpHandler: {
    options: taking<HttpOptions>()<undefined>(
      { url: wrong.text, headers: [null, 5, [], { a: 5 }], holdScope: [null, 5, "swarm", {}] },
      (_, given) => httpHandler(given),
      { url: "http://127.0.0.1:1" },
    ),
  },
};

async function refusal(run: () => unknown): Promise<WaggleError> {
  try {
    const given = run();
    const isSequence = typeof given === "object" && given !== null && Symbol.asyncIterator in given;
    const awaited: unknown = isSequence
      ? await (given as AsyncIterable<unknown>)[Symbol.asyncIterator]().next()
      : await Promise.resolve(given);
    throw new Error(`accepted, and gave ${String(awaited)}`);
  } catch (error) {
    expect(error, String(error)).toBeInstanceOf(WaggleError);
    expect((error as WaggleError).code).toMatch(/^WAGGLE_INVALID_(MESSAGE|CONFIG)$/);
    return error as WaggleError;
  }
}

async function refusesAll<On>({ options, args = {} }: Call<On>, on: On): Promise<void> {
  for (const [name, [values, run]] of Object.entries(args))
    for (const value of values) {
      const { field, message } = await refusal(() => run(on, value));
      expect(field, message).toMatch(new RegExp(`^${name}`));
      expect(message).toMatch(new RegExp(`(^|: )${name}\\S*: (must|is missing|unknown|there is no)`));
    }
  if (options === undefined) return;
  const { values, run, base } = options;
  for (const [name, each] of Object.entries(values)) {
    for (const value of each) {
      const { field, message } = await refusal(() => run(on, { ...base, [name]: value }));
      expect(field, message).toMatch(new RegExp(`^${name}`));
      expect(message).toMatch(
        new RegExp(`(^|: )${name}\\S*: (must|is missing|is unknown|unknown|there is no|at most)`),
      );
    }
    const misspelt = await refusal(() => run(on, { ...base, [`${name}x`]: each[0] }));
    expect(misspelt).toMatchObject({
      field: `${name}x`,
      message: expect.stringMatching(`did you mean .*${name}`),
    });
  }
  for (const none of [null, 5, "x", [], () => 1])
    expect((await refusal(() => run(on, none))).message).toMatch(/must be an object/);
  const throwing = new Proxy(base, {
    ownKeys: () => {
      throw new Error("a Proxy of the caller");
    },
  });
  expect((await refusal(() => run(on, throwing))).message).toMatch(/cannot be read: a Proxy of the caller/);
}

describe("wrong options and arguments are refused without a request:", () => {
  it.each(Object.entries(swarmCalls))("swarm.%s", async (_, call) => {
    const { swarm, leader } = await aClient();
    leader.start();
    await refusesAll(call, swarm);
    expect(leader.asked).toEqual([]);
  });

  it.each(Object.entries(handleCalls))("handle.%s", async (_, call) => {
    const { swarm, leader } = await aClient();
    leader.start();
    await refusesAll(call, swarm.task("t1"));
    expect(leader.asked).toEqual([]);
  });

  it.each(Object.entries(projectCalls))("project.%s", async (_, call) => {
    const { swarm, leader } = await aClient();
    leader.start();
    await refusesAll(call, swarm.project("red"));
    expect(leader.asked).toEqual([]);
  });

  it.each(Object.entries(functions))("%s", async (_, call) => {
    await refusesAll(call, undefined);
  });

  it("cancel and retry, for each of several tasks and for each condition of a filter", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const calls: readonly Run<Swarm>[] = [(of, given) => of.cancel(given), (of, given) => of.retry(given)];
    const { state, kind, user, agent, olderThanMs } = list;
    const filter = { state, kind, user, agent, olderThanMs, project: task.project };
    for (const call of calls) {
      for (const [name, values] of Object.entries(filter))
        for (const value of values)
          expect((await refusal(() => call(swarm, { [name]: value }))).field).toMatch(new RegExp(`^${name}`));
      for (const one of [
        null,
        5,
        "",
        {},
        { task: 5 },
        { task: "t1", round: 0 },
        { task: "t1", project: "a.b" },
        { id: "t1" },
      ])
        expect((await refusal(() => call(swarm, ["t0", one]))).message).toMatch(/tasks\[1\]/);
      for (const none of [{}, { kind: undefined }, { kinds: "count" }])
        await refusal(() => call(swarm, none));
    }
    expect(leader.asked).toEqual([]);
  });

  it("submit, for its own options", async () => {
    const { swarm, leader } = await aClient();
    const { options } = swarmCalls.submitMany;
    if (options === undefined) throw new Error("it has options");
    await refusesAll(
      { options: { ...options, run: (to, given) => to.submit({ kind: "count" }, given) } },
      swarm,
    );
    expect(leader.asked).toEqual([]);
  });

  it("each set…, for its options", async () => {
    const { swarm } = await aClient();
    const sets: Run<Swarm>[] = [
      (of, given) => of.setPolicy({ alpha: 0 }, given),
      (of, given) => of.setProject("red", {}, given),
      (of, given) => of.setKind("count", { importance: 2 }, given),
      (of, given) => of.setResource("gpu", { slots: 1 }, given),
      (of, given) => of.setRate("sonnet", { window: "per_day", tokensMax: 1 }, given),
    ];
    for (const run of sets) await refusesAll({ options: askFor(run) }, swarm);
  });
});

it("every public call has a row here", () => {
  const names = (prototype: object) =>
    Object.getOwnPropertyNames(prototype).filter(
      (name) =>
        name !== "constructor" &&
        typeof Object.getOwnPropertyDescriptor(prototype, name)?.value === "function",
    );
  const internal = new Set(["watched"]);
  expect(names(SwarmClient.prototype).filter((name) => !(name in swarmCalls))).toEqual([]);
  expect(names(SwarmTask.prototype).filter((name) => !(name in handleCalls) && !internal.has(name))).toEqual(
    [],
  );
});

it("an agent's slots", async () => {
  const slots = new Slots({
    agent: "a1",
    clock: systemClock,
    send: () => expect.unreachable("nothing is asked"),
  });
  await refusesAll(
    { options: taking<AcquireOptions>()<Slots>(acquire, (of, given) => of.acquire("gpu", given)) },
    slots,
  );
  const args = { handle: [wrong.text, (of: Slots, given: Anything) => of.releaseHandle(given)] as const };
  await refusesAll({ args }, slots);
});

describe("a timeout above the system's maximum", () => {
  it.each([Number.POSITIVE_INFINITY, 2 ** 31, 1e15])("waits on: %d ms", async (timeoutMs) => {
    const { swarm, leader } = await aClient({ clock: systemClock });
    leader.start();
    const handle = await swarm.submit({ kind: "count" }, { timeoutMs });
    const waits = [
      watch<unknown>(handle.result({ timeoutMs })),
      watch<unknown>(handle.outcome({ timeoutMs })),
    ];
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(waits.map(({ state }) => state)).toEqual(["pending", "pending"]);
    leader.stop();
    const asked = [
      watch<unknown>(swarm.status({ timeoutMs })),
      watch<unknown>(swarm.cancel("t1", { timeoutMs })),
    ];
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(asked.map(({ state }) => state)).toEqual(["pending", "pending"]);
    await swarm.close();
  });
});

it("values of a task that throw are refused, and the tasks beside it are submitted", async () => {
  const { swarm, leader } = await aClient();
  leader.start();
  const thrower = () => {
    throw new Error("mine");
  };
  const bad: Anything[] = [
    { kind: "count", payload: { toJSON: thrower } },
    { kind: "count", payload: Object.defineProperty({}, "a", { enumerable: true, get: thrower }) },
    { kind: "count", payload: revoked.proxy },
    Object.defineProperty({}, "kind", { enumerable: true, get: thrower }),
    new Proxy({ kind: "count" }, { get: thrower }),
    revoked.proxy,
    null,
  ];
  const outcomes: SubmitOutcome[] = [];
  for await (const outcome of swarm.submitMany([...bad, { kind: "count", id: "good" }]))
    outcomes.push(outcome);
  expect(outcomes.map((outcome) => (outcome.ok ? outcome.handle.id : outcome.error.code))).toEqual([
    ...bad.map(() => "WAGGLE_INVALID_MESSAGE"),
    "good",
  ]);
});
