// Compares the histories that programs read of their tasks with the journal: every kept event up to the known present,
// each once and in order, across every change of leader. A history never ends with a loss (P12).

import type { CommittedLog, TaskHistory } from "./committed-log.ts";
import type { Observation, StoryObserved } from "./observation.ts";
import { type Violation, violation } from "./violation.ts";

type Answer = NonNullable<StoryObserved["answer"]>;
type StoryEvent = NonNullable<Answer["events"]>[number];

/** @param observations of a swarm inside the fault model: outside it a journal may lose batches */
export function checkStories(observations: readonly Observation[], log: CommittedLog): Violation[] {
  return observations.flatMap((observed) => {
    if (observed.kind !== "story") return [];
    const wrong = wrongStory(observed, log);
    return wrong === undefined ? [] : [violation("P12", "stories", observed, wrong)];
  });
}

function wrongStory({ task, answer, saysLoss }: StoryObserved, log: CommittedLog): string | undefined {
  if (saysLoss === true) return "ends with a loss, but the journal is whole";
  if (answer === undefined) return undefined;
  const history = log.taskById.get(task);
  if (history === undefined) return "is answered, but is not in the journal";
  return (
    wrongAttempts(answer, history) ?? (answer.events && wrongEvents(answer, answer.events, history, log))
  );
}

function wrongAttempts({ attempts }: Answer, history: TaskHistory): string | undefined {
  for (const { attempt, agent, assignedIdx } of attempts) {
    const real = history.attempts.get(attempt);
    if (real?.agent !== agent || real.openedIdx !== assignedIdx)
      return `has attempt ${attempt} with ${agent} in batch ${assignedIdx}, unlike the journal`;
  }
  return undefined;
}

function wrongEvents(
  { statusIdx }: Answer,
  reported: readonly StoryEvent[],
  history: TaskHistory,
  log: CommittedLog,
): string | undefined {
  const firstIdx = reported[0]?.idx ?? statusIdx + 1;
  const lastIdx = Math.max(reported.at(-1)?.idx ?? 0, presentOf(history, statusIdx));
  const missed = history.events.find(({ idx }) => idx < firstIdx);
  if (missed !== undefined && missed.idx >= log.firstKeptAt(log.lastIdx))
    return `lacks ${nameOf(missed)}, which is kept`;
  const real = history.events.filter(({ idx }) => idx >= firstIdx && idx <= lastIdx);
  for (const [place, event] of real.entries()) {
    const other = reported[place];
    if (other?.idx !== event.idx || other.type !== event.type)
      return `has ${other === undefined ? "nothing" : nameOf(other)} instead of ${nameOf(event)}`;
  }
  const more = reported[real.length];
  return more === undefined ? undefined : `has ${nameOf(more)} once more`;
}

/** The last batch that the history must reach: it may stop where the newest round known to the status ended. */
function presentOf({ rounds }: TaskHistory, statusIdx: number): number {
  const known = rounds.findLast(({ openedIdx }) => openedIdx <= statusIdx);
  return Math.min(statusIdx, known?.ended?.idx ?? statusIdx);
}

function nameOf({ idx, type }: StoryEvent): string {
  return `${type} of batch ${idx}`;
}
