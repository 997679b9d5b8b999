// Checks tasks (P1 to P6). The journal holds every accepted task once, with the submitted content and at most one
// outcome. It holds no task that every submit refused. Every assignment that an agent received is in the journal, and
// no task has more attempts than allowed.

import { isDeepStrictEqual } from "node:util";
import { taskKey } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { Event, FailureClass, TaskSpec } from "../../state/event.ts";
import { needsOf, type WrittenNeeds } from "../../state/needs.ts";
import { refOf } from "../../state/task-rows.ts";
import type { KnownWhenSent } from "./check-positions.ts";
import { type CommittedLog, newestRound, type TaskHistory } from "./committed-log.ts";
import type { AssignedObserved, CallObserved, Observation, SubmitObserved } from "./observation.ts";
import { type Violation, violation } from "./violation.ts";

export interface TaskExpectations {
  /**
   * Whether every accepted task must have ended by the end of the journal: all faults healed, with enough time after.
   */
  readonly mustAllHaveEnded: boolean;
}

/** Every task is submitted once and every round ends once, whatever the answers said. */
export function checkTaskHistories(log: CommittedLog): Violation[] {
  return log.faults.map((sentence) => ({ promise: "P2", checker: "task-histories", sentence }));
}

/** At most `maxAttempts` attempts fail per round. Refusals by infrastructure do not count. */
export function checkAttempts(log: CommittedLog): Violation[] {
  return [...log.taskById.values()].flatMap(({ rounds, attempts }) =>
    rounds.flatMap(({ round, spec }) => {
      const counted = [...attempts.values()].filter(
        (attempt) =>
          attempt.round === round && (attempt.closed === undefined || isCounted(attempt.closed.event)),
      );
      if (counted.length <= spec.maxAttempts) return [];
      const sentence = `task ${spec.id} has ${counted.length} counted attempts in round ${round}, more than ${spec.maxAttempts}`;
      return [{ promise: "P3", checker: "attempts", sentence }];
    }),
  );
}

/** Every new round was requested, by at least one request without a refusal. */
export function checkRetries(observations: readonly Observation[], log: CommittedLog): Violation[] {
  const mayStand = new Set<string>();
  for (const observed of observations) {
    if (observed.kind !== "retry" || observed.refused !== undefined) continue;
    if (observed.answer === undefined || observed.answer === "retried")
      mayStand.add(`${observed.task} ${observed.round}`);
  }
  return [...log.taskById.values()].flatMap(({ spec, rounds }) =>
    rounds.slice(1).flatMap(({ round, openedIdx }) => {
      if (mayStand.has(`${taskKey(refOf(spec))} ${round}`)) return [];
      const sentence = `batch ${openedIdx} opens round ${round} of ${spec.id}, without a request that was not refused`;
      return [{ promise: "P5", checker: "retries", sentence }];
    }),
  );
}

const uncounted: ReadonlySet<FailureClass> = new Set(["infrastructure", "refused"]);

function isCounted(event: Event): boolean {
  return !("failure" in event) || !uncounted.has(event.failure.class);
}

export function checkAccepted(
  observations: readonly Observation[],
  log: CommittedLog,
  known: KnownWhenSent,
  { mustAllHaveEnded }: TaskExpectations,
): Violation[] {
  const creatorByTask = new Map<string, SubmitObserved>();
  return observations.flatMap((observed) => {
    if (observed.kind !== "submit" || !isAccepted(observed)) return [];
    const history = log.taskById.get(observed.task);
    const found = wrongAcceptance(observed, history, known.idx(observed));
    const violations = found.map((sentence) => violation("P1", "accepted", observed, sentence));
    if (history !== undefined && !isSameContent(observed, history.spec))
      violations.push(
        violation("P6", "accepted", observed, "is accepted, but the journal has different content"),
      );
    if (observed.answer === "accepted" && creatorByTask.has(observed.task))
      violations.push(violation("P2", "accepted", observed, "is accepted as new a second time"));
    if (observed.answer === "accepted") creatorByTask.set(observed.task, observed);
    if (mustAllHaveEnded && history !== undefined && newestRound(history).ended === undefined)
      violations.push(
        violation("P1", "all-ended", observed, `is accepted, but still ${stateOf(history)} at the end`),
      );
    return violations;
  });
}

/** A conflict needs different content under the same id; a final refusal needs a journal without the task. */
export function checkNotAccepted(
  observations: readonly Observation[],
  log: CommittedLog,
  known: KnownWhenSent,
): Violation[] {
  const mayStand = new Set<string>();
  for (const observed of observations)
    if (observed.kind === "submit" && observed.refused === undefined && observed.answer !== "conflict")
      mayStand.add(observed.task);
  return observations.flatMap((observed) => {
    if (observed.kind !== "submit") return [];
    const history = log.taskById.get(observed.task);
    if (observed.answer === "conflict") return wrongConflict(observed, history);
    if (observed.refused === undefined) return [];
    if (history !== undefined && !mayStand.has(observed.task))
      return [
        violation("P5", "refused", observed, `is refused (${observed.refused}), but is in the journal`),
      ];
    // A message that does not parse is refused whether the id is known or not.
    const isItemsOwn = observed.at !== undefined && observed.refused !== "WAGGLE_INVALID_MESSAGE";
    if (isItemsOwn && history !== undefined && history.submittedIdx <= known.idx(observed))
      return [
        violation("P5", "refused", observed, `is refused (${observed.refused}), though the task was known`),
      ];
    return [];
  });
}

/**
 * If every call to submit a task threw a refusal, the journal does not hold the task, whatever the client heard. A
 * request copied by the network may still submit the task later.
 */
export function checkCalls(observations: readonly Observation[], log: CommittedLog): Violation[] {
  const callsByTask = new Map<string, CallObserved[]>();
  const isOpen = new Set<string>();
  for (const observed of observations) {
    if (observed.kind === "call")
      callsByTask.set(observed.task, [...(callsByTask.get(observed.task) ?? []), observed]);
    const mayCome = observed.kind === "call" ? observed.refused === undefined : "isCopy" in observed;
    if (mayCome && "task" in observed) isOpen.add(observed.task);
  }
  return [...callsByTask].flatMap(([task, [call]]) => {
    if (call === undefined || isOpen.has(task) || !log.taskById.has(task)) return [];
    const sentence = `throws ${call.refused}, like every other call, but the task is in the journal`;
    return [violation("P5", "calls", call, sentence)];
  });
}

/** Agents receive only assignments of the journal. */
export function checkAssigned(observations: readonly Observation[], log: CommittedLog): Violation[] {
  return observations.flatMap((observed) => {
    if (observed.kind !== "assigned" || isJournaled(observed, log)) return [];
    return [violation("P4", "assigned", observed, "was assigned, but the journal has no such attempt")];
  });
}

function isAccepted({ answer }: SubmitObserved): boolean {
  return answer === "accepted" || answer === "duplicate";
}

function wrongAcceptance(
  { at, answer }: SubmitObserved,
  history: TaskHistory | undefined,
  knownIdx: number,
): readonly string[] {
  if (history === undefined) return ["is accepted, but is not in the journal"];
  const { submittedIdx } = history;
  if (at !== undefined && submittedIdx > at.idx)
    return [`is accepted by batch ${at.idx}, but submitted in batch ${submittedIdx}`];
  if (answer === "accepted" && submittedIdx <= knownIdx)
    return [`is accepted as new, but was submitted in batch ${submittedIdx}, before the request`];
  return [];
}

function wrongConflict(observed: SubmitObserved, history: TaskHistory | undefined): Violation[] {
  const { at } = observed;
  if (history === undefined || (at !== undefined && history.submittedIdx > at.idx))
    return [violation("P6", "conflict", observed, "is in conflict with a missing task")];
  if (isSameContent(observed, history.spec))
    return [violation("P6", "conflict", observed, "is in conflict with the same content")];
  return [];
}

function isJournaled(observed: AssignedObserved, log: CommittedLog): boolean {
  const attempt = log.taskById.get(observed.task)?.attempts.get(observed.attempt);
  if (attempt === undefined) return false;
  const { agent, incarnation, number, token } = attempt;
  return (
    agent === observed.agent &&
    incarnation === observed.incarnation &&
    number === observed.number &&
    token === observed.token
  );
}

/** Defaults for fields that a submitter leaves out. */
const defaults: Readonly<Record<string, unknown>> = {
  user: "default",
  weight: 1,
  priority: 100,
  payload: "",
  maxAttempts: limits.maxAttemptsDefault,
  timeoutMs: limits.attemptTimeoutMs,
};
const contentFields = [
  ...Object.keys(defaults),
  ...[
    "kind",
    "role",
    "affinity",
    "encoding",
    "tokens",
    "deadline",
    "notBefore",
    "stallMs",
    "stream",
    "traceparent",
    "tracestate",
  ],
];

function isSameContent({ content, project }: SubmitObserved, spec: TaskSpec): boolean {
  const stored: Readonly<Record<string, unknown>> = { ...spec };
  const differs = (field: string) => (content[field] ?? defaults[field]) !== stored[field];
  const needs = needsOf(content["needs"] as WrittenNeeds | undefined);
  const areEqual =
    isDeepStrictEqual(needs, spec.needs) && isDeepStrictEqual(content["attributes"], stored["attributes"]);
  return project === spec.project && areEqual && !contentFields.some(differs);
}

function stateOf({ stretches }: TaskHistory): string {
  return stretches.at(-1)?.state ?? "unborn";
}
