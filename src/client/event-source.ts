// Turns the options of `swarm.events()` into a stream: its beginning, and the filter of its events.

import * as z from "zod";
import type { Aborts } from "../abort.ts";
import { abortSignal, flag, readerOf } from "../agent/options.ts";
import { withoutContents } from "../audit/contents.ts";
import { unknownEventType } from "../audit/event-types.ts";
import { eventFilter } from "../audit/filter.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { timeIn } from "../config/time.ts";
import { InvalidMessageError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import { agentIdSchema, attributesSchema, kindSchema, taskIdSchema } from "../protocol/schemas.ts";
import { shown } from "../protocol/sentence.ts";
import type { Event } from "../state/event.ts";
import { type EventFeedDeps, readBatches } from "./event-feed.ts";
import { EventStream, type EventsOptions } from "./event-stream.ts";
import type { JournalBatch, PageStart } from "./journal-pages.ts";
import { projectIn, type Scope } from "./scope.ts";
import { projectName } from "./task-request.ts";

const eventType = z.string().superRefine((type, { issues }) => {
  const message = unknownEventType(type);
  if (message !== undefined) issues.push({ code: "custom", input: type, message });
});

const beginning: z.ZodType<number | Date | string> = z.unknown().transform((given, { issues }) => {
  const from = beginningOf(given);
  if (from !== undefined) return from;
  const message =
    "must be a batch index from 1, a time as a Date or as text (2026-11-20T18:00:00Z, or 10m before now), " +
    `"start" or "now", not ${shown(given)}`;
  issues.push({ code: "custom", input: given, message });
  return z.NEVER;
});

function beginningOf(given: unknown): number | Date | string | undefined {
  if (typeof given === "number") return Number.isSafeInteger(given) && given >= 1 ? given : undefined;
  if (given instanceof Date) return Number.isNaN(given.getTime()) ? undefined : given;
  if (typeof given !== "string") return undefined;
  if (given === "start" || given === "now") return given;
  return timeIn(given, Date.now()) ?? timeIn(`-${given}`, Date.now());
}

const readOptions = readerOf<EventsOptions>({
  each: {
    from: beginning,
    follow: flag,
    task: taskIdSchema,
    agent: agentIdSchema,
    kind: kindSchema,
    attributes: attributesSchema,
    contents: flag,
    project: projectName,
    types: z.array(eventType).min(1),
    signal: abortSignal,
  },
  otherwise: { since: "from", after: "from" },
  example: '{ types: ["TaskAssigned"] }',
});

export interface EventSourceDeps extends EventFeedDeps {
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  readonly aborts: Aborts;
  /** The newest batch that some coordinator knows. @throws NoLeaderError, UnreachableError */
  presentIdx(project: string, signal: AbortSignal): Promise<number>;
  /** The newest batch by the leader; undefined while no leader answers. */
  leaderIdx(project: string, signal: AbortSignal): Promise<number | undefined>;
}

/** The overloads of `events` say which streams have contents. @throws InvalidMessageError naming the option */
export function openEventStream(
  deps: EventSourceDeps,
  given: EventsOptions | undefined,
  scope?: Scope,
): EventStream<Event> {
  const read = readOptions("events", given);
  const options = scope === undefined ? read : { ...read, project: projectIn(scope, read.project) };
  const { closed, aborts } = deps;
  return new EventStream({
    read: (signal) => readEvents(deps, options, signal),
    signal: options.signal,
    closed,
    aborts,
  });
}

async function* readEvents(
  deps: EventSourceDeps,
  options: EventsOptions,
  signal: AbortSignal,
): AsyncGenerator<JournaledEvent<Event>> {
  const start = await startOf(deps, options, signal);
  if (start === undefined) return;
  const { project = NO_PROJECT, follow = false, contents = false } = options;
  const isWanted = eventFilter(options);
  const onBeyondEnd = (from: number) => requireInJournal(deps, { project, from }, signal);
  for await (const batch of readBatches(deps, { project, start, contents, follow, onBeyondEnd, signal }))
    for (const journaled of journaledIn(batch))
      if (isWanted(journaled.event))
        yield contents ? journaled : { ...journaled, event: withoutContents(journaled.event) as Event };
}

/** A standby may lag, so only the leader says where the journal ends. @throws InvalidMessageError beyond the end */
async function requireInJournal(
  deps: EventSourceDeps,
  { project, from }: { readonly project: string; readonly from: number },
  signal: AbortSignal,
): Promise<void> {
  const last = await deps.leaderIdx(project, signal);
  if (last === undefined || from <= last + 1) return;
  const sentence = `events: from: batch ${from} does not exist yet: the journal ends at batch ${last}. For new events: { follow: true } without from`;
  throw new InvalidMessageError(sentence, { field: "from" });
}

/** All events visible to a project, from a batch on and as they come, including confirmed assignments. Ends
 *  without an error when `signal` aborts, or the connection is closed. */
export async function* followProject(
  deps: EventSourceDeps,
  { project, from }: { readonly project: string; readonly from: number },
  signal: AbortSignal,
): AsyncGenerator<JournaledEvent<Event>> {
  const ended = deps.aborts.linkedTo(signal, deps.closed);
  try {
    const options = { project, start: { from }, contents: true, follow: true, signal: ended.signal };
    for await (const batch of readBatches(deps, options)) yield* journaledIn(batch);
  } finally {
    ended.abort();
  }
}

/** The events of a batch, each with the batch's position. */
export function journaledIn({
  idx,
  term,
  at,
  events,
  isChanged,
}: JournalBatch): readonly JournaledEvent<Event>[] {
  const place = isChanged === undefined ? { idx, term, at } : { idx, term, at, isChanged };
  return (events as unknown as readonly Event[]).map((event) => ({ ...place, event }));
}

/** Undefined when aborted meanwhile. */
async function startOf(
  deps: EventSourceDeps,
  options: EventsOptions,
  signal: AbortSignal,
): Promise<PageStart | undefined> {
  const { from = options.follow === true ? "now" : "start" } = options;
  if (from === "start") return { since: 0 };
  if (typeof from === "number") return { from };
  if (from instanceof Date) return { since: from.getTime() };
  try {
    return { from: (await deps.presentIdx(options.project ?? NO_PROJECT, signal)) + 1 };
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}
