// The requests that waited for a resource at the moment of a grant, ranked as the slot planner ranked them, found by
// replaying the journal up to the grant. A receipt holds the winner's L and the runner-up. The replay gives the whole
// table with both terms of L, and proves that the receipt follows from the journal.

import { apply } from "../core/apply.ts";
import { rankWaiters, type SlotRanking } from "../scheduling/explain-slots.ts";
import type { Event, EventOf } from "../state/event.ts";
import { passTo } from "../state/journal-time.ts";
import type { SlotReceipt } from "../state/receipt.ts";
import { emptyState, type SwarmState } from "../state/state.ts";
import type { ReplayedBatch } from "./assignment-replay.ts";

export interface ReplayedGrant extends SlotRanking {
  readonly agent: string;
  readonly handle: string;
  /** The resource whose slot was granted by rank; undefined if a free slot was granted at once. */
  readonly resource: string | undefined;
  /** Journal time, ms since the Unix epoch, and the batch. */
  readonly at: number;
  readonly idx: number;
  /** As journaled. */
  readonly receipt: SlotReceipt;
  /** Whether replay and receipt give the same L, number of waiters and reason. */
  readonly agrees: boolean;
}

/** The grants to seek. */
export interface SoughtGrant {
  readonly resource: string;
  readonly agent: string;
  /** Undefined: every request of the agent. */
  readonly handle: string | undefined;
}

export class GrantReplay {
  readonly #sought: SoughtGrant;
  #state: SwarmState = emptyState();

  constructor(sought: SoughtGrant) {
    this.#sought = sought;
  }

  /** Begins after the batch of a base. @param state is taken over */
  startFrom(state: SwarmState): void {
    this.#state = state;
  }

  /** Replays the next batch. @returns the last sought grant in the batch */
  take({
    idx,
    at,
    events,
  }: ReplayedBatch & { readonly events: readonly Event[] }): ReplayedGrant | undefined {
    const state = this.#state;
    const context = { idx, at } as Parameters<typeof apply>[2];
    const [first] = events;
    if (first !== undefined) passTo(state, context.at, first);
    state.idx = context.idx;
    let found: ReplayedGrant | undefined;
    for (const event of events) {
      if (this.#isSought(event)) found = this.#table(event, context);
      apply(state, event, context);
    }
    return found;
  }

  #isSought(event: Event): event is EventOf<"SlotGranted"> {
    const { resource, agent, handle } = this.#sought;
    return (
      event.type === "SlotGranted" &&
      event.agent === agent &&
      (handle === undefined || event.handle === handle) &&
      event.resources.some((name) => name === resource)
    );
  }

  #table(event: EventOf<"SlotGranted">, { idx, at }: Parameters<typeof apply>[2]): ReplayedGrant {
    const { agent, handle, receipt } = event;
    const row = receipt.resource === undefined ? undefined : this.#state.resourceByName.get(receipt.resource);
    const ranking = row === undefined ? noWaiters : rankWaiters(this.#state, row, at);
    return {
      agent,
      handle,
      resource: row?.resource,
      at,
      idx,
      receipt,
      ...ranking,
      agrees: receipt.by === "free" || agreesWith(event, ranking),
    };
  }
}

const noWaiters: SlotRanking = { alpha: 0, tick: 0, maxQueueDepth: 0, maxOldestAge: 0, standings: [] };

function agreesWith(
  { agent, handle, receipt }: EventOf<"SlotGranted">,
  { alpha, standings }: SlotRanking,
): boolean {
  const own = standings.find((each) => each.agent === agent && each.handle === handle);
  if (own === undefined || own.by !== receipt.by || standings.length !== receipt.waiting) return false;
  return receipt.by !== "load" || (own.load === receipt.load && alpha === receipt.alpha);
}
