// From the options of `swarm.events()` to a stream: where it begins, and which events pass.

import type { Aborts } from "../abort.ts";
import { matches } from "../audit/filter.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import type { Event } from "../core/event.ts";
import { type EventFeedDeps, readBatches } from "./event-feed.ts";
import { EventStream, type EventsOptions } from "./event-stream.ts";
import type { PageStart } from "./journal-pages.ts";
import type { TaskProjects } from "./task-projects.ts";

export interface EventSourceDeps extends EventFeedDeps {
  readonly projects: TaskProjects;
  /** Aborts when the connection is closed. */
  readonly closed: AbortSignal;
  readonly aborts: Aborts;
  /** The newest batch some coordinator knows. @throws NoLeaderError, UnreachableError */
  presentIdx(signal: AbortSignal): Promise<number>;
}

export function openEventStream(deps: EventSourceDeps, options: EventsOptions): EventStream {
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
): AsyncGenerator<JournaledEvent> {
  const start = await startOf(deps, options, signal);
  if (start === undefined) return;
  for await (const batch of readBatches(deps, { start, follow: options.follow ?? false, signal })) {
    const { idx, term, at } = batch;
    for (const event of batch.events as unknown as readonly Event[]) {
      if (await passes(deps, options, event)) yield { idx, term, at, event };
    }
  }
}

/** Undefined when aborted meanwhile. */
async function startOf(
  deps: EventSourceDeps,
  options: EventsOptions,
  signal: AbortSignal,
): Promise<PageStart | undefined> {
  const { from = options.follow === true ? undefined : "start" } = options;
  if (from === "start") return { since: 0 };
  if (typeof from === "number") return { from: Math.max(1, from) };
  if (from instanceof Date) return { since: from.getTime() };
  try {
    return { from: (await deps.presentIdx(signal)) + 1 };
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

async function passes({ projects }: EventSourceDeps, options: EventsOptions, event: Event): Promise<boolean> {
  if (options.project === undefined) return matches(event, options);
  projects.learn(event);
  return matches(event, options) && (await projects.projectOf(event)) === options.project;
}
