// An agent considered for the tasks of one queue, with its score and rank; kept from round to round. A score is
// computed when read. While only assignments happen, agents just get busier, so an outdated score is never too low. So
// a fresh candidate in first position is the best. All other changes of an agent are applied when they happen, or when
// a round begins (agent-index.ts).

import type { Kind } from "../ids.ts";
import type { Policy } from "../state/policy.ts";
import type { CandidateTerms, DecidedBy } from "../state/receipt.ts";
import type { AgentRow, SuccessRecord } from "../state/state.ts";
import type { Quality } from "../state/success-rate.ts";
import type { Writable } from "../state/writable.ts";
import type { PeerTier, Standing } from "./eligibility.ts";
import { rounded } from "./rounded.ts";
import { score, vaporaLoad } from "./score.ts";

/** Facts about an agent for all its candidates. An agent has a candidate for each kind. */
export class Contender {
  readonly agent: AgentRow;
  /** The agent's kinds when its candidates were made: a join may change them. */
  readonly kinds: ReadonlySet<Kind>;
  readonly candidates: Candidate[] = [];
  /** L(agent) at the round's start, [0, 1]. */
  backlog = 0;
  /** Grows with each change of a score's inputs. */
  version = 0;

  constructor(agent: AgentRow) {
    this.agent = agent;
    this.kinds = agent.kinds;
  }
}

/** The settings of the policy that rank agents. */
export type RankingPolicy = Pick<Policy, "agentRule" | "lambda">;

/** The pool that ranks a candidate, notified of changes of the agent. */
export interface Ranks {
  /** The agent's row changed just now. */
  renew(candidate: Candidate): void;
  /** The agent became full within the round, or is being probed. */
  update(candidate: Candidate): void;
  dismiss(candidate: Candidate): void;
}

export class Candidate {
  readonly contender: Contender;
  readonly pool: Ranks;
  /** `feasible`, `probe`, or the filter that the agent fails. Kept by the pool. */
  standing: Standing = "offline";
  /** How the pool counts the candidate among its peers (`Peers`). */
  countedAs: PeerTier | "none" = "none";
  /** The agent's learned record for the kind, and the record's attempts when assessed. Kept by the pool. */
  record: SuccessRecord | undefined;
  attemptsAssessed = 0;
  /** Position in the heap that holds the candidate; −1 outside. Only the heap writes it. */
  heapAt = -1;
  readonly #policy: RankingPolicy;
  #successRate = 0;
  #speed = 1;
  #version = -1;
  /** As of the last refresh, like the fields below. Compared in this order. */
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

  /** Whether an input changed since the score was computed. */
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

  /**
   * The highest score first; then fewer in flight, longest since assigned, id. With `first-idle`: idle agents first,
   * then the busy agents, each in order of joining. A strict total order.
   */
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

  /** The first rule of `isBefore` in which two candidates differ. */
  decidedAgainst(other: Candidate): DecidedBy {
    if (this.#policy.agentRule === "first-idle")
      return (this.#inFlight === 0) === (other.#inFlight === 0) ? "joined" : "in-flight";
    if (this.#score !== other.#score) return "score";
    if (this.#inFlight !== other.#inFlight) return "in-flight";
    return this.#tieOrder === other.#tieOrder ? "id" : "longest-idle";
  }

  /** As of the last refresh, for the receipt. Computed once for all receipts that show it. */
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
