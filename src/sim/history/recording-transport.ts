// The recorder of histories: a transport around any transport of a client or an agent. It records, per item, the
// owner's requests and the answers, and changes no message. Slots, joins and settings are not recorded: the journal
// alone is checked for them.

import { type SwarmId, taskKey } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { decode, parseJson } from "../../protocol/codec.ts";
import type { JournalPoint } from "../../protocol/journal-point.ts";
import {
  type Assignment,
  acceptedTaskSchema,
  agentPushSchema,
  codedErrorSchema,
  donePushSchema,
  outcomeSchema,
} from "../../protocol/schemas.ts";
import { isInbox, swarmPrefix } from "../../protocol/subjects.ts";
import type {
  ConnectionStatus,
  Forbidden,
  Message,
  RequestOptions,
  RequestOutcome,
  SubscribeOptions,
  Subscription,
  Transport,
} from "../../transport/transport.ts";
import type { AskedObservation, Observation, ResultObserved } from "./observation.ts";

export interface Recorder {
  /** Names the owner, for people. */
  readonly node: string;
  readonly swarm: SwarmId;
  /** ms of the history's monotonic clock. */
  readonly now: () => number;
  readonly record: (observation: Observation) => void;
}

/** Codes of refusals after which the outcome stays unknown. */
const unknownCodes: ReadonlySet<string> = new Set([
  "WAGGLE_NO_LEADER",
  "WAGGLE_OUTCOME_UNKNOWN",
  "WAGGLE_UNREACHABLE",
]);

export class RecordingTransport implements Transport {
  readonly #inner: Transport;
  readonly #recorder: Recorder;
  readonly #prefix: string;

  constructor(inner: Transport, recorder: Recorder) {
    this.#inner = inner;
    this.#recorder = recorder;
    this.#prefix = `${swarmPrefix(recorder.swarm)}.`;
  }

  get inboxPrefix(): string {
    return this.#inner.inboxPrefix;
  }

  get maxPayloadBytes(): number {
    return this.#inner.maxPayloadBytes;
  }

  publish(subject: string, payload: Uint8Array, reply?: string): void {
    this.#inner.publish(subject, payload, reply);
  }

  async request(
    subject: string,
    payload: Uint8Array,
    options: RequestOptions,
  ): Promise<RequestOutcome | Forbidden> {
    const { now, node, record } = this.#recorder;
    const asked = this.#askedIn(subject, payload, { node, sentMs: now() });
    const outcome = await this.#inner.request(subject, payload, options);
    if (outcome.kind === "forbidden") return outcome;
    for (const observed of asked.length === 0 ? [] : answered(asked, outcome, now())) record(observed);
    return outcome;
  }

  /** Records a copy of a request made by the network, always without an answer. */
  noteCopy(subject: string, payload: Uint8Array): void {
    const { now, node, record } = this.#recorder;
    const head = { node, sentMs: now(), isCopy: true as const };
    for (const observed of this.#askedIn(subject, payload, head)) record(observed);
  }

  subscribe(subject: string, handler: (message: Message) => void, options?: SubscribeOptions): Subscription {
    const noting = (message: Message) => {
      this.#note(message);
      handler(message);
    };
    return this.#inner.subscribe(subject, noting, options);
  }

  onStatus(listener: (status: ConnectionStatus) => void): () => void {
    return this.#inner.onStatus(listener);
  }

  status(): ConnectionStatus {
    return this.#inner.status();
  }

  flush(): Promise<void> {
    return this.#inner.flush();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Makes an observation per item, still without an answer. */
  #askedIn(subject: string, payload: Uint8Array, head: Head): AskedObservation[] {
    if (!subject.startsWith(this.#prefix)) return [];
    const [side = "", node = "", verb = "", what = ""] = subject.slice(this.#prefix.length).split(".");
    if (side !== "project" && (side !== "agent" || what !== "result")) return []; // heartbeats, above all
    const parsed = parseJson(payload);
    const message = parsed.ok ? asRecord(parsed.value) : {};
    if (side === "project" && verb === "query")
      return what === "task" ? [{ ...head, kind: "query", task: keyOf(node, message["task"]) }] : [];
    return side === "project" ? projectItems(verb, node, message, head) : resultItems(verb, message, head); // agent.<group>.<id>.result
  }

  /** Records assignments and notifications of outcomes. */
  #note({ subject, data }: Message): void {
    const isAssign = subject.endsWith(".assign") && subject.startsWith(`${this.#prefix}agent.`);
    const isDone = subject.endsWith(".done") && isInbox(subject);
    if (!isAssign && !isDone) return;
    const { now, node, record } = this.#recorder;
    const head = { node, heardMs: now() };
    if (isDone) {
      const push = decode(data, donePushSchema);
      if (!push.ok) return;
      const { term, idx, ended } = push.value;
      for (const outcome of ended) record({ ...head, kind: "notified", at: { term, idx }, outcome });
      return;
    }
    const push = decode(data, agentPushSchema);
    if (!push.ok || push.value.type !== "assign") return;
    const { term, others = [], ...first } = push.value;
    const speaker = subject.slice(this.#prefix.length).split(".")[2] ?? "";
    for (const { agent = speaker, incarnation, assignments } of [first, ...others])
      for (const { project, task, attempt, number, token } of assignments as readonly Assignment[])
        record({
          ...head,
          ...{ kind: "assigned", term, agent, incarnation },
          ...{ task: keyOf(project, task), attempt, number, token },
        });
  }
}

interface Head {
  readonly node: string;
  readonly sentMs: number;
  readonly isCopy?: true;
}

function projectItems(
  verb: string,
  project: string,
  message: Record<string, unknown>,
  head: Head,
): AskedObservation[] {
  const items = Array.isArray(message["tasks"]) ? message["tasks"].slice(0, limits.itemsPerMessageMax) : [];
  switch (verb) {
    case "submit":
      return items.map((item: unknown) => {
        const content = asRecord(item);
        return { ...head, kind: "submit", project, task: keyOf(project, content["id"] ?? ""), content };
      });
    case "await":
      return items.map((task: unknown) => ({ ...head, kind: "await", project, task: keyOf(project, task) }));
    case "cancel":
    case "retry":
      return items.map((item: unknown) => {
        const { task, round } = asRecord(item);
        return { ...head, kind: verb, project, task: keyOf(project, task), round: Number(round) };
      });
    default:
      return [];
  }
}

/** @param speaker the id in the subject */
function resultItems(speaker: string, message: Record<string, unknown>, head: Head): AskedObservation[] {
  const agent = String(message["agent"] ?? speaker);
  return [message, ...listOf(message["others"]).map(asRecord)].flatMap((part) =>
    resultItemsOf(String(part["agent"] ?? agent), part, head),
  );
}

function resultItemsOf(agent: string, message: Record<string, unknown>, head: Head): AskedObservation[] {
  const items = listOf(message["results"]);
  const incarnation = String(message["incarnation"]);
  return items.map((item) => {
    const { project, task, attempt, token, outcome, result } = asRecord(item);
    return {
      ...head,
      kind: "result",
      agent,
      incarnation,
      task: keyOf(project, task),
      attempt: Number(attempt),
      token: String(token),
      outcome: outcome as ResultObserved["outcome"],
      ...(result === undefined ? {} : { result: String(result) }),
    };
  });
}

function answered(
  asked: readonly AskedObservation[],
  outcome: RequestOutcome,
  heardMs: number,
): readonly AskedObservation[] {
  if (outcome.kind === "no-responders")
    return asked.map((observed) => ({ ...observed, heardMs, refused: "no-responders" }));
  if (outcome.kind !== "answered") return asked;
  const parsed = parseJson(outcome.data);
  if (!parsed.ok) return asked;
  const message = asRecord(parsed.value);
  const { term, idx } = message;
  const at = typeof term === "number" && typeof idx === "number" ? { term, idx } : undefined;
  // Each agent of a connection has its part of the answers.
  const parts = [message, ...listOf(message["others"]).map(asRecord)];
  const answers = Array.isArray(message["answers"])
    ? parts.flatMap((part) => listOf(part["answers"]))
    : undefined;
  return asked.map((observed, place) =>
    withAnswer(observed, answers === undefined ? message : answers[place], { heardMs, at }),
  );
}

function withAnswer(
  observed: AskedObservation,
  answer: unknown,
  { heardMs, at }: { readonly heardMs: number; readonly at: JournalPoint | undefined },
): AskedObservation {
  if (answer === undefined) return observed;
  const heard = { heardMs, ...(at === undefined ? {} : { at }) };
  const error = codedErrorSchema.safeParse(answer);
  const code = error.success ? error.data.code : undefined;
  if (code !== undefined && unknownCodes.has(code)) return observed;
  const said = { ...observed, ...heard };
  if (code === "WAGGLE_UNKNOWN_TASK" && said.kind !== "submit" && said.kind !== "result")
    return { ...said, answer: "unknown-task" };
  if (code === "WAGGLE_CONFLICT" && said.kind === "submit") return { ...said, answer: "conflict" };
  if (code === "WAGGLE_CONFLICT" && (said.kind === "cancel" || said.kind === "retry"))
    return { ...said, answer: "conflict" };
  if (code === "WAGGLE_STALE_TOKEN" && said.kind === "result") return { ...said, answer: "stale-token" };
  return code === undefined ? definite(said, answer) : { ...said, refused: code };
}

function definite(said: AskedObservation, answer: unknown): AskedObservation {
  const { duplicate, task, outcome, state: endedAs, status } = asRecord(answer);
  switch (said.kind) {
    case "submit":
      return {
        ...said,
        task: keyOf(said.project, task),
        answer: duplicate === true ? "duplicate" : "accepted",
      };
    case "cancel":
      return { ...said, answer: endedAs === "cancelled" ? "cancelled" : "ended" };
    case "retry":
      return { ...said, answer: "retried" };
    case "await": {
      const ended = outcomeSchema.safeParse(outcome);
      return { ...said, answer: ended.success ? ended.data : "live" };
    }
    case "query": {
      const found = acceptedTaskSchema.safeParse(answer);
      if (!found.success) return said;
      const { project, task: id, state, round, attempts, submittedIdx, endedIdx, agent, stale } = found.data;
      const more = {
        ...(endedIdx === undefined ? {} : { endedIdx }),
        ...(agent === undefined ? {} : { agent }),
      };
      const isStale = stale === true ? { stale } : {};
      // For a query over the whole swarm, only the answer names the project.
      const named = { task: keyOf(project, id) };
      return { ...said, ...named, ...isStale, answer: { state, round, attempts, submittedIdx, ...more } };
    }
    case "result":
      return { ...said, answer: status as "ok" | "stale" | "gone" };
  }
}

/** The name of a task in observations: ids belong to their project. */
function keyOf(project: unknown, task: unknown): string {
  return taskKey({ project: String(project), task: String(task) });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
