// One level of a lane during one round: its projects, or the users of one of them, by who goes next. Two kinds:
// by clocks, which the state keeps in order from round to round, and by any other rule, put in order for the round.

import { assert } from "../assert.ts";
import { type HeapItem, IndexedHeap } from "../core/indexed-heap.ts";
import type { Instant } from "../ids.ts";
import { type CeilingTerms, isPastCeiling } from "./ceiling.ts";
import { type Claim, ceilingClaim, compareClaims, guaranteeClaim, ruleClaim } from "./claim.ts";
import type { ClockQueue, Member } from "./clock-queue.ts";

export interface Best<Item> {
  readonly member: Item;
  readonly claim: Claim;
}

export interface Level<Item extends Member> {
  /** Who goes next, among those that are not out. */
  best(): Best<Item> | undefined;
  /** Takes whom `best` named last out for the rest of the round. */
  excludeBest(): void;
  /** The round is over: those taken out are members again. */
  close(): void;
}

export interface ClockTerms {
  /** Whose level it is: the swarm, or a project. */
  readonly owner: { readonly virtualTime: number };
  readonly ceiling: CeilingTerms;
  /** Served before this instant, or never, goes before the rule; undefined where nothing is guaranteed. */
  readonly guaranteedBefore: Instant | undefined;
}

export class ClockLevel<Item extends Member> implements Level<Item> {
  readonly #queue: ClockQueue<Item>;
  readonly #terms: ClockTerms;
  #best: Item | undefined;
  #excluded: Item[] | undefined;

  constructor(queue: ClockQueue<Item>, terms: ClockTerms) {
    this.#queue = queue;
    this.#terms = terms;
  }

  best(): Best<Item> | undefined {
    const best = this.#find();
    this.#best = best?.member;
    return best;
  }

  #find(): Best<Item> | undefined {
    const { ceiling, guaranteedBefore, owner } = this.#terms;
    const since = this.#queue.longestSince;
    if (since === undefined) return undefined;
    if (isPastCeiling({ since }, ceiling)) return this.#claiming(this.#queue.longestWaiting() as Item);
    if (guaranteedBefore !== undefined) {
      const unserved = this.#queue.longestUnserved() as Item;
      if (isGuaranteed(unserved, guaranteedBefore)) return this.#claiming(unserved);
    }
    return this.#claiming(this.#queue.lowestClock(owner.virtualTime) as Item);
  }

  #claiming(member: Item): Best<Item> {
    return { member, claim: clockClaim(member, this.#terms) };
  }

  excludeBest(): void {
    assert(this.#best !== undefined, "whoever is taken out was the best");
    this.#queue.leave(this.#best);
    this.#excluded ??= [];
    this.#excluded.push(this.#best);
    this.#best = undefined;
  }

  close(): void {
    for (const member of this.#excluded ?? []) this.#queue.enter(member);
    this.#excluded = undefined;
  }
}

/** What a member of a level that goes by clocks claims: `best` is whose claim comes first. */
export function clockClaim(member: Member, { ceiling, guaranteedBefore, owner }: ClockTerms): Claim {
  if (isPastCeiling(member, ceiling)) return ceilingClaim(member);
  const { account } = member;
  if (guaranteedBefore !== undefined && isGuaranteed(member, guaranteedBefore))
    return guaranteeClaim(account);
  // At or behind virtual time all are equal, whatever it is by now.
  return ruleClaim(account, account.clock <= owner.virtualTime ? -1 : account.clock);
}

/** Whether nothing was granted to a project for so long that it goes first, once. */
export function isGuaranteed({ account }: Member, before: Instant): boolean {
  return account.servedOrder === 0 || account.servedAt <= before;
}

interface RankedPlace<Item> extends HeapItem {
  readonly member: Item;
  claim: Claim;
}

/** By a rule that gives each member a claim, which only gets worse while the round lasts. */
export class RankedLevel<Item extends Member> implements Level<Item> {
  readonly #places = new IndexedHeap<RankedPlace<Item>>((a, b) => compareClaims(a.claim, b.claim) < 0);
  readonly #claimOf: (member: Item) => Claim | undefined;

  /** @param claimOf undefined when a member has nothing left to claim */
  constructor(members: Iterable<Item>, claimOf: (member: Item) => Claim | undefined) {
    this.#claimOf = claimOf;
    for (const member of members) {
      const claim = claimOf(member);
      if (claim !== undefined) this.#places.push({ heapAt: -1, member, claim });
    }
  }

  best(): Best<Item> | undefined {
    for (let place = this.#places.peek(); place !== undefined; place = this.#places.peek()) {
      const claim = this.#claimOf(place.member);
      if (claim === undefined) this.#places.remove(place);
      else if (compareClaims(claim, place.claim) === 0) return place;
      else {
        this.#places.remove(place);
        place.claim = claim;
        this.#places.push(place);
      }
    }
    return undefined;
  }

  excludeBest(): void {
    const place = this.#places.peek();
    assert(place !== undefined, "whoever is taken out was the best");
    this.#places.remove(place);
  }

  close(): void {
    // Nothing of the state was touched.
  }
}
