// The simulated server: which connection is subscribed to what, and who receives a message. It keeps nothing; what it
// stores for JetStream is in jetstream.ts.

import { type Interest, type QueueGroup, SubjectIndex } from "../../transport/subject-index.ts";
import type { Message } from "../../transport/transport.ts";

/** A subscription as the server sees it. */
export interface Subscriber {
  /** Who is on another side of a partition is not there. */
  readonly side: string;
  /** A message for it leaves the server. */
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

  /** @param side of who sends @returns whether anybody is subscribed there */
  route(message: Message, side: string): boolean {
    const { each, groups } = this.#index.match(message.subject);
    const receivers = each.filter((subscriber) => subscriber.side === side);
    for (const group of groups) receivers.push(...nextMember(group, side));
    for (const subscriber of receivers) subscriber.deliver(message);
    return receivers.length > 0;
  }
}

/** @returns whose turn it is, or nobody where none of the group is on that side */
function nextMember({ members, turn }: QueueGroup<Subscriber>, side: string): readonly Subscriber[] {
  const there = members.filter((member) => member.side === side);
  const at = turn.next % Math.max(1, there.length);
  turn.next += 1;
  return there.slice(at, at + 1);
}
