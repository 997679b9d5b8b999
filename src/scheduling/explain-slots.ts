// Which request for slots comes next, and by what: the ranking of a resource's waiters at one moment, with L and its
// terms. For people; no decision reads it. The first request that fits gets the next free slot (slot-planner.ts).
// Every release ages the waiters, so the later ranks are the order of this moment alone.

import type { AgentId, Instant, ProjectId, ResourceName, SlotHandle, UserId } from "../ids.ts";
import { resourceRowOf, slotQueueOf } from "../state/slot-rows.ts";
import type { ResourceRow, SlotLeaseRow, SwarmState } from "../state/state.ts";
import type { TokensReason } from "./gates.ts";
import { loadOf, maximaOf, type Queue } from "./load.ts";
import { rounded } from "./rounded.ts";
import {
  ageAt,
  alphaAt,
  freeSlots,
  isPastStarvationLimit,
  isReachable,
  queuesAt,
  slotStarvationLimitTicks,
  tokensReasonOf,
} from "./slot-planner.ts";

/** Slots that a request wants of one resource. */
export interface SlotNeed {
  readonly resource: ResourceName;
  readonly wanted: number;
  readonly free: number;
}

export interface SlotStanding {
  /** Place in the order of this moment; 1 is next. */
  readonly place: number;
  readonly agent: AgentId;
  /** Queue of its own within the agent. */
  readonly as: string | undefined;
  readonly handle: SlotHandle;
  readonly holder: string | undefined;
  readonly label: string | undefined;
  readonly project: ProjectId | undefined;
  readonly user: UserId | undefined;
  /** To be reserved at the grant; 0: none. */
  readonly tokens: number;
  /** With `tokens`: what has too little left. */
  readonly waitsFor: TokensReason | undefined;
  readonly weight: number;
  readonly waitedMs: number;
  /** Releases of the resource since the request. */
  readonly ageTicks: number;
  /** The age after which the request comes first; undefined: no such limit. */
  readonly limitTicks: number | undefined;
  /** `starvation-limit`: in order of asking, before all others · `load`: by L · `tokens`: skipped, because its
   *  tokens do not fit a budget or a rate · `unreachable`: skipped, because its agent does not answer. */
  readonly by: "starvation-limit" | "load" | "tokens" | "unreachable";
  /** L of the queue: the sum of its two terms, [0, 1]. Rounded to 4 decimals, like the terms. */
  readonly load: number;
  /** α · Q / max Q. */
  readonly depthTerm: number;
  /** (1 − α) · D / max D. */
  readonly ageTerm: number;
  /** Q: weights of all waiting requests of the queue. */
  readonly queueDepth: number;
  /** D: age of its oldest request, ticks. */
  readonly oldestAge: number;
  /** Everything that the request wants, with the slots that are free now. */
  readonly needs: readonly SlotNeed[];
}

export interface SlotRanking {
  readonly alpha: number;
  readonly tick: number;
  /** max Q and max D over the waiting agents: weight and ticks. */
  readonly maxQueueDepth: number;
  readonly maxOldestAge: number;
  /** In the order of this moment. */
  readonly standings: readonly SlotStanding[];
}

/** Ranks the requests that wait for a resource. @param at no earlier than the state */
export function rankWaiters(state: SwarmState, row: ResourceRow, at: Instant): SlotRanking {
  const queues = queuesAt(row);
  const maxima = maximaOf(queues.values());
  const alpha = alphaAt(state, row);
  const ranked = [...row.waiting.values()].map((lease) => {
    const queue = queues.get(slotQueueOf(lease)) ?? { queueDepth: 0, oldestAge: 0 };
    const waitsFor = tokensReasonOf(state, lease, at);
    return {
      lease,
      queue,
      waitsFor,
      by: basisOf(state, lease, waitsFor),
      load: loadOf(queue, maxima, alpha),
    };
  });
  ranked.sort(
    (a, b) =>
      bases.indexOf(a.by) - bases.indexOf(b.by) ||
      (a.by === "load" ? b.load - a.load : 0) ||
      a.lease.order - b.lease.order,
  );
  return {
    alpha: rounded(alpha),
    tick: row.tick,
    maxQueueDepth: maxima.queueDepth / 1_000,
    maxOldestAge: maxima.oldestAge,
    standings: ranked.map(({ lease, queue, waitsFor, by, load }, index) => ({
      place: index + 1,
      agent: lease.agent,
      as: lease.as,
      handle: lease.handle,
      holder: lease.holder,
      label: lease.label,
      project: lease.project,
      user: lease.user,
      tokens: lease.tokens,
      waitsFor,
      weight: lease.weightThousandths / 1_000,
      waitedMs: Math.max(0, at - lease.requestedAt),
      ageTicks: ageAt(row, lease),
      limitTicks: limitOf(state, row, lease),
      by,
      load: rounded(load),
      ...termsOf(queue, maxima, alpha),
      queueDepth: queue.queueDepth / 1_000,
      oldestAge: queue.oldestAge,
      needs: needsOf(state, lease),
    })),
  };
}

/** In the order of serving. */
const bases: readonly SlotStanding["by"][] = ["starvation-limit", "load", "tokens", "unreachable"];

function basisOf(
  state: SwarmState,
  lease: SlotLeaseRow,
  waitsFor: TokensReason | undefined,
): SlotStanding["by"] {
  if (!isReachable(state, lease)) return "unreachable";
  if (waitsFor !== undefined) return "tokens";
  return isPastStarvationLimit(state, lease) ? "starvation-limit" : "load";
}

function limitOf({ policy }: SwarmState, row: ResourceRow, lease: SlotLeaseRow): number | undefined {
  const limit = slotStarvationLimitTicks(policy, lease) * row.waiting.size;
  return Number.isFinite(limit) ? limit : undefined;
}

/** L with one α of the two at a time: each gives one term. */
function termsOf(queue: Queue, maxima: Queue, alpha: number): { depthTerm: number; ageTerm: number } {
  return {
    depthTerm: rounded(alpha * loadOf(queue, maxima, 1)),
    ageTerm: rounded((1 - alpha) * loadOf(queue, maxima, 0)),
  };
}

function needsOf(state: SwarmState, { needs }: SlotLeaseRow): SlotNeed[] {
  return [...needs].map(([resource, wanted]) => ({
    resource,
    wanted,
    free: freeSlots(resourceRowOf(state, resource)),
  }));
}
