// What holds outside the fault model, where a journal may lose what was acknowledged: a loss is reported, and no answer
// contradicts a longer journal. An answer that speaks of a batch of the final log is checked as any other is; of a
// batch that was lost only the report counts. Pure, as check-history.ts.

import { checkHistory } from "./check-history.ts";
import { CommittedLog, type LineRecord } from "./committed-log.ts";
import type { Observation } from "./observation.ts";
import { type Violation, violation } from "./violation.ts";

export interface LossHistory {
  readonly observations: readonly Observation[];
  /** The final log from its first batch on, and when each batch was decided, by the clock of the observations. */
  readonly journal: readonly (LineRecord & { readonly decidedMs: number })[];
  /** Whether a coordinator, a client or an agent reported a loss. */
  readonly isReported: boolean;
}

export function checkLosses({ observations, journal, isReported }: LossHistory): Violation[] {
  const log = new CommittedLog(journal);
  /** A new journal has batches of the same term and index: an answer from before them speaks of another batch. */
  const isOfLostBatch = (observed: Observation): boolean => {
    if (observed.kind === "assigned" || observed.at === undefined) return false;
    const { term, idx } = observed.at;
    const { decidedMs = Number.POSITIVE_INFINITY } = journal[idx - 1] ?? {};
    return idx > 0 && (log.at(idx)?.term !== term || decidedMs > (observed.heardMs ?? decidedMs));
  };
  const isOfLeader = (observed: Observation) => !("stale" in observed && observed.stale === true);
  const lost = observations.find((observed) => isOfLeader(observed) && isOfLostBatch(observed));
  const kept = observations.flatMap((observed) =>
    isOfLostBatch(observed) || observed.kind === "assigned" ? unanswered(observed) : [observed],
  );
  const silent = "speaks of a batch that the journal lost, and nobody reported it";
  return [
    ...(lost === undefined || isReported ? [] : [violation("P1", "never-silent", lost, silent)]),
    ...checkHistory({ observations: kept, readings: [], journal }, { mustAllHaveEnded: false }).filter(
      isOfAnswers,
    ),
  ];
}

/** A session whose join was lost joins again, so the log alone may show what no session does in a whole log. */
function isOfAnswers({ checker }: Violation): boolean {
  return checker !== "lives";
}

/** The request without its answer: it may have been carried out or not. What came unasked goes; an assignment names no
 *  batch that shows whether it was lost. */
function unanswered(observed: Observation): Observation[] {
  if (observed.kind === "assigned" || observed.kind === "told") return [];
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
