// All agents with their scores at the moment of one assignment, found by replaying the journal up to the event. The
// replay begins at the first batch, or at a base. A receipt holds the winner and the next two. The replay gives the
// whole table, and proves that the receipt follows from the journal.

import { apply } from "../core/apply.ts";
import { JournalDamagedError } from "../errors.ts";
import { batchIndex, instant } from "../ids.ts";
import type { AgentStanding } from "../protocol/explain-schemas.ts";
import { type AgentVerdict, type Backlogs, backlogsOf, verdictsOn } from "../scheduling/explain-agents.ts";
import { preferredAgent } from "../state/affinity-rows.ts";
import type { Event, EventOf } from "../state/event.ts";
import type { Receipt } from "../state/receipt.ts";
import { emptyState, type SwarmState } from "../state/state.ts";

export interface ReplayedAssignment {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
  readonly agent: string;
  /** The kind as which the task ran: its own kind, or a cheaper kind because of a budget. */
  readonly kind: string;
  /** Agent type to which a budget restricted the task. */
  readonly cheaperType?: string;
  /** Journal time, ms since the Unix epoch, and the batch. */
  readonly at: number;
  readonly idx: number;
  /** As journaled. */
  readonly receipt: Receipt;
  /** Every agent: eligible agents first, best first. */
  readonly agents: readonly AgentStanding[];
  /** Whether replay and receipt rank the same agents with the same terms. */
  readonly agrees: boolean;
  /** First and last replayed batch. */
  readonly replayed: { readonly from: number; readonly to: number };
}

/** A batch of a page of the journal. */
export interface ReplayedBatch {
  readonly idx: number;
  readonly at: number;
  readonly events: readonly unknown[];
}

export class AssignmentReplay {
  /** Undefined: of any project. */
  readonly #project: string | undefined;
  readonly #task: string;
  /** Undefined: every attempt. */
  readonly #attempt: number | undefined;
  #state: SwarmState = emptyState();
  #firstIdx = 1;

  constructor(
    { project, task }: { readonly project: string | undefined; readonly task: string },
    attempt: number | undefined,
  ) {
    this.#project = project;
    this.#task = task;
    this.#attempt = attempt;
  }

  /** Begins after the batch of a base. @param state is taken over */
  startFrom(state: SwarmState): void {
    this.#state = state;
    this.#firstIdx = state.idx + 1;
  }

  /** Replays the next batch. @returns the table if the batch holds the assignment
   *  @throws JournalDamagedError if batches are missing, or a batch does not follow from the batches before */
  take(batch: ReplayedBatch): ReplayedAssignment | undefined {
    const idx = batchIndex(batch.idx);
    if (idx !== this.#state.idx + 1)
      throw new JournalDamagedError(`the journal is kept only from batch ${idx} on: nothing can be replayed`);
    try {
      return this.#fold(batch.events as readonly Event[], { at: instant(batch.at), idx });
    } catch (cause) {
      throw new JournalDamagedError(
        `batch ${idx} does not follow from the batches before: the journal is damaged, or a newer version wrote it`,
        { cause },
      );
    }
  }

  #fold(events: readonly Event[], context: Parameters<typeof apply>[2]): ReplayedAssignment | undefined {
    this.#state.at = context.at;
    this.#state.idx = context.idx;
    const isHere = events.some((event) => this.#isSought(event));
    // A round uses the backlogs of its start, before the batch's first assignment.
    let backlogs: Backlogs | undefined;
    let found: ReplayedAssignment | undefined;
    for (const event of events) {
      if (isHere && event.type === "TaskAssigned") backlogs ??= backlogsOf(this.#state);
      if (this.#isSought(event)) found = this.#table(event, context, backlogs ?? new Map());
      apply(this.#state, event, context);
    }
    return found;
  }

  #isSought(event: Event): event is EventOf<"TaskAssigned"> {
    return (
      event.type === "TaskAssigned" &&
      event.task === this.#task &&
      (this.#project === undefined || event.project === this.#project) &&
      (this.#attempt === undefined || event.attempt === this.#attempt)
    );
  }

  #table(
    event: EventOf<"TaskAssigned">,
    { at, idx }: Parameters<typeof apply>[2],
    backlogs: Backlogs,
  ): ReplayedAssignment {
    const row = this.#state.taskById.get(event);
    if (row === undefined) throw new TypeError(`task ${event.task} is not live`);
    const { spec, failures, failedBy } = row;
    const kind = event.runsAs ?? spec.kind;
    const wanted = {
      kind,
      role: spec.role,
      needs: spec.needs,
      agentType: event.cheaperType,
      avoid: failedBy,
      isLastAttempt: failures + 1 >= spec.maxAttempts,
      preferred: preferredAgent(this.#state, spec, at),
    };
    const agents = verdictsOn(this.#state, wanted, at, backlogs);
    return {
      project: event.project,
      task: event.task,
      attempt: event.attempt,
      agent: event.agent,
      kind,
      ...(event.cheaperType === undefined ? {} : { cheaperType: event.cheaperType }),
      at,
      idx,
      receipt: event.receipt,
      agents,
      agrees: agreesWith(event, agents),
      replayed: { from: this.#firstIdx, to: idx },
    };
  }
}

/** Compares the agents of the receipt in order, with their terms, and the number of eligible agents. */
function agreesWith({ agent, receipt }: EventOf<"TaskAssigned">, agents: readonly AgentVerdict[]): boolean {
  const eligible = agents.filter(({ standing }) => standing === "feasible" || standing === "probe");
  const shown = eligible.slice(0, receipt.candidates.length).map(({ terms }) => terms);
  return (
    eligible[0]?.agent === agent &&
    eligible.length === receipt.feasible &&
    shown.every((terms, at) => isSame(terms, receipt.candidates[at]))
  );
}

function isSame(a: Receipt["candidates"][number] | undefined, b: Receipt["candidates"][number] | undefined) {
  if (a === undefined || b === undefined) return false;
  return (
    a.agent === b.agent &&
    a.score === b.score &&
    a.successRate === b.successRate &&
    a.load === b.load &&
    a.backlog === b.backlog &&
    a.speed === b.speed
  );
}
