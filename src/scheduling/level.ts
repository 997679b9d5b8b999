// One level of a round's lanes: the projects of each lane, or the users of each project there, by who goes next. Two
// kinds: by clocks, which the state keeps in order from round to round, and by any other rule, put in order for the
// round. A group is whose members compete: a lane, or a project's part of one.

import { assert } from "../assert.ts";
import type { Instant } from "../ids.ts";
import type { Account } from "../state/account.ts";
import type { ClockQueue, Member } from "../state/clock-queue.ts";
import { type HeapItem, IndexedHeap } from "../state/indexed-heap.ts";
import { type CeilingTerms, isPastCeiling } from "./ceiling.ts";
import { type Claim, ceilingClaim, compareClaims, guaranteeClaim, ruleClaim } from "./claim.ts";

export interface Best<Item> {
  readonly member: Item;
  readonly claim: Claim;
}

export interface Level<Group, Item extends Member> {
  /** Who goes next, among those that are not out. */
  best(group: Group): Best<Item> | undefined;
  /** Takes whom `best` named last of the group out for the rest of the round. */
  exclude(group: Group, best: Item): void;
  /** The round is over: those taken out are members again. */
  close(): void;
}

export interface ClockTerms {
  /** Whose level it is: the swarm, or a project. */
  readonly owner: { readonly virtualTime: number };
  readonly ceiling: CeilingTerms;
  /** Served at this instant or before it, or never, goes before the rule; undefined where nothing is guaranteed. */
  readonly guaranteedUntil: Instant | undefined;
}

export interface ClockLevelInit<Group, Item extends Member> {
  readonly queueOf: (group: Group) => ClockQueue<Item>;
  readonly ownerOf: (group: Group) => ClockTerms["owner"];
  readonly ceilingOf: (group: Group) => CeilingTerms;
  /** Whether somebody may be past the ceiling. Spares `ceilingOf` where nobody can be. */
  readonly mayBePastCeiling: (group: Group) => boolean;
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
    if (this.#init.mayBePastCeiling(group)) {
      const member = queue.longestWaiting();
      if (member !== undefined && isPastCeiling(member, this.#init.ceilingOf(group)))
        return { member, claim: ceilingClaim(member) };
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

/** What a member of a level that goes by clocks claims: `best` is whose claim comes first. */
export function clockClaim(member: Member, { ceiling, guaranteedUntil, owner }: ClockTerms): Claim {
  if (isPastCeiling(member, ceiling)) return ceilingClaim(member);
  if (guaranteedUntil !== undefined && isGuaranteed(member, guaranteedUntil))
    return guaranteeClaim(member.account);
  return clockRuleClaim(member.account, owner.virtualTime);
}

/** At or behind virtual time all are equal. It stays what it is while virtual time moves: only a grant by this rule
 *  moves it, and no further than to the lowest claim of all. */
function clockRuleClaim(account: Account, virtualTime: number): Claim {
  return ruleClaim(account, Math.max(account.clock, virtualTime));
}

/** Whether nothing was granted to a project for so long that it goes first, once. */
export function isGuaranteed({ account }: Member, until: Instant): boolean {
  return account.servedOrder === 0 || account.servedAt <= until;
}

interface RankedPlace<Item> extends HeapItem {
  readonly member: Item;
  claim: Claim;
}

export interface RankedLevelInit<Group, Item extends Member> {
  readonly membersOf: (group: Group) => Iterable<Item>;
  /** Undefined when a member has nothing left to claim. */
  readonly claimOf: (member: Item) => Claim | undefined;
}

/** By a rule that gives each member a claim, which only gets worse while the round lasts. */
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
    // Nothing of the state was touched.
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
