// All checkers of a recorded history: they compare the observations with the final journal. Pure: the simulator and
// `npm run chaos` record, and the checkers judge. A history is shorter than the horizon of idempotency (a day), so no
// task was forgotten.

import { checkAnswers } from "./check-answers.ts";
import { checkCapacity } from "./check-capacity.ts";
import { checkGrants } from "./check-grants.ts";
import { checkHolds } from "./check-holds.ts";
import { checkNeeds } from "./check-needs.ts";
import { checkFreshness, checkPositions, KnownWhenSent } from "./check-positions.ts";
import { checkFold, checkReadings } from "./check-readings.ts";
import { checkSessions } from "./check-sessions.ts";
import { checkStories } from "./check-stories.ts";
import {
  checkAccepted,
  checkAssigned,
  checkAttempts,
  checkCalls,
  checkNotAccepted,
  checkRetries,
  checkTaskHistories,
  type TaskExpectations,
} from "./check-tasks.ts";
import { CommittedLog, type LogRecord } from "./committed-log.ts";
import type { Observation, Reading } from "./observation.ts";
import type { Violation } from "./violation.ts";

export interface History {
  readonly observations: readonly Observation[];
  readonly readings: readonly Reading[];
  /** The final journal from its first batch on; records of no committed batch may be among the others. */
  readonly journal: Iterable<LogRecord>;
}

export function checkHistory(history: History, expectations: TaskExpectations): Violation[] {
  const { observations, readings } = history;
  const log = new CommittedLog(history.journal);
  const known = new KnownWhenSent(observations);
  return [
    ...checkTaskHistories(log),
    ...checkPositions(observations, log),
    ...checkFreshness(observations, known),
    ...checkAccepted(observations, log, known, expectations),
    ...checkNotAccepted(observations, log, known),
    ...checkCalls(observations, log),
    ...checkRetries(observations, log),
    ...checkAssigned(observations, log),
    ...checkAttempts(log),
    ...checkSessions(log),
    ...checkAnswers(observations, log, known),
    ...checkStories(observations, log),
    ...checkCapacity(log),
    ...checkHolds(log),
    ...checkNeeds(log),
    ...checkGrants(log),
    ...checkReadings(readings, log),
    ...checkFold(readings, log),
  ];
}
