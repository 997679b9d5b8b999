// An agent considered for the tasks of one kind and role during one round, with its score and its place in the
// ranking. Scores are computed when looked at: within a round an agent only gets busier, so a stale score is
// never too low, and whoever stands first with a fresh one is the best.

import type { CandidateTerms, DecidedBy } from "../core/receipt.ts";
import type { AgentRow } from "../core/state.ts";
import { score, vaporaLoad } from "./score.ts";

export interface CandidateInit {
  readonly agent: AgentRow;
  /** Learnt for the kind, [0, 1]. */
  readonly successRate: number;
  /** L(agent) at the round's start, [0, 1]. */
  readonly backlog: number;
  readonly lambda: number;
}

export class Candidate {
  readonly agent: AgentRow;
  readonly #successRate: number;
  readonly #backlog: number;
  readonly #backlogCost: number;
  /** Position in the one heap that holds it; −1 when in none. Written by the heap alone. */
  heapAt = -1;
  #score = 0;
  /** Of the agent when the score was computed. */
  #inFlight = -1;
  #lastAssignedOrder = 0;
  #terms: CandidateTerms | undefined;

  constructor({ agent, successRate, backlog, lambda }: CandidateInit) {
    this.agent = agent;
    this.#successRate = successRate;
    this.#backlog = backlog;
    this.#backlogCost = lambda * backlog;
    this.refresh();
  }

  /** Whether the agent was assigned something since the score was computed. */
  get isStale(): boolean {
    return this.#inFlight !== this.agent.open.size;
  }

  refresh(): void {
    const { agent } = this;
    this.#inFlight = agent.open.size;
    this.#lastAssignedOrder = agent.lastAssignedOrder;
    this.#score = score(this.#scoreTerms(), this.#backlogCost);
    this.#terms = undefined;
  }

  /** The highest score first; then fewer in flight, longest since assigned, id. A strict total order. */
  isBefore(other: Candidate): boolean {
    if (this.#score !== other.#score) return this.#score > other.#score;
    if (this.#inFlight !== other.#inFlight) return this.#inFlight < other.#inFlight;
    if (this.#lastAssignedOrder !== other.#lastAssignedOrder) {
      return this.#lastAssignedOrder < other.#lastAssignedOrder;
    }
    return this.agent.id < other.agent.id;
  }

  /** The first rule of `isBefore` in which the two differ. */
  decidedAgainst(other: Candidate): DecidedBy {
    if (this.#score !== other.#score) return "score";
    if (this.#inFlight !== other.#inFlight) return "in-flight";
    return this.#lastAssignedOrder === other.#lastAssignedOrder ? "id" : "longest-idle";
  }

  /** As of the last refresh, for the receipt. Made once for all the receipts that show it. */
  get terms(): CandidateTerms {
    this.#terms ??= {
      agent: this.agent.id,
      score: rounded(this.#score),
      successRate: rounded(this.#successRate),
      load: rounded(vaporaLoad(this.#scoreTerms())),
      ...(this.#backlog === 0 ? {} : { backlog: rounded(this.#backlog) }),
    };
    return this.#terms;
  }

  #scoreTerms() {
    return {
      successRate: this.#successRate,
      inFlight: this.#inFlight,
      maxConcurrent: this.agent.maxConcurrent,
    };
  }
}

/** To 4 decimals: what a receipt shows. Decisions are taken on the full value. */
export function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
