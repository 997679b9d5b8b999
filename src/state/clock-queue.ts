// The members of one level of a queue (projects, or the users of one) by who goes next, kept from round to round.
// Answers three questions, each in O(log n): who waits past the starvation limit, who has the lowest clock, and who was
// served longest ago.
//
// The one thing to know: an account stands in many queues, and a grant in one of them moves it in all. Moving it
// everywhere at once would cost a grant as much as the account has queues. So each heap keeps the key it was given,
// keys only ever get worse (clocks and orders never fall), and whoever comes to the front with an outdated key is
// put where it belongs before anybody looks. Members at or behind virtual time are equal by clock, so those behind it
// stand apart, by who was served longest ago: a virtual time that moves on moves nobody among them.

import type { Instant } from "../ids.ts";
import type { Account } from "./account.ts";
import { KeyedHeap } from "./keyed-heap.ts";

/** What waiting is counted in: ticks of the queue's kind, or turns that the members' project has had in the queue. */
export type Unit = "ticks" | "turns";

/** One who waits at one level of one queue. */
export interface Member {
  readonly account: Account;
  /** When it entered the queue or was last granted in it, whichever is later: in orders, in ticks of the queue's kind,
   *  and in the turns that its project has had there (0 of a project). */
  sinceOrder: number;
  sinceTick: number;
  sinceTurn: number;
  /** Its number in the one queue that holds it; −1 while it is in none. Written by the queue alone. */
  number: number;
}

export class ClockQueue<Item extends Member> {
  #size = 0;
  /** Clock at or above virtual time when last looked at: by clock. */
  readonly #ahead = new KeyedHeap();
  /** Behind virtual time: by service. */
  readonly #behind = new KeyedHeap();
  readonly #byService: KeyedHeap | undefined;
  readonly #byWait = new KeyedHeap();
  /** Of who waits longest, kept here because every decision asks for it. */
  #longestTick = 0;
  #longestTurn = 0;
  /** By number, which is what a member is called in the heaps: at 2n the member, at 2n + 1 its account. */
  readonly #members: (Item | Account | undefined)[] = [];
  readonly #freeNumbers: number[] = [];

  /** @param isServiceOrdered whether `servedUntil` is asked for */
  constructor({ isServiceOrdered }: { readonly isServiceOrdered: boolean }) {
    this.#byService = isServiceOrdered ? new KeyedHeap() : undefined;
  }

  /** How many wait here, those set aside included. */
  get size(): number {
    return this.#size;
  }

  enter(member: Item): void {
    this.#size += 1;
    this.takeBack(member);
  }

  leave(member: Item): void {
    this.#size -= 1;
    this.setAside(member);
  }

  /** Nobody sees it here until it is taken back. Again is nothing. */
  setAside(member: Item): void {
    const { number } = member;
    if (number === -1) return;
    (this.#ahead.has(number) ? this.#ahead : this.#behind).remove(number);
    this.#byWait.remove(number);
    this.#byService?.remove(number);
    this.#members[2 * number] = undefined;
    this.#members[2 * number + 1] = undefined;
    this.#freeNumbers.push(number);
    member.number = -1;
    this.#noteLongest();
  }

  takeBack(member: Item): void {
    const { account } = member;
    const number = this.#freeNumbers.pop() ?? this.#members.length / 2;
    member.number = number;
    this.#members[2 * number] = member;
    this.#members[2 * number + 1] = account;
    this.#ahead.push(number, account.clock, serviceOrder(account));
    this.#byWait.push(number, member.sinceOrder, 0);
    this.#byService?.push(number, servedAt(account), serviceOrder(account));
    this.#noteLongest();
  }

  /** It was just granted something: it goes to the back of those that wait. */
  restartWait(member: Item, sinceOrder: number, sinceTick: number, sinceTurn: number): void {
    member.sinceOrder = sinceOrder;
    member.sinceTick = sinceTick;
    member.sinceTurn = sinceTurn;
    if (member.number === -1) return;
    this.#byWait.raise(member.number, sinceOrder, 0);
    this.#noteLongest();
  }

  /** Since when whoever waits longest here does, counted in one or the other; anything while nobody waits. */
  longestSince(unit: Unit): number {
    return unit === "ticks" ? this.#longestTick : this.#longestTurn;
  }

  /** Who waits longest here. */
  longestWaiting(): Item | undefined {
    return this.#byWait.size === 0 ? undefined : this.memberNumbered(this.#byWait.front);
  }

  /** Of those last served at an instant or before it, or never, who was served longest ago. */
  servedUntil(at: Instant): Item | undefined {
    const heap = this.#byService;
    while (heap !== undefined && heap.frontFirst <= at) {
      const account = this.accountNumbered(heap.front);
      const order = serviceOrder(account);
      if (heap.frontSecond === order) return this.memberNumbered(heap.front);
      heap.raiseFront(servedAt(account), order);
    }
    return undefined;
  }

  /**
   * Who has the lowest max(clock, virtual time); among equals served longest ago, then first arrived.
   *
   * @returns its number, −1 when nobody is here; with it the account is read without the member
   */
  lowestClock(virtualTime: number): number {
    const ahead = this.#ahead;
    const behind = this.#behind;
    this.#freshenAhead(virtualTime);
    this.#freshenBehind(virtualTime);
    const isBehind =
      behind.size > 0 && !(ahead.frontFirst === virtualTime && ahead.frontSecond < behind.frontSecond);
    return (isBehind ? behind : ahead).front;
  }

  memberNumbered(number: number): Item {
    return this.#members[2 * number] as Item;
  }

  accountNumbered(number: number): Account {
    return this.#members[2 * number + 1] as Account;
  }

  #noteLongest(): void {
    const member = this.longestWaiting();
    if (member === undefined) return;
    this.#longestTick = member.sinceTick;
    this.#longestTurn = member.sinceTurn;
  }

  /** Brings the front of `ahead` up to date and moves out whom virtual time has passed. */
  #freshenAhead(virtualTime: number): void {
    const heap = this.#ahead;
    for (let number = heap.front; number !== -1; number = heap.front) {
      const account = this.accountNumbered(number);
      const order = serviceOrder(account);
      // A clock moves with grants alone, and each makes the order grow: where the order is fresh, so is the clock.
      const isFresh = heap.frontSecond === order;
      const clock = isFresh ? heap.frontFirst : account.clock;
      if (clock < virtualTime) {
        heap.remove(number);
        this.#behind.push(number, 0, order);
      } else if (isFresh) return;
      else heap.raiseFront(clock, order);
    }
  }

  /** Brings the front of `behind` up to date and moves out who is no longer behind. */
  #freshenBehind(virtualTime: number): void {
    const heap = this.#behind;
    for (let number = heap.front; number !== -1; number = heap.front) {
      const account = this.accountNumbered(number);
      const order = serviceOrder(account);
      if (account.clock >= virtualTime) {
        heap.remove(number);
        this.#ahead.push(number, account.clock, order);
      } else if (heap.frontSecond === order) return;
      else heap.raiseFront(0, order);
    }
  }
}

/** Orders by when an account was last served; below 0, by arrival, before it was. Grows with each grant. */
function serviceOrder({ servedOrder, arrivedOrder }: Account): number {
  return servedOrder > 0 ? servedOrder : arrivedOrder - Number.MAX_SAFE_INTEGER;
}

function servedAt({ servedOrder, servedAt }: Account): number {
  return servedOrder > 0 ? servedAt : Number.NEGATIVE_INFINITY;
}
