// Compares answers about tasks with the order of the journal. Each answer must have been true at some moment: not
// before the newest batch known when the request left, not after the batch that the answer names.
//
// The lower bound keeps the order of real time, so the check is linearizability per task of submit, cancel, retry,
// result, await and query (P5; Herlihy and Wing, "Linearizability", 1990, section 2).

import { unreachable } from "../../assert.ts";
import { taskKey } from "../../ids.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import { digestOf } from "../../result-digest.ts";
import type { Event, EventOf } from "../../state/event.ts";
import type { LiveTaskState } from "../../state/state.ts";
import type { KnownWhenSent } from "./check-positions.ts";
import type { AttemptHistory, CommittedLog, TaskHistory, TaskStretch } from "./committed-log.ts";
import type {
  AwaitObserved,
  CancelObserved,
  Observation,
  QueryObserved,
  ResultObserved,
  RetryObserved,
} from "./observation.ts";
import { type Violation, violation } from "./violation.ts";

/** The moments at which an answer may have been true: after batch `from`, up to the end of batch `to`. */
interface Moments {
  readonly from: number;
  readonly to: number;
}

export function checkAnswers(
  observations: readonly Observation[],
  log: CommittedLog,
  known: KnownWhenSent,
): Violation[] {
  return observations.flatMap((observed) => {
    const wrong = wrongAnswer(observed, log, known);
    return wrong === undefined ? [] : [violation("P5", "answers", observed, wrong)];
  });
}

function wrongAnswer(observed: Observation, log: CommittedLog, known: KnownWhenSent): string | undefined {
  // check-tasks.ts, check-stories.ts
  if (
    observed.kind === "assigned" ||
    observed.kind === "submit" ||
    observed.kind === "call" ||
    observed.kind === "story"
  )
    return undefined;
  if (observed.kind === "notified")
    return wrongOutcome(observed.outcome, log.taskById.get(taskKey(observed.outcome)), log, observed.at.idx);
  if (observed.answer === undefined) return undefined;
  const to = observed.at?.idx ?? log.lastIdx;
  // A standby answers for exactly the last batch in its copy of the journal.
  const moments = { from: observed.stale === true ? to : known.idx(observed), to };
  const history = log.taskById.get(observed.task);
  switch (observed.kind) {
    case "cancel":
      return wrongCancel(observed, history, moments);
    case "retry":
      return wrongRetry(observed, history, moments);
    case "await":
      return wrongAwait(observed, history, log, moments);
    case "query":
      return wrongQuery(observed, history, moments);
    case "result":
      return wrongResult(observed, history, moments);
    default:
      return unreachable(observed);
  }
}

function wrongCancel(
  { answer, round: wanted }: CancelObserved,
  history: TaskHistory | undefined,
  moments: Moments,
): string | undefined {
  if (answer === "unknown-task") return wrongUnknown(history, moments);
  const isWanted = ({ state, round }: TaskStretch) => {
    if (answer === "conflict") return round !== wanted;
    if (round !== wanted) return false;
    return answer === "cancelled" ? state === "cancelled" : hasEnded(state) && state !== "cancelled";
  };
  return history !== undefined && stretchesIn(history, moments).some(isWanted)
    ? undefined
    : `is answered ${answer} of round ${wanted}, never true from batch ${moments.from} to ${moments.to}`;
}

function wrongRetry(
  { answer, round }: RetryObserved,
  history: TaskHistory | undefined,
  moments: Moments,
): string | undefined {
  if (answer === "unknown-task") return wrongUnknown(history, moments);
  const opened = history?.rounds.find((one) => one.round === round);
  if (answer === "retried")
    return opened !== undefined && opened.openedIdx <= moments.to
      ? undefined
      : `is answered as in round ${round} by batch ${moments.to}, but the round was not opened`;
  const isInTheWay = (stretch: TaskStretch) =>
    stretch.round < round - 1 ||
    (stretch.round === round - 1 && (stretch.state === "completed" || !hasEnded(stretch.state)));
  return history !== undefined && stretchesIn(history, moments).some(isInTheWay)
    ? undefined
    : `is answered conflict, though round ${round} could open at any batch from ${moments.from} to ${moments.to}`;
}

/** The states of the task at any of the given moments. */
function stretchesIn({ stretches }: TaskHistory, { from, to }: Moments): readonly TaskStretch[] {
  return stretches.filter(({ idx }, place) => {
    const until = stretches[place + 1]?.idx ?? Number.POSITIVE_INFINITY;
    return idx <= to && until > from;
  });
}

const liveStates: ReadonlySet<string> = new Set<LiveTaskState>(["queued", "delayed", "assigned", "running"]);

function hasEnded(state: TaskStretch["state"]): boolean {
  return !liveStates.has(state);
}

function wrongAwait(
  { answer }: AwaitObserved,
  history: TaskHistory | undefined,
  log: CommittedLog,
  moments: Moments,
): string | undefined {
  if (answer === undefined) return undefined;
  if (answer === "unknown-task") return wrongUnknown(history, moments);
  if (answer !== "live") {
    const next = history?.rounds.find(({ round }) => round === (answer.round ?? 1) + 1);
    if (next !== undefined && next.openedIdx <= moments.from)
      return `is answered the outcome of round ${next.round - 1}, but the known batch ${next.openedIdx} opens the next`;
    return wrongOutcome(answer, history, log, moments.to);
  }
  // `live` promises only a later push of the outcome: an outcome that contradicts the answer is checked as a push.
  return history !== undefined && history.submittedIdx <= moments.to
    ? undefined
    : `is answered as live by batch ${moments.to}, before its submission`;
}

function wrongQuery(
  { answer }: QueryObserved,
  history: TaskHistory | undefined,
  moments: Moments,
): string | undefined {
  if (answer === undefined) return undefined;
  if (answer === "unknown-task") return wrongUnknown(history, moments);
  if (history === undefined) return "is described, but is not in the journal";
  if (answer.submittedIdx !== history.submittedIdx)
    return `is answered as submitted in batch ${answer.submittedIdx}, but was in ${history.submittedIdx}`;
  const { ended } = history.rounds.find(({ round }) => round === answer.round) ?? {};
  if (answer.endedIdx !== undefined && answer.endedIdx !== ended?.idx)
    return `is answered as ended in batch ${answer.endedIdx}, but ${ended === undefined ? "did not" : `did in ${ended.idx}`}`;
  const wasSo = stretchesIn(history, moments).some(
    ({ state, round, attempts }) =>
      state === answer.state && round === answer.round && attempts === answer.attempts,
  );
  const { from, to } = moments;
  return wasSo
    ? undefined
    : `is answered as ${answer.state} after ${answer.attempts}, never true from batch ${from} to ${to}`;
}

function wrongOutcome(
  outcome: Outcome,
  history: TaskHistory | undefined,
  log: CommittedLog,
  to: number,
): string | undefined {
  const { ended } = history?.rounds.find(({ round }) => round === (outcome.round ?? 1)) ?? {};
  if (history === undefined || ended === undefined || ended.idx > to)
    return `is reported ${outcome.state} by batch ${to}, but had not ended`;
  const attempts = history.stretches.findLast(({ round }) => round === (outcome.round ?? 1))?.attempts ?? 0;
  if (outcome.state !== ended.state || outcome.attempts !== attempts)
    return `is reported ${outcome.state} after ${outcome.attempts}, but is ${ended.state} after ${attempts}`;
  if (outcome.gone === true) {
    const firstIdx = log.firstKeptAt(to);
    return ended.idx < firstIdx
      ? undefined
      : `is reported with its end gone, but batch ${ended.idx} has the end, and batches are kept from ${firstIdx} on`;
  }
  if (ended.event.type !== "TaskCompleted") return undefined;
  const { encoding, agent } = ended.event;
  const isSame = isResultOf(ended.event, outcome) && outcome.encoding === encoding && outcome.agent === agent;
  return isSame ? undefined : "is reported with a result or agent that differs from the journal's";
}

/** Whether the event records the result. Where it keeps a digest alone, the result may be absent. */
function isResultOf(
  event: EventOf<"TaskCompleted">,
  { result }: { readonly result?: string | undefined },
): boolean {
  const { resultDigest, encoding } = event;
  if (resultDigest === undefined) return result === event.result;
  return result === undefined || digestOf({ result, encoding }).sha256 === resultDigest.sha256;
}

/** "No such task" needs a moment without the task. */
function wrongUnknown(history: TaskHistory | undefined, { from }: Moments): string | undefined {
  if (history === undefined || history.submittedIdx > from) return undefined;
  return `is answered as unknown, but the known batch ${history.submittedIdx} submits it`;
}

function wrongResult(
  observed: ResultObserved,
  history: TaskHistory | undefined,
  moments: Moments,
): string | undefined {
  const attempt = history?.attempts.get(observed.attempt);
  switch (observed.answer) {
    case "ok":
      return isRecorded(observed, attempt, moments)
        ? undefined
        : "is answered ok, but differs from the journal";
    case "stale":
      return wrongStale(observed, attempt, moments);
    case "gone":
      if (attempt === undefined || attempt.openedIdx > moments.from) return undefined;
      return `is answered gone, but the known batch ${attempt.openedIdx} opens the attempt`;
    case "stale-token":
      return isOwn(observed, attempt)
        ? "is answered stale token, but the journal has the same token"
        : undefined;
    case undefined:
      return undefined;
    default:
      return unreachable(observed.answer);
  }
}

/** `stale` is final for the agent, so another event must have ended the attempt. */
function wrongStale(
  observed: ResultObserved,
  attempt: AttemptHistory | undefined,
  { from, to }: Moments,
): string | undefined {
  if (attempt === undefined) return "is answered stale, but the journal has no such attempt";
  if (!isOwn(observed, attempt)) return undefined;
  const { closed } = attempt;
  if (closed === undefined || closed.idx > to) return "is answered stale, but was open";
  const wasTaken = observed.outcome === "completed" && isRecorded(observed, attempt, { from, to: from });
  return wasTaken ? `is answered stale, but batch ${closed.idx} records the result` : undefined;
}

function isOwn(observed: ResultObserved, attempt: AttemptHistory | undefined): boolean {
  return (
    attempt?.agent === observed.agent &&
    attempt.incarnation === observed.incarnation &&
    attempt.token === observed.token
  );
}

function isRecorded(observed: ResultObserved, attempt: AttemptHistory | undefined, { to }: Moments): boolean {
  if (attempt?.closed === undefined || attempt.closed.idx > to || attempt.agent !== observed.agent)
    return false;
  return isReportOf(observed, attempt.closed.event);
}

function isReportOf({ outcome, result }: ResultObserved, event: Event): boolean {
  if (event.type === "TaskCompleted")
    return outcome === "completed" && isResultOf(event, { result: result ?? "" });
  if (!("failure" in event) || outcome === "completed") return false;
  const reported = outcome === "revoked" ? "aborted" : outcome;
  const recorded = event.failure.class === "refused" ? "infrastructure" : event.failure.class;
  return recorded === reported;
}
