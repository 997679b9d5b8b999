// The swarm's events in a coordinator's log: joining and leaving agents, refusals, and every few seconds counts of
// submitted and ended tasks. Read from the live audit stream. Events of single tasks are left out: a swarm may have
// thousands per second, and `waggle events` prints them.

import type { z } from "zod";
import { describe } from "../audit/describe.ts";
import { formatCount } from "../count-text.ts";
import { NO_PROJECT, swarmId } from "../ids.ts";
import { limits } from "../limits.ts";
import { decode, encode } from "../protocol/codec.ts";
import {
  eventPushSchema,
  type StatusResponse,
  type statusQuerySchema,
  statusResponseSchema,
} from "../protocol/schemas.ts";
import { subjectsOf } from "../protocol/subjects.ts";
import type { Event } from "../state/event.ts";
import type { Message } from "../transport/transport.ts";
import type { RunningCoordinator } from "./run-coordinator.ts";
import type { VerbContext } from "./verb.ts";

/** Returns a function to stop the log. */
export function reportActivity(
  { transport }: RunningCoordinator,
  { logger, settings }: VerbContext,
): () => void {
  const subjects = subjectsOf(swarmId(settings.swarm));
  const logEvents = ({ data }: Message) => {
    const push = decode(data, eventPushSchema);
    if (!push.ok) return; // of an unknown protocol; the journal has all events
    for (const event of push.value.events as unknown as readonly Event[]) {
      const level = isTrouble(event) ? "warn" : "info";
      logger[level]({ event: event.type, idx: push.value.idx }, describe(event));
    }
  };
  const subscriptions = [subjects.event("*", "agent", "*"), subjects.event("*", "tasks", "refused")].map(
    (subject) => transport.subscribe(subject, logEvents),
  );

  let before = "";
  const countTasks = async () => {
    const asked = await transport.request(subjects.query(NO_PROJECT, "status"), encode(countsOnly), {
      timeoutMs: limits.requestTimeoutMs,
    });
    const status = asked.kind === "answered" ? decode(asked.data, statusResponseSchema) : undefined;
    if (status?.ok !== true || status.value.stale === true) return; // a standby has no counts
    const now = tasksText(status.value);
    if (now !== before && before !== "") logger.info({ tasks: status.value.tasks }, now);
    before = now;
  };
  const timer = setInterval(() => void countTasks(), limits.activityMs); // a failed request is repeated
  return () => {
    clearInterval(timer);
    for (const subscription of subscriptions) subscription.unsubscribe();
  };
}

/** The counts, and of the tables only the shortest: rows of thousands of agents would fill the answer. */
const countsOnly: z.input<typeof statusQuerySchema> = { v: 1, rows: { table: "rates", from: 0 } };

function isTrouble(event: Event): boolean {
  return troubles.has(event.type) || (event.type === "AgentLeft" && event.reason !== "left");
}

const troubles: ReadonlySet<string> = new Set([
  "AgentFoundAhead",
  "AgentUnresponsive",
  "AgentSuspended",
  "HoldPlaced",
  "BudgetExceeded",
  "TasksRefused",
]);

function tasksText({ tasks }: StatusResponse): string {
  const parts = Object.entries(tasks).filter(([, count]) => count > 0);
  return parts.length === 0
    ? "no tasks"
    : parts.map(([state, count]) => `${formatCount(count)} ${state}`).join(" · ");
}
