// One level of a round's queues: the projects of each queue, or the users of each project in a queue, by turn. Two
// kinds exist: by clocks, which the state keeps in order from round to round, and by any other rule, ordered for the
// round. A group is a set of competing members: a queue, or a project's part of a queue.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import type { Account } from "../state/account.ts";
import type { ClockQueue, Member } from "../state/clock-queue.ts";
import { type HeapItem, IndexedHeap } from "../state/indexed-heap.ts";
import { type Claim, compareClaims, guaranteeClaim, ruleClaim, starvationLimitClaim } from "./claim.ts";
import { isPastStarvationLimit, type StarvationLimitTerms } from "./starvation-limit.ts";

export interface Best<Item> {
  readonly member: Item;
  readonly claim: Claim;
}

export interface Level<Group, Item extends Member> {
  /** The next member, among those that are not out. */
  best(group: Group): Best<Item> | undefined;
  /** Takes the member that `best` returned last out of the group for the rest of the round. */
  exclude(group: Group, best: Item): void;
  /** Ends the round: excluded members are back. */
  close(): void;
}

export interface ClockTerms {
  /** The level's owner: the swarm, or a project. */
  readonly owner: { readonly virtualTime: number };
  readonly starvationLimit: StarvationLimitTerms;
  /** A member last served at or before this instant, or never, goes before the rule; undefined without a guarantee. */
  readonly guaranteedUntil: Instant | undefined;
}

export interface ClockLevelInit<Group, Item extends Member> {
  readonly queueOf: (group: Group) => ClockQueue<Item>;
  readonly ownerOf: (group: Group) => ClockTerms["owner"];
  readonly starvationLimitOf: (group: Group) => StarvationLimitTerms;
  /** Whether any member may be past the starvation limit. Saves the exact `starvationLimitOf` where none can be. */
  readonly mayBePastStarvationLimit: (group: Group) => boolean;
  readonly guaranteedUntil: ClockTerms["guaranteedUntil"];
}

export class ClockLevel<Group, Item extends Member> implements Level<Group, Item> {
  readonly #init: ClockLevelInit<Group, Item>;
  readonly #excluded: { readonly queue: ClockQueue<Item>; readonly member: Item }[] = [];

  constructor(init: ClockLevelInit<Group, Item>) {
    this.#init = init;
  }

  best(group: Group): Best<Item> | undefined {
    const { guaranteedUntil } = this.#init;
    const queue = this.#init.queueOf(group);
    if (this.#init.mayBePastStarvationLimit(group)) {
      const member = queue.longestWaiting();
      if (member !== undefined && isPastStarvationLimit(member, this.#init.starvationLimitOf(group)))
        return { member, claim: starvationLimitClaim(member) };
    }
    const unserved = guaranteedUntil === undefined ? undefined : queue.servedUntil(guaranteedUntil);
    if (unserved !== undefined) return { member: unserved, claim: guaranteeClaim(unserved.account) };
    const { virtualTime } = this.#init.ownerOf(group);
    const number = queue.lowestClock(virtualTime);
    if (number === -1) return undefined;
    return {
      member: queue.memberNumbered(number),
      claim: clockRuleClaim(queue.accountNumbered(number), virtualTime),
    };
  }

  exclude(group: Group, best: Item): void {
    const queue = this.#init.queueOf(group);
    queue.setAside(best);
    this.#excluded.push({ queue, member: best });
  }

  close(): void {
    for (const { queue, member } of this.#excluded) queue.takeBack(member);
    this.#excluded.length = 0;
  }
}

/** The claim of a member of a level that goes by clocks: `best` returns the member with the lowest claim. */
export function clockClaim(member: Member, { starvationLimit, guaranteedUntil, owner }: ClockTerms): Claim {
  if (isPastStarvationLimit(member, starvationLimit)) return starvationLimitClaim(member);
  if (guaranteedUntil !== undefined && isGuaranteed(member, guaranteedUntil))
    return guaranteeClaim(member.account);
  return clockRuleClaim(member.account, owner.virtualTime);
}

/**
 * All accounts at or behind virtual time are equal. The claim stays valid while virtual time moves: only a grant by
 * this rule moves virtual time, at most to the lowest claim of all.
 */
function clockRuleClaim(account: Account, virtualTime: number): Claim {
  return ruleClaim(account, Math.max(account.clock, virtualTime));
}

/** Whether a project had no grant for so long that it goes first, once. */
export function isGuaranteed({ account }: Member, until: Instant): boolean {
  return account.servedOrder === 0 || account.servedAt <= until;
}

interface RankedPlace<Item> extends HeapItem {
  readonly member: Item;
  claim: Claim;
}

export interface RankedLevelInit<Group, Item extends Member> {
  readonly membersOf: (group: Group) => Iterable<Item>;
  /** Undefined for a member without tasks left to claim for. */
  readonly claimOf: (member: Item) => Claim | undefined;
}

/** A level by a rule that gives each member a claim, which only gets worse while the round lasts. */
export class RankedLevel<Group, Item extends Member> implements Level<Group, Item> {
  readonly #init: RankedLevelInit<Group, Item>;
  readonly #placesOf = new Map<Group, IndexedHeap<RankedPlace<Item>>>();

  constructor(init: RankedLevelInit<Group, Item>) {
    this.#init = init;
  }

  best(group: Group): Best<Item> | undefined {
    const places = this.#placesOf.get(group) ?? this.#rank(group);
    for (let place = places.peek(); place !== undefined; place = places.peek()) {
      const claim = this.#init.claimOf(place.member);
      if (claim !== undefined && compareClaims(claim, place.claim) === 0) return place;
      places.remove(place);
      if (claim === undefined) continue;
      place.claim = claim;
      places.push(place);
    }
    return undefined;
  }

  exclude(group: Group, best: Item): void {
    const places = this.#placesOf.get(group);
    const place = places?.peek();
    assert(place?.member === best, "whoever is taken out was the best");
    places?.remove(place);
  }

  close(): void {
    // The state was not changed.
  }

  #rank(group: Group): IndexedHeap<RankedPlace<Item>> {
    const places = new IndexedHeap<RankedPlace<Item>>((a, b) => compareClaims(a.claim, b.claim) < 0);
    for (const member of this.#init.membersOf(group)) {
      const claim = this.#init.claimOf(member);
      if (claim !== undefined) places.push({ heapAt: -1, member, claim });
    }
    this.#placesOf.set(group, places);
    return places;
  }
}
