// The simulated server: keeps subscriptions and routes messages to subscribers. Streams: jetstream.ts.

import { type Interest, type QueueGroup, SubjectIndex } from "../../transport/subject-index.ts";
import type { Message } from "../../transport/transport.ts";

/** A subscription as the server sees it. */
export interface Subscriber {
  /** The subscriber's side of every partition, as text. A message reaches only subscribers of its own side. */
  readonly side: string;
  /** A message for the subscriber leaves the server. */
  deliver(message: Message): void;
}

export class Server {
  readonly #index = new SubjectIndex<Subscriber>();

  add(interest: Interest<Subscriber>): void {
    this.#index.add(interest);
  }

  remove(interest: Interest<Subscriber>): void {
    this.#index.remove(interest);
  }

  /** @param side the sender's @returns whether a subscriber is on the side */
  route(message: Message, side: string): boolean {
    const { each, groups } = this.#index.match(message.subject);
    const receivers = each.filter((subscriber) => subscriber.side === side);
    for (const group of groups) receivers.push(...nextMember(group, side));
    for (const subscriber of receivers) subscriber.deliver(message);
    return receivers.length > 0;
  }
}

/** @returns the member whose turn is next; empty if no member is on the side */
function nextMember({ members, turn }: QueueGroup<Subscriber>, side: string): readonly Subscriber[] {
  const there = members.filter((member) => member.side === side);
  const at = turn.next % Math.max(1, there.length);
  turn.next += 1;
  return there.slice(at, at + 1);
}
