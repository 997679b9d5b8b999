// The promises outside the fault model, where a journal may lose acknowledged records: every loss is reported, and no
// answer contradicts a longer journal. An answer from a batch of the final log gets every check. For an answer from a
// lost batch only the report counts. Pure, as check-history.ts.

import type { JournalPoint } from "../../protocol/journal-point.ts";
import { checkHistory } from "./check-history.ts";
import { CommittedLog, type LogRecord } from "./committed-log.ts";
import type { Observation } from "./observation.ts";
import { type Violation, violation } from "./violation.ts";

export interface LossHistory {
  readonly observations: readonly Observation[];
  /** The final log from its first batch on, with the time of each decision by the clock of the observations. */
  readonly journal: readonly (LogRecord & { readonly decidedMs: number })[];
  /** Points of batches that a leader decided in another log, as after the loss of all segments. */
  readonly elsewhere: readonly JournalPoint[];
  /** Whether a coordinator, a client or an agent reported a loss. */
  readonly isReported: boolean;
}

export function checkLosses({ observations, journal, elsewhere, isReported }: LossHistory): Violation[] {
  const log = new CommittedLog(journal);
  /** A new journal repeats terms and indexes: an answer from before the new journal speaks of an older batch. */
  const isOfLostBatch = (observed: Observation): boolean => {
    if (observed.kind === "assigned" || observed.at === undefined) return false;
    const { term, idx } = observed.at;
    const { decidedMs = Number.POSITIVE_INFINITY } = journal[idx - 1] ?? {};
    return idx > 0 && (log.at(idx)?.term !== term || decidedMs > (observed.heardMs ?? decidedMs));
  };
  const pointsOfOtherLogs = new Set([
    ...observations.filter(isOfLostBatch).map(pointOf),
    ...elsewhere.map(pointText),
  ]);
  /** Two logs may have shared the answer's point, or the answer names no point: the log that was meant is unknown. */
  const isOfUnknownLog = (observed: Observation): boolean =>
    pointsOfOtherLogs.has(pointOf(observed)) || ("answer" in observed && observed.at === undefined);
  /** The attempt stood in a lost batch: `stale` tells its agent that no leader knows the attempt any more. */
  const isOfLostAttempt = (observed: Observation): boolean =>
    observed.kind === "result" &&
    observed.answer === "stale" &&
    log.taskById.get(observed.task)?.attempts.has(observed.attempt) !== true;
  const isOfLeader = (observed: Observation) => !("stale" in observed && observed.stale === true);
  const lost = observations.find((observed) => isOfLeader(observed) && isOfLostBatch(observed));
  const kept = observations.flatMap((observed) =>
    isOfLostBatch(observed) ||
    isOfUnknownLog(observed) ||
    isOfLostAttempt(observed) ||
    observed.kind === "assigned"
      ? unanswered(observed)
      : [observed],
  );
  const silent = "names a batch that the journal lost, but no node reported the loss";
  return [
    ...(lost === undefined || isReported ? [] : [violation("P1", "never-silent", lost, silent)]),
    ...checkHistory({ observations: kept, readings: [], journal }, { mustAllHaveEnded: false }).filter(
      isOfAnswers,
    ),
  ];
}

/** The batch that an observation names, as text; undefined without one. */
function pointOf(observed: Observation): string | undefined {
  if (observed.kind === "assigned" || observed.at === undefined) return undefined;
  return pointText(observed.at);
}

function pointText({ term, idx }: JournalPoint): string {
  return `${term}/${idx}`;
}

/**
 * A session whose join was lost joins again, so the final log alone may show a forbidden second join. A history read
 * across a loss may end with the loss.
 */
function isOfAnswers({ checker }: Violation): boolean {
  return checker !== "sessions" && checker !== "stories";
}

/**
 * Keeps the request without its answer: the coordinator may have carried it out or not. Drops notifications, and
 * assignments too: no assignment names its batch.
 */
function unanswered(observed: Observation): Observation[] {
  if (observed.kind === "assigned" || observed.kind === "notified") return [];
  const { kind, node, sentMs, ...asked } = observed;
  const {
    heardMs: _heardMs,
    at: _at,
    answer: _answer,
    stale: _stale,
    ...rest
  } = asked as Record<string, unknown>;
  return [{ kind, node, sentMs, ...rest } as Observation];
}
