// Messages after a commit, in order: effects to agents and clients (src/requests/outbox.ts), answers to requests, and
// live events. Live events save followers of the journal polling: one message per batch and subject
// `event.<project or _>.<noun>.<verb>`, without payloads and results, which stand in the journal alone.
// Not here: when a batch counts as committed (commits.ts).

import { type Effect, standingGrants, unconfirmedAssignments } from "../../core/effect.ts";
import type { RecordedEvent } from "../../core/step.ts";
import type { BatchIndex, Instant } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { CoordinatorMetrics } from "../../metrics/coordinator-metrics.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { AttemptTokens } from "../../requests/attempt-tokens.ts";
import type { Commit, InboxEntry } from "../../requests/inbox.ts";
import { Outbox } from "../../requests/outbox.ts";
import type { Presences } from "../../requests/presence.ts";
import type { EventType } from "../../state/event.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Transport } from "../../transport/transport.ts";
import type { HeldBatch } from "./in-flight.ts";
import type { Monitor } from "./monitor.ts";

export interface DispatcherDeps {
  readonly state: SwarmState;
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly presences: Presences;
  readonly monitor: Monitor;
  readonly tokens: AttemptTokens;
  /** Undefined: nothing is counted. */
  readonly metrics: CoordinatorMetrics | undefined;
  readonly answer: (entries: readonly InboxEntry[]) => void;
}

export class Dispatcher {
  readonly outbox: Outbox;
  readonly #deps: DispatcherDeps;
  readonly #publisher: EventPublisher;
  /** As of the committed batches: the state runs ahead. */
  #firstIdx: BatchIndex;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
    this.outbox = new Outbox(deps);
    this.#publisher = new EventPublisher(deps.transport, deps.subjects);
    this.#firstIdx = deps.state.auditFirstIdx;
  }

  /** The first batch readable in the journal. */
  get firstIdx(): BatchIndex {
    return this.#firstIdx;
  }

  /** An entry for the next turn, to repeat messages not confirmed by agents: the previous leader may not have sent
   *  them, or the connection lost them. */
  resend(): InboxEntry {
    let unconfirmed: readonly Effect[] = [];
    return {
      commands: [],
      replies: [],
      look: (state) => {
        unconfirmed = unconfirmedOf(state);
      },
      finish: (commit) => this.outbox.perform(unconfirmed, commit),
    };
  }

  /** Sends all messages of a committed turn. */
  dispatch({ turn, eventsJson, entries, at }: HeldBatch, commit: Commit): void {
    for (const { event } of turn.recorded) if (event.type === "AuditTrimmed") this.#firstIdx = event.firstIdx;
    this.outbox.perform(turn.effects, commit);
    this.#deps.answer(entries);
    this.#publisher.publish({ recorded: turn.recorded, eventsJson, at }, commit);
    this.#deps.monitor.committed(turn.recorded);
    this.#deps.metrics?.committed(turn.recorded);
  }
}

function unconfirmedOf(state: SwarmState): readonly Effect[] {
  return [...unconfirmedAssignments(state), ...standingGrants(state)];
}

/** A part of the batch's JSON: the first byte, and the byte after the last. */
interface Part {
  readonly from: number;
  to: number;
}

/** Events of one type and project, side by side in a batch. */
interface Run {
  readonly type: EventType;
  readonly project: string;
  /** Their JSON, without contents. */
  readonly parts: [Part, ...Part[]];
}

class EventPublisher {
  readonly #transport: Transport;
  readonly #subjects: Subjects;
  readonly #namesByType = new Map<EventType, { readonly noun: string; readonly verb: string }>();
  /** By subject: the last batch in the term, oldest first. Lets followers detect gaps. */
  readonly #lastIdxBySubject = new Map<string, number>();

  constructor(transport: Transport, subjects: Subjects) {
    this.#transport = transport;
    this.#subjects = subjects;
  }

  /** Copies the events' JSON out of their batch. */
  publish(
    {
      recorded,
      eventsJson,
      at,
    }: {
      readonly recorded: readonly RecordedEvent[];
      readonly eventsJson: Uint8Array;
      readonly at: Instant;
    },
    commit: Commit,
  ): void {
    const runsBySubject = new Map<string, Uint8Array[]>();
    for (const { type, project, parts } of runsOf(recorded)) {
      const subject = this.#subjectOf(type, project);
      const json = parts.map(({ from, to }) => eventsJson.subarray(from, to));
      const runs = runsBySubject.get(subject);
      if (runs === undefined) runsBySubject.set(subject, json);
      else runs.push(COMMA, ...json);
    }
    for (const [subject, runs] of runsBySubject) {
      const prevIdx = this.#lastIdxBySubject.get(subject) ?? 0;
      this.#remember(subject, commit.idx);
      const head = `{"term":${commit.term},"idx":${commit.idx},"prevIdx":${prevIdx},"at":${at},"events":[`;
      this.#transport.publish(subject, Buffer.concat([Buffer.from(head), ...runs, END]));
    }
  }

  #remember(subject: string, idx: BatchIndex): void {
    this.#lastIdxBySubject.delete(subject);
    this.#lastIdxBySubject.set(subject, idx);
    const oldest = this.#lastIdxBySubject.keys().next();
    if (this.#lastIdxBySubject.size > limits.eventSubjectsMax && oldest.done === false) {
      this.#lastIdxBySubject.delete(oldest.value);
    }
  }

  #subjectOf(type: EventType, project: string): string {
    const known = this.#namesByType.get(type);
    const { noun, verb } = known ?? nounAndVerb(type);
    if (known === undefined) this.#namesByType.set(type, { noun, verb });
    return this.#subjects.event(project, noun, verb);
  }
}

const COMMA = Buffer.from(",");
const END = Buffer.from("]}");

function runsOf(recorded: readonly RecordedEvent[]): readonly Run[] {
  const runs: Run[] = [];
  let run: Run | undefined;
  for (const { event, project, from, to, contentsFrom, contentsTo } of recorded) {
    let part: Part | undefined;
    if (run !== undefined && run.type === event.type && run.project === project) part = run.parts.at(-1);
    else {
      part = { from, to };
      run = { type: event.type, project, parts: [part] };
      runs.push(run);
    }
    if (part === undefined || contentsTo === 0) {
      if (part !== undefined) part.to = to;
      continue;
    }
    part.to = contentsFrom;
    run.parts.push({ from: contentsTo, to });
  }
  return runs;
}

/** `TaskDeadLettered` → `task.dead-lettered`. */
export function nounAndVerb(type: EventType): { readonly noun: string; readonly verb: string } {
  const [noun = "", ...verb] = type.split(/(?=[A-Z])/).map((word) => word.toLowerCase());
  return { noun, verb: verb.join("-") };
}
