// Whose turn: which of the waiting tasks is offered to the agents next. Behind an interface, because there are
// several published answers; this file holds the plainest one.
// Not here: which agent takes it (pool.ts). A kind that nobody takes is put aside and never blocks another.

import { type HeapItem, IndexedHeap } from "../core/indexed-heap.ts";
import type { Lane } from "../core/state.ts";

/** One round's order of turns. Lanes only shrink meanwhile, and only by what `granted` speaks of. */
export interface TurnOrder {
  /** The lane whose first task goes next; undefined when none is left. The same until told otherwise. */
  next(): Lane | undefined;
  /** The first task of the lane whose turn it was has left it. */
  granted(): void;
  /** Nobody takes what waits in the lane whose turn it was: it is out for the rest of the round. */
  block(): void;
}

/** The lowest (priority, order of submission) among the lanes' first tasks. */
export class SubmissionOrder implements TurnOrder {
  readonly #turns = new IndexedHeap<Turn>(isEarlier);

  /** @param lanes none of them empty */
  constructor(lanes: Iterable<Lane>) {
    for (const lane of lanes) this.#enter(lane);
  }

  next(): Lane | undefined {
    return this.#turns.peek()?.lane;
  }

  granted(): void {
    const turn = this.#turns.pop();
    if (turn !== undefined) this.#enter(turn.lane);
  }

  block(): void {
    this.#turns.pop();
  }

  #enter(lane: Lane): void {
    const first = lane.queue.peek();
    if (first === undefined) return;
    this.#turns.push({ heapAt: -1, lane, priority: first.spec.priority, sequence: first.sequence });
  }
}

interface Turn extends HeapItem {
  readonly lane: Lane;
  readonly priority: number;
  readonly sequence: number;
}

function isEarlier(a: Turn, b: Turn): boolean {
  return a.priority !== b.priority ? a.priority < b.priority : a.sequence < b.sequence;
}
