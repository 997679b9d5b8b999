// Rate limits for the messages of agents: one token bucket per agent and sort of message. The limits are above the
// traffic of the protocol. A surplus message costs the leader a look at its subject, a surplus request also a refusal.

import type { Clock } from "../clock.ts";
import type { AgentId, GroupId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { AgentVerb } from "../protocol/subjects.ts";
import { type AgentRow, capacityOf } from "../state/state.ts";

interface Bucket {
  /** Messages left. */
  left: number;
  filledMonotonicMs: number;
  /** Time of the last refusal. */
  refusedMonotonicMs: number;
}

/** An agent by the tokens of its subject. */
export interface AgentName {
  readonly group: GroupId;
  readonly agent: AgentId;
}

export type Admission = "heard" | "dropped" | "dropped-first";

/** Sorts of messages. Each sort has a bucket. */
export type MessageSort = "progress" | "chunks" | "heartbeats" | "joins" | "results" | "slot-requests";

const sorts: Readonly<Record<AgentVerb, MessageSort>> = {
  progress: "progress",
  chunk: "chunks",
  heartbeat: "heartbeats",
  join: "joins",
  leave: "joins",
  result: "results",
  acquire: "slot-requests",
  touch: "slot-requests",
  release: "slot-requests",
};

/** By the last token of an agent's subject. */
export const sortByVerb: ReadonlyMap<string, MessageSort> = new Map(Object.entries(sorts));

export class AgentGate {
  readonly #clock: Clock;
  /** By agent and sort; longest not asked for first. */
  readonly #bucketByKey = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param row a known agent
   *  @returns `dropped-first` for the first dropped message after a quiet while */
  admit({ group, agent }: AgentName, row: AgentRow | undefined, sort: MessageSort): Admission {
    const bucket = this.#filled(`${group} ${agent} ${sort}`, mostOf(sort, row));
    if (bucket.left >= 1) {
      bucket.left -= 1;
      return "heard";
    }
    const now = bucket.filledMonotonicMs;
    const isFirst = now - bucket.refusedMonotonicMs > limits.agentFloodQuietMs;
    bucket.refusedMonotonicMs = now;
    return isFirst ? "dropped-first" : "dropped";
  }

  #filled(key: string, most: number): Bucket {
    const now = this.#clock.monotonicMs();
    const known = this.#bucketByKey.get(key);
    this.#bucketByKey.delete(key);
    const bucket = known ?? {
      left: most,
      filledMonotonicMs: now,
      refusedMonotonicMs: Number.NEGATIVE_INFINITY,
    };
    bucket.left = Math.min(most, bucket.left + (most * (now - bucket.filledMonotonicMs)) / 1_000);
    bucket.filledMonotonicMs = now;
    this.#bucketByKey.set(key, bucket);
    if (this.#bucketByKey.size > limits.agentBucketsMax) this.#forgetOldest();
    return bucket;
  }

  #forgetOldest(): void {
    const [oldest] = this.#bucketByKey.keys();
    if (oldest !== undefined) this.#bucketByKey.delete(oldest);
  }
}

/** A second. */
function mostOf(sort: MessageSort, row: AgentRow | undefined): number {
  const capacity = row === undefined ? 0 : capacityOf(row);
  if (sort === "progress") return capacity * limits.progressPerAttemptMax;
  if (sort === "chunks") return capacity * limits.chunkMessagesPerAttemptMax;
  return limits.agentMessagesMax[sort];
}
