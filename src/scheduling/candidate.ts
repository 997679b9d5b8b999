// An agent considered for the tasks of one kind and role during one round, with its score and its place in the
// ranking. Scores are computed when looked at: within a round an agent only gets busier, so a stale score is
// never too low, and whoever stands first with a fresh one is the best.

import type { CandidateTerms, DecidedBy } from "../core/receipt.ts";
import type { AgentRow } from "../core/state.ts";
import type { Standing } from "./eligibility.ts";
import { score, vaporaLoad } from "./score.ts";

/** Where a candidate is ranked, and what is to be told when its agent filled or is being probed. */
export interface Ranks {
  update(candidate: Candidate): void;
}

/** One agent with a place free, during one round: what its candidacies for several kinds share. */
export class Contender {
  readonly agent: AgentRow;
  /** L(agent) at the round's start, [0, 1]. */
  readonly backlog: number;
  readonly candidates: Candidate[] = [];
  /** Assignments it got in this round, all of them applied. */
  assigned = 0;

  constructor(agent: AgentRow, backlog: number) {
    this.agent = agent;
    this.backlog = backlog;
  }
}

export interface CandidateInit {
  readonly contender: Contender;
  readonly ranks: Ranks;
  readonly standing: Standing;
  /** Learnt for the kind, [0, 1]. */
  readonly successRate: number;
  readonly lambda: number;
}

export class Candidate {
  readonly contender: Contender;
  readonly ranks: Ranks;
  /** `feasible`, `probe`, or why not any more. Kept by its ranks. */
  standing: Standing;
  /** Position in the one heap that holds it; −1 when in none. Written by the heap alone. */
  heapAt = -1;
  readonly #successRate: number;
  readonly #backlogCost: number;
  #score = 0;
  /** Of the agent when the score was computed, like the two above and below. */
  #inFlight = 0;
  #lastAssignedOrder = 0;
  #assignedThen = 0;
  #terms: CandidateTerms | undefined;

  constructor({ contender, ranks, standing, successRate, lambda }: CandidateInit) {
    this.contender = contender;
    this.ranks = ranks;
    this.standing = standing;
    this.#successRate = successRate;
    this.#backlogCost = lambda * contender.backlog;
    this.refresh();
  }

  get agent(): AgentRow {
    return this.contender.agent;
  }

  /** Whether the agent was assigned something since the score was computed. */
  get isStale(): boolean {
    return this.#assignedThen !== this.contender.assigned;
  }

  refresh(): void {
    const { agent, assigned } = this.contender;
    this.#assignedThen = assigned;
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
    this.#terms ??= this.#shown();
    return this.#terms;
  }

  #shown(): CandidateTerms {
    const { agent, backlog } = this.contender;
    return {
      agent: agent.id,
      score: rounded(this.#score),
      successRate: rounded(this.#successRate),
      load: rounded(vaporaLoad(this.#scoreTerms())),
      ...(backlog === 0 ? {} : { backlog: rounded(backlog) }),
    };
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
function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
