// Candidates with the best on top, although scores may have fallen since they were placed. Reading a candidate
// refreshes its score and sinks it to its position; unread candidates cost nothing. So an agent that serves a hundred
// kinds is not moved in a hundred heaps at each assignment. Correct because a candidate's rank never improves by
// itself: an outdated position is too high. Code that improves a candidate must call `restore`.

import { assert } from "../assert.ts";
import type { Candidate } from "./candidate.ts";

export class CandidateHeap {
  readonly #items: Candidate[];

  /** @param candidates in any order; the heap takes over the array */
  constructor(candidates: Candidate[]) {
    this.#items = candidates;
    for (const [at, candidate] of this.#items.entries()) candidate.heapAt = at;
    this.reorder();
  }

  /** Orders all candidates again, after all were refreshed. */
  reorder(): void {
    for (let at = (this.#items.length >> 1) - 1; at >= 0; at -= 1) this.#sink(at);
  }

  get size(): number {
    return this.#items.length;
  }

  push(candidate: Candidate): void {
    this.#items.push(candidate);
    candidate.heapAt = this.#items.length - 1;
    this.#rise(candidate.heapAt);
  }

  /** Moves a refreshed candidate, possibly improved, to its position. */
  restore(candidate: Candidate): void {
    this.#rise(candidate.heapAt);
    this.#sink(candidate.heapAt);
  }

  remove(candidate: Candidate): void {
    const at = candidate.heapAt;
    assert(this.#items[at] === candidate, "only a candidate of this heap can be removed");
    candidate.heapAt = -1;
    const last = this.#items.pop() as Candidate;
    if (last === candidate) return;
    this.#place(last, at);
    this.#rise(at);
    this.#sink(last.heapAt);
  }

  /**
   * The best wanted candidates, best first, at most `count`: O(count²) for all candidates read. Walks from the top: the
   * next candidate is always a child of one that was passed, so the walk reads few.
   */
  best(count: number, isWanted: (candidate: Candidate) => boolean): Candidate[] {
    const found: Candidate[] = [];
    if (this.#items.length === 0) return found;
    this.#freshen(0);
    const edge: Candidate[] = [this.#items[0] as Candidate];
    while (edge.length > 0) {
      const next = takeFirst(edge);
      if (isWanted(next) && found.push(next) === count) return found;
      for (const childAt of [2 * next.heapAt + 1, 2 * next.heapAt + 2]) {
        if (childAt >= this.#items.length) break;
        this.#freshen(childAt);
        edge.push(this.#items[childAt] as Candidate);
      }
    }
    return found;
  }

  /**
   * Refreshes the candidate at a position, and lets others rise, until a fresh candidate stands in the position. Moves
   * only candidates below, not yet read by `best`.
   */
  #freshen(at: number): void {
    for (let candidate = this.#items[at] as Candidate; candidate.isStale; ) {
      candidate.refresh();
      this.#sink(at);
      candidate = this.#items[at] as Candidate;
    }
  }

  #rise(from: number): void {
    const candidate = this.#items[from] as Candidate;
    let at = from;
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = this.#items[parentAt] as Candidate;
      if (!candidate.isBefore(parent)) break;
      this.#place(parent, at);
      at = parentAt;
    }
    this.#place(candidate, at);
  }

  #sink(from: number): void {
    const candidate = this.#items[from] as Candidate;
    let at = from;
    for (;;) {
      let childAt = 2 * at + 1;
      let child = this.#items[childAt];
      if (child === undefined) break;
      const right = this.#items[childAt + 1];
      if (right?.isBefore(child) === true) {
        child = right;
        childAt += 1;
      }
      if (!child.isBefore(candidate)) break;
      this.#place(child, at);
      at = childAt;
    }
    this.#place(candidate, at);
  }

  #place(candidate: Candidate, at: number): void {
    this.#items[at] = candidate;
    candidate.heapAt = at;
  }
}

function takeFirst(edge: Candidate[]): Candidate {
  let firstAt = 0;
  for (let at = 1; at < edge.length; at += 1) {
    if ((edge[at] as Candidate).isBefore(edge[firstAt] as Candidate)) firstAt = at;
  }
  const first = edge[firstAt] as Candidate;
  edge[firstAt] = edge[edge.length - 1] as Candidate;
  edge.pop();
  return first;
}
