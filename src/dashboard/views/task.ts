// The page of one task: waits and attempts as bars, the receipt of each attempt, and the reason why the task waits.
// Payload and result are read only on request (contents.ts).

import { describeReceipt } from "../../audit/describe.ts";
import { describeObstacle, describeWait } from "../../audit/describe-wait.ts";
import type { AttemptStory, StoryLine } from "../../audit/story.ts";
import type { AcceptedTaskStatus } from "../../client/task-stories.ts";
import { defined } from "../../defined.ts";
import { limits } from "../../limits.ts";
import type { TaskWait } from "../../protocol/explain-schemas.ts";
import { needsText } from "../../state/needs.ts";
import { taskCommand } from "../command-text.ts";
import type {
  ActionVerb,
  AttemptView,
  PlaceView,
  TaskDetail,
  TaskState,
  WaitView,
  WaterfallBar,
} from "../wire.ts";

export interface TaskFacts {
  readonly status: AcceptedTaskStatus;
  readonly line: StoryLine;
  /** Present while it waits. */
  readonly wait: TaskWait | undefined;
  /** Journal time, or later. */
  readonly nowAt: number;
  /** Verbs that the swarm knows. */
  readonly verbs: readonly ActionVerb[];
  /** `line` is empty: the journal is still read. */
  readonly isReading: boolean;
}

const liveStates: ReadonlySet<string> = new Set(["queued", "delayed", "assigned", "running"]);
const retryableStates: ReadonlySet<string> = new Set(["failed", "cancelled", "expired", "dead-lettered"]);

export function taskView({ status, line, wait, nowAt, verbs, isReading }: TaskFacts): TaskDetail {
  const { task, project, user, kind, round } = status;
  const state = (line.state ?? status.state) as TaskState;
  const attempts = Math.max(status.attempts, line.attempts.at(-1)?.attempt ?? 0);
  const agent = line.attempts.at(-1)?.agent ?? status.agent;
  const beganAt = isReading && wait !== undefined ? status.at - wait.ageMs : status.at;
  const sinceAt = line.endedAt ?? line.retriedAt ?? line.submittedAt ?? beganAt;
  const name = { task, project, user, kind, state, round: line.round ?? round, attempts };
  const ref = { task, project };
  const isOpen = state === "assigned" || state === "running";
  const can = {
    cancel: liveStates.has(state),
    retry: retryableStates.has(state),
    revoke: isOpen && verbs.includes("revoke"),
    reschedule: (state === "queued" || state === "delayed") && verbs.includes("reschedule"),
  };
  return {
    task: { ...name, ...defined({ agent }), sinceAt, ageMs: Math.max(0, nowAt - sinceAt) },
    ...(line.spec === undefined ? {} : { spec: specOf(line.spec) }),
    ...defined({ submittedAt: line.submittedAt, endedAt: line.endedAt }),
    nowAt,
    waterfall: waterfallOf(line),
    attempts: line.attempts.map(attemptView),
    attemptsOmitted: isReading ? 0 : Math.max(0, attempts - line.attempts.length),
    isReading,
    ...(wait === undefined || !(state === "queued" || state === "delayed") ? {} : { wait: waitView(wait) }),
    ...defined({ deadLetterReason: line.deadLetterReason }),
    can,
    commands: {
      show: taskCommand("task", ref),
      explain: taskCommand("explain", ref),
      events: eventsCommand(ref),
      ...(can.cancel ? { cancel: taskCommand("cancel", ref) } : {}),
      ...(can.retry ? { retry: taskCommand("retry", ref) } : {}),
      ...(can.revoke ? { revoke: taskCommand("revoke", ref) } : {}),
      ...(can.reschedule ? { reschedule: taskCommand("reschedule", ref, "--not-before", "+10m") } : {}),
    },
  };
}

function eventsCommand({ task, project }: { readonly task: string; readonly project: string }): string {
  return taskCommand("events", { task: "", project }, "--task", task).replace(" ''", "");
}

function specOf(spec: NonNullable<StoryLine["spec"]>): NonNullable<TaskDetail["spec"]> {
  const { role, weight, priority, tokens, deadline, notBefore, maxAttempts, timeoutMs, stallMs } = spec;
  const { payload, encoding, affinity, attributes } = spec;
  const needs = spec.needs === undefined ? undefined : needsText(spec.needs);
  return {
    ...defined({
      role,
      needs,
      affinity,
      attributes,
      tokens,
      deadlineAt: deadline,
      notBeforeAt: notBefore,
      stallMs,
      encoding,
    }),
    ...{ weight, priority, maxAttempts, timeoutMs },
    payloadBytes: sizeOf(payload, encoding),
  };
}

/** Size of the content in bytes, decoded: base64 is a third longer. */
export function sizeOf(text: string, encoding: "base64" | undefined): number {
  return encoding === undefined ? Buffer.byteLength(text) : Buffer.byteLength(text, "base64");
}

function waterfallOf(line: StoryLine): readonly WaterfallBar[] {
  const roundAt = (at: number) =>
    line.retriedAt !== undefined && at >= line.retriedAt ? (line.round ?? 1) : 1;
  const waits = line.waits.map(({ state, from, to }): WaterfallBar => {
    return { what: state, round: roundAt(from), fromAt: from, ...defined({ toAt: to }) };
  });
  return [...waits, ...line.attempts.flatMap(attemptBars)].sort((one, other) => one.fromAt - other.fromAt);
}

/** An agent confirms with its next heartbeat, when a short attempt is over: the run begins by its reported length. */
function attemptBars(attempt: AttemptStory): WaterfallBar[] {
  const { assignedAt, runningAt, endedAt, ended, latencyMs, agent, holdsCapacity, round = 1 } = attempt;
  const of = { round, attempt: attempt.attempt, agent };
  if (runningAt === undefined && endedAt === undefined)
    return [{ what: "starting", ...of, fromAt: assignedAt }];
  const isMeasured = endedAt !== undefined && latencyMs !== undefined;
  const begunAt = isMeasured ? Math.max(assignedAt, endedAt - latencyMs) : assignedAt;
  const bars: WaterfallBar[] = [];
  if (begunAt > assignedAt) bars.push({ what: "starting", ...of, fromAt: assignedAt, toAt: begunAt });
  bars.push({ what: "running", ...of, fromAt: begunAt, ...defined({ toAt: endedAt, ended }) });
  if (holdsCapacity === true && endedAt !== undefined) bars.push({ what: "held", ...of, fromAt: endedAt });
  return bars;
}

function attemptView(attempt: AttemptStory): AttemptView {
  const { runsAs, runningAt, endedAt, ended, error, latencyMs, tokens, tokensReserved, tokensCharged } =
    attempt;
  const { feasible, candidates, ineligible, decidedBy, queue, waiting, waitedMs, turn } = attempt.receipt;
  return {
    ...{ attempt: attempt.attempt, round: attempt.round ?? 1, agent: attempt.agent },
    ...{ assignedAt: attempt.assignedAt, assignedIdx: attempt.assignedIdx },
    ...defined({
      runsAs,
      runningAt,
      endedAt,
      ended,
      error,
      latencyMs,
      tokens,
      tokensReserved,
      tokensCharged,
    }),
    holdsCapacity: attempt.holdsCapacity === true,
    why: describeReceipt(attempt.receipt),
    receipt: {
      ...{ candidates, feasible, ineligible, decidedBy, queue, waiting, waitedMs },
      ...defined({ turn }),
    },
  };
}

/** Eligible agents first, then agents that serve the kind. */
function waitView(wait: TaskWait): WaitView {
  const rankOf = ({ standing, servesKind }: TaskWait["agents"][number]) =>
    standing === "feasible" ? 0 : standing === "probe" ? 1 : servesKind ? 2 : 3;
  const agents = [...wait.agents].sort((one, other) => rankOf(one) - rankOf(other));
  const { position } = wait;
  return {
    sentence: describeWait(wait),
    obstacles: wait.obstacles.map((obstacle) => ({
      reason: obstacle.reason,
      sentence: describeObstacle(obstacle, wait),
    })),
    ageMs: Math.round(wait.ageMs),
    ...(position === undefined
      ? {}
      : {
          position: {
            project: placeView(position.project),
            user: placeView(position.user),
            task: placeView(position.task),
            waiting: position.waiting,
            ...defined({ next: position.next }),
          },
        }),
    agents: standingViews(agents),
  };
}

/** As many agents as are shown. */
export function standingViews(agents: readonly TaskWait["agents"][number][]): WaitView["agents"] {
  return agents
    .slice(0, limits.dashboardCandidatesShown)
    .map(({ agent, standing, servesKind, capacity, free, until, terms }) => ({
      ...{ agent, standing, servesKind, capacity, free },
      ...defined({ untilAt: until, score: terms?.score }),
    }));
}

type Place = NonNullable<TaskWait["position"]>["task"];

function placeView({ place, of, waited, starvationLimit }: Place): PlaceView {
  return { place, of, waited, ...defined({ starvationLimit }) };
}
