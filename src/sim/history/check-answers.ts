// Compares answers about tasks with the order of the journal. Each answer must have been true at some moment: not
// before the newest batch known when the request left, not after the batch that the answer names.
//
// The lower bound keeps the order of real time, so the check is linearizability per task of submit, cancel, retry,
// result, await and query (P5; Herlihy and Wing, "Linearizability", 1990, section 2).

import { unreachable } from "../../assert.ts";
import { taskKey } from "../../ids.ts";
import type { Outcome } from "../../protocol/schemas.ts";
import type { Event } from "../../state/event.ts";
import type { LiveTaskState } from "../../state/state.ts";
import type { KnownWhenSent } from "./check-positions.ts";
import type { AttemptLife, CommittedLog, TaskLife, TaskStretch } from "./committed-log.ts";
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
  line: CommittedLog,
  known: KnownWhenSent,
): Violation[] {
  return observations.flatMap((observed) => {
    const wrong = wrongAnswer(observed, line, known);
    return wrong === undefined ? [] : [violation("P5", "answers", observed, wrong)];
  });
}

function wrongAnswer(observed: Observation, line: CommittedLog, known: KnownWhenSent): string | undefined {
  // check-tasks.ts
  if (observed.kind === "assigned" || observed.kind === "submit" || observed.kind === "call")
    return undefined;
  if (observed.kind === "told")
    return wrongOutcome(
      observed.outcome,
      line.taskById.get(taskKey(observed.outcome)),
      line,
      observed.at.idx,
    );
  if (observed.answer === undefined) return undefined;
  const to = observed.at?.idx ?? line.lastIdx;
  // A standby answers for exactly the last batch in its copy of the journal.
  const moments = { from: observed.stale === true ? to : known.idx(observed), to };
  const life = line.taskById.get(observed.task);
  switch (observed.kind) {
    case "cancel":
      return wrongCancel(observed, life, moments);
    case "retry":
      return wrongRetry(observed, life, moments);
    case "await":
      return wrongAwait(observed, life, line, moments);
    case "query":
      return wrongQuery(observed, life, moments);
    case "result":
      return wrongResult(observed, life, moments);
    default:
      return unreachable(observed);
  }
}

function wrongCancel(
  { answer, round: wanted }: CancelObserved,
  life: TaskLife | undefined,
  moments: Moments,
): string | undefined {
  if (answer === "unknown-task") return wrongUnknown(life, moments);
  const isWanted = ({ state, round }: TaskStretch) => {
    if (answer === "conflict") return round !== wanted;
    if (round !== wanted) return false;
    return answer === "cancelled" ? state === "cancelled" : hasEnded(state) && state !== "cancelled";
  };
  return life !== undefined && stretchesIn(life, moments).some(isWanted)
    ? undefined
    : `is answered ${answer} of round ${wanted}, which it was not from batch ${moments.from} to ${moments.to}`;
}

function wrongRetry(
  { answer, round }: RetryObserved,
  life: TaskLife | undefined,
  moments: Moments,
): string | undefined {
  if (answer === "unknown-task") return wrongUnknown(life, moments);
  const opened = life?.rounds.find((one) => one.round === round);
  if (answer === "retried")
    return opened !== undefined && opened.openedIdx <= moments.to
      ? undefined
      : `is said to be in round ${round} by batch ${moments.to}, which was not opened`;
  const isInTheWay = (stretch: TaskStretch) =>
    stretch.round < round - 1 ||
    (stretch.round === round - 1 && (stretch.state === "completed" || !hasEnded(stretch.state)));
  return life !== undefined && stretchesIn(life, moments).some(isInTheWay)
    ? undefined
    : `is answered conflict, and nothing kept round ${round} from being opened from batch ${moments.from} to ${moments.to}`;
}

/** The states of the task at any of the given moments. */
function stretchesIn({ stretches }: TaskLife, { from, to }: Moments): readonly TaskStretch[] {
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
  life: TaskLife | undefined,
  line: CommittedLog,
  moments: Moments,
): string | undefined {
  if (answer === undefined) return undefined;
  if (answer === "unknown-task") return wrongUnknown(life, moments);
  if (answer !== "live") {
    const next = life?.rounds.find(({ round }) => round === (answer.round ?? 1) + 1);
    if (next !== undefined && next.openedIdx <= moments.from)
      return `is told how round ${next.round - 1} ended, and batch ${next.openedIdx}, which was known, opens the next`;
    return wrongOutcome(answer, life, line, moments.to);
  }
  // `live` promises only a later push of the outcome: an outcome that contradicts the answer is checked as a push.
  return life !== undefined && life.submittedIdx <= moments.to
    ? undefined
    : `is said to live by batch ${moments.to}, before it was submitted`;
}

function wrongQuery(
  { answer }: QueryObserved,
  life: TaskLife | undefined,
  moments: Moments,
): string | undefined {
  if (answer === undefined) return undefined;
  if (answer === "unknown-task") return wrongUnknown(life, moments);
  if (life === undefined) return "is described, and is not in the journal";
  if (answer.submittedIdx !== life.submittedIdx)
    return `is said to be submitted in batch ${answer.submittedIdx}, and was in ${life.submittedIdx}`;
  const { ended } = life.rounds.find(({ round }) => round === answer.round) ?? {};
  if (answer.endedIdx !== undefined && answer.endedIdx !== ended?.idx)
    return `is said to have ended in batch ${answer.endedIdx}, and ${ended === undefined ? "did not" : `did in ${ended.idx}`}`;
  const wasSo = stretchesIn(life, moments).some(
    ({ state, round, attempts }) =>
      state === answer.state && round === answer.round && attempts === answer.attempts,
  );
  const { from, to } = moments;
  return wasSo
    ? undefined
    : `is said to be ${answer.state} after ${answer.attempts}, which it was not from batch ${from} to ${to}`;
}

function wrongOutcome(
  outcome: Outcome,
  life: TaskLife | undefined,
  line: CommittedLog,
  to: number,
): string | undefined {
  const { ended } = life?.rounds.find(({ round }) => round === (outcome.round ?? 1)) ?? {};
  if (life === undefined || ended === undefined || ended.idx > to)
    return `is told ${outcome.state} by batch ${to}, and had not ended`;
  const attempts = life.stretches.findLast(({ round }) => round === (outcome.round ?? 1))?.attempts ?? 0;
  if (outcome.state !== ended.state || outcome.attempts !== attempts)
    return `is told ${outcome.state} after ${outcome.attempts}, and is ${ended.state} after ${attempts}`;
  if (outcome.gone === true) {
    const firstIdx = line.firstKeptAt(to);
    return ended.idx < firstIdx
      ? undefined
      : `is told that its end is gone, which batch ${ended.idx} has, and the record is kept from ${firstIdx} on`;
  }
  if (ended.event.type !== "TaskCompleted") return undefined;
  const { result, encoding, agent } = ended.event;
  const isSame = outcome.result === result && outcome.encoding === encoding && outcome.agent === agent;
  return isSame ? undefined : "is told another result, or another agent's, than the journal has";
}

/** "No such task" needs a moment without the task. */
function wrongUnknown(life: TaskLife | undefined, { from }: Moments): string | undefined {
  if (life === undefined || life.submittedIdx > from) return undefined;
  return `is said to be unknown, and batch ${life.submittedIdx}, which was known, submits it`;
}

function wrongResult(
  observed: ResultObserved,
  life: TaskLife | undefined,
  moments: Moments,
): string | undefined {
  const attempt = life?.attempts.get(observed.attempt);
  switch (observed.answer) {
    case "ok":
      return isRecorded(observed, attempt, moments)
        ? undefined
        : "is answered ok, and is not what the journal has";
    case "stale":
      return wrongStale(observed, attempt, moments);
    case "gone":
      if (attempt === undefined || attempt.openedIdx > moments.from) return undefined;
      return `is answered gone, and batch ${attempt.openedIdx}, which was known, opens it`;
    case "stale-token":
      return isOwn(observed, attempt) ? "is answered stale token, and the journal has that token" : undefined;
    case undefined:
      return undefined;
    default:
      return unreachable(observed.answer);
  }
}

/** `stale` is final for the agent, so another event must have ended the attempt. */
function wrongStale(
  observed: ResultObserved,
  attempt: AttemptLife | undefined,
  { from, to }: Moments,
): string | undefined {
  if (attempt === undefined) return "is answered stale, and the journal has no such attempt";
  if (!isOwn(observed, attempt)) return undefined;
  const { closed } = attempt;
  if (closed === undefined || closed.idx > to) return "is answered stale, and was open";
  const wasTaken = observed.outcome === "completed" && isRecorded(observed, attempt, { from, to: from });
  return wasTaken ? `is answered stale, and batch ${closed.idx} has recorded it` : undefined;
}

function isOwn(observed: ResultObserved, attempt: AttemptLife | undefined): boolean {
  return (
    attempt?.agent === observed.agent &&
    attempt.incarnation === observed.incarnation &&
    attempt.token === observed.token
  );
}

function isRecorded(observed: ResultObserved, attempt: AttemptLife | undefined, { to }: Moments): boolean {
  if (attempt?.closed === undefined || attempt.closed.idx > to || attempt.agent !== observed.agent)
    return false;
  return isReportOf(observed, attempt.closed.event);
}

function isReportOf({ outcome, result }: ResultObserved, event: Event): boolean {
  if (event.type === "TaskCompleted") return outcome === "completed" && event.result === (result ?? "");
  if (!("failure" in event) || outcome === "completed") return false;
  const reported = outcome === "revoked" ? "aborted" : outcome;
  return event.failure.class === reported;
}
