// An agent considered for the tasks of one kind and role, with its score and its place in the ranking; kept from
// round to round. A score is computed when it is looked at: while only assignments happen an agent just gets
// busier, so an outdated score is never too low, and whoever stands first with a fresh one is the best. Whatever
// else happens to an agent is taken up as it happens, or as a round begins (agent-index.ts).

import type { Kind } from "../ids.ts";
import type { Policy } from "../state/policy.ts";
import type { CandidateTerms, DecidedBy } from "../state/receipt.ts";
import type { AgentRow, SuccessRecord } from "../state/state.ts";
import type { Quality } from "../state/success-rate.ts";
import type { Writable } from "../state/writable.ts";
import type { Standing } from "./eligibility.ts";
import { rounded } from "./rounded.ts";
import { score, vaporaLoad } from "./score.ts";

/** One agent: what its candidacies for several kinds share. */
export class Contender {
  readonly agent: AgentRow;
  /** Of the agent when its candidacies were made: a join may change them. */
  readonly kinds: ReadonlySet<Kind>;
  readonly candidates: Candidate[] = [];
  /** L(agent) at the round's start, [0, 1]. */
  backlog = 0;
  /** Grows with each change of what scores are made of. */
  version = 0;

  constructor(agent: AgentRow) {
    this.agent = agent;
    this.kinds = agent.kinds;
  }
}

/** What of the policy ranks agents. */
export type RankingPolicy = Pick<Policy, "agentRule" | "lambda">;

/** Where a candidate is ranked: told what became of its agent. */
export interface Ranks {
  /** Something of the agent's row changed just now. */
  renew(candidate: Candidate): void;
  /** The agent filled within the round, or is being probed. */
  update(candidate: Candidate): void;
  dismiss(candidate: Candidate): void;
}

export class Candidate {
  readonly contender: Contender;
  readonly pool: Ranks;
  /** `feasible`, `probe`, or why not. Kept by its pool. */
  standing: Standing = "offline";
  /** As what its pool counted it among those that could have a task in the long run. */
  countedAs: "none" | "suspended" | "unsuspended" = "none";
  /** What was learnt of its agent for its kind, and how many attempts of it were in when it was assessed. Kept by its
   *  pool. */
  record: SuccessRecord | undefined;
  attemptsAssessed = 0;
  /** Position in the one heap that holds it; −1 when in none. Written by the heap alone. */
  heapAt = -1;
  readonly #policy: RankingPolicy;
  #successRate = 0;
  #speed = 1;
  #version = -1;
  /** As of the last refresh, like all that follows. Compared in this order. */
  #score = 0;
  #inFlight = 0;
  #tieOrder = 0;
  #terms: CandidateTerms | undefined;

  constructor(contender: Contender, pool: Ranks, policy: RankingPolicy) {
    this.contender = contender;
    this.pool = pool;
    this.#policy = policy;
  }

  get agent(): AgentRow {
    return this.contender.agent;
  }

  assess({ successRate, speed }: Quality): void {
    this.#successRate = successRate;
    this.#speed = speed;
    this.#version = -1;
  }

  /** Whether something changed since the score was computed. */
  get isStale(): boolean {
    return this.#version !== this.contender.version;
  }

  refresh(): void {
    const { agent, version } = this.contender;
    this.#version = version;
    this.#inFlight = agent.open.size;
    const { agentRule, lambda } = this.#policy;
    this.#score = score(this.#scoreTerms(), this.#speed, lambda * this.contender.backlog);
    this.#tieOrder = agentRule === "score" ? agent.lastAssignedOrder : agent.joinedOrder;
    this.#terms = undefined;
  }

  /** The highest score first; then fewer in flight, longest since assigned, id. By `first-idle`: those that hold
   *  nothing, then the others, each in order of joining. A strict total order. */
  isBefore(other: Candidate): boolean {
    if (this.#policy.agentRule === "first-idle") {
      const isIdle = this.#inFlight === 0;
      if (isIdle !== (other.#inFlight === 0)) return isIdle;
    } else {
      if (this.#score !== other.#score) return this.#score > other.#score;
      if (this.#inFlight !== other.#inFlight) return this.#inFlight < other.#inFlight;
    }
    if (this.#tieOrder !== other.#tieOrder) return this.#tieOrder < other.#tieOrder;
    return this.agent.id < other.agent.id;
  }

  /** The first rule of `isBefore` in which the two differ. */
  decidedAgainst(other: Candidate): DecidedBy {
    if (this.#policy.agentRule === "first-idle")
      return (this.#inFlight === 0) === (other.#inFlight === 0) ? "joined" : "in-flight";
    if (this.#score !== other.#score) return "score";
    if (this.#inFlight !== other.#inFlight) return "in-flight";
    return this.#tieOrder === other.#tieOrder ? "id" : "longest-idle";
  }

  /** As of the last refresh, for the receipt. Made once for all the receipts that show it. */
  get terms(): CandidateTerms {
    this.#terms ??= this.#shown();
    return this.#terms;
  }

  #shown(): CandidateTerms {
    const { agent, backlog } = this.contender;
    const terms: Writable<CandidateTerms> = {
      agent: agent.id,
      score: rounded(this.#score),
      successRate: rounded(this.#successRate),
      load: rounded(vaporaLoad(this.#scoreTerms())),
    };
    if (backlog !== 0) terms.backlog = rounded(backlog);
    if (this.#speed !== 1) terms.speed = rounded(this.#speed);
    return terms;
  }

  #scoreTerms() {
    return {
      successRate: this.#successRate,
      inFlight: this.#inFlight,
      maxConcurrent: this.agent.maxConcurrent,
    };
  }
}
