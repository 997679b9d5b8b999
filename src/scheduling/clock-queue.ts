// The members of one level of a lane (projects, or the users of one) by who goes next, kept from round to round.
// Answers three questions, each in O(log n): who waits past the ceiling, who has the lowest clock, and who was
// served longest ago.
//
// The one thing to know: an account stands in many lanes, and a grant in one of them moves it in all. Moving it
// everywhere at once would cost a grant as much as the account has lanes. So each place keeps the key it was given,
// keys only ever get worse (clocks and orders never fall), and whoever comes to the front with an outdated key is
// put where it belongs before anybody looks. Members at or behind virtual time are equal by clock, so they stand
// apart, by who was served longest ago: a virtual time that moves on moves nobody among them.

import { type HeapItem, IndexedHeap } from "../core/indexed-heap.ts";
import type { Account } from "./account.ts";

/** Where a member stands in one of the heaps, under the key it had when it was put there. */
interface Place extends HeapItem {
  readonly member: Member;
  clock: number;
  servedOrder: number;
}

interface WaitPlace extends HeapItem {
  readonly member: Member;
}

/** What waiting is counted in. */
export interface Since {
  readonly ticks: number;
  readonly turns: number;
}

/** One who waits at one level of one lane. */
export interface Member {
  readonly account: Account;
  /** When it entered the lane or was last granted in it, whichever is later. */
  sinceOrder: number;
  /** As counted there: the kind's tick, and the turns that its project has had in the lane (0 of a project). */
  since: Since;
  /** Its places in the one queue that holds it; undefined while it is in none. */
  places: Places | undefined;
}

interface Places {
  readonly claim: Place;
  readonly wait: WaitPlace;
  /** Absent where nobody asks who was served longest ago. */
  readonly service: Place | undefined;
  isAhead: boolean;
}

export class ClockQueue<Item extends Member> {
  /** Clock above virtual time when last looked at. */
  readonly #ahead = new IndexedHeap<Place>(hasLowerClock);
  /** At or behind virtual time. */
  readonly #behind = new IndexedHeap<Place>(isServedLongerAgo);
  readonly #byService: IndexedHeap<Place> | undefined;
  readonly #byWait = new IndexedHeap<WaitPlace>(waitsLonger);
  /** Of who waits longest, kept here because every decision asks for it. */
  #longestSince: Since | undefined;

  /** @param isServiceOrdered whether `longestUnserved` is asked for */
  constructor({ isServiceOrdered }: { readonly isServiceOrdered: boolean }) {
    this.#byService = isServiceOrdered ? new IndexedHeap<Place>(isServedLongerAgo) : undefined;
  }

  get size(): number {
    return this.#byWait.size;
  }

  enter(member: Item): void {
    const { clock, servedOrder } = member.account;
    const places: Places = {
      claim: { heapAt: -1, member, clock, servedOrder },
      wait: { heapAt: -1, member },
      service: this.#byService === undefined ? undefined : { heapAt: -1, member, clock, servedOrder },
      isAhead: true,
    };
    member.places = places;
    this.#ahead.push(places.claim);
    this.#byWait.push(places.wait);
    if (places.service !== undefined) this.#byService?.push(places.service);
    this.#noteLongest();
  }

  leave(member: Item): void {
    const { places } = member;
    if (places === undefined) return;
    (places.isAhead ? this.#ahead : this.#behind).remove(places.claim);
    this.#byWait.remove(places.wait);
    if (places.service !== undefined) this.#byService?.remove(places.service);
    member.places = undefined;
    this.#noteLongest();
  }

  /** Its `sinceOrder` is about to grow: it goes to the back of those that wait. */
  restartWait(member: Item, sinceOrder: number, since: Since): void {
    const wait = member.places?.wait;
    if (wait !== undefined) this.#byWait.remove(wait);
    member.sinceOrder = sinceOrder;
    member.since = since;
    if (wait !== undefined) this.#byWait.push(wait);
    this.#noteLongest();
  }

  /** Since when whoever waits longest here does; undefined while nobody waits. */
  get longestSince(): Since | undefined {
    return this.#longestSince;
  }

  /** Who waits longest here. */
  longestWaiting(): Item | undefined {
    return this.#byWait.peek()?.member as Item | undefined;
  }

  /** Who was served longest ago, those never served first. */
  longestUnserved(): Item | undefined {
    const heap = this.#byService;
    for (let place = heap?.peek(); heap !== undefined && place !== undefined; place = heap.peek()) {
      if (place.servedOrder === place.member.account.servedOrder) return place.member as Item;
      renew(heap, place);
    }
    return undefined;
  }

  /** Whether virtual time may have reached somebody that was ahead of it when last looked at. */
  isReachedBy(virtualTime: number): boolean {
    const first = this.#ahead.peek();
    return first !== undefined && first.clock <= virtualTime;
  }

  /** The lowest max(clock, virtual time); among equals served longest ago, then first arrived. */
  lowestClock(virtualTime: number): Item | undefined {
    this.#overtaken(virtualTime);
    for (let place = this.#behind.peek(); place !== undefined; place = this.#behind.peek()) {
      const { clock, servedOrder } = place.member.account;
      if (clock > virtualTime) this.#move(place, true);
      else if (place.servedOrder !== servedOrder) renew(this.#behind, place);
      else return place.member as Item;
    }
    return this.#ahead.peek()?.member as Item | undefined;
  }

  #noteLongest(): void {
    this.#longestSince = this.#byWait.peek()?.member.since;
  }

  /** Brings the front of `ahead` up to date and moves out whom virtual time has reached. */
  #overtaken(virtualTime: number): void {
    for (let place = this.#ahead.peek(); place !== undefined; place = this.#ahead.peek()) {
      const { clock, servedOrder } = place.member.account;
      if (clock <= virtualTime) this.#move(place, false);
      else if (place.clock !== clock || place.servedOrder !== servedOrder) renew(this.#ahead, place);
      else return;
    }
  }

  #move(place: Place, isAhead: boolean): void {
    (isAhead ? this.#behind : this.#ahead).remove(place);
    takeKey(place);
    (isAhead ? this.#ahead : this.#behind).push(place);
    (place.member.places as Places).isAhead = isAhead;
  }
}

function renew(heap: IndexedHeap<Place>, place: Place): void {
  heap.remove(place);
  takeKey(place);
  heap.push(place);
}

function takeKey(place: Place): void {
  place.clock = place.member.account.clock;
  place.servedOrder = place.member.account.servedOrder;
}

function hasLowerClock(a: Place, b: Place): boolean {
  return a.clock !== b.clock ? a.clock < b.clock : isServedLongerAgo(a, b);
}

function isServedLongerAgo(a: Place, b: Place): boolean {
  if (a.servedOrder !== b.servedOrder) return a.servedOrder < b.servedOrder;
  return a.member.account.arrivedOrder < b.member.account.arrivedOrder;
}

function waitsLonger(a: WaitPlace, b: WaitPlace): boolean {
  return a.member.sinceOrder < b.member.sinceOrder;
}
