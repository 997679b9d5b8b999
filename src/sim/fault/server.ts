// The simulated server: which connection is subscribed to what, and who receives a message. It keeps nothing; what it
// stores for JetStream is in jetstream.ts.

import { type Interest, type QueueGroup, SubjectIndex } from "../../transport/subject-index.ts";
import type { Message } from "../../transport/transport.ts";

/** A subscription as the server sees it. */
export interface Subscriber {
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

  /** @returns whether anybody is subscribed */
  route(message: Message): boolean {
    const { each, groups } = this.#index.match(message.subject);
    for (const subscriber of each) subscriber.deliver(message);
    for (const group of groups) nextMember(group).deliver(message);
    return each.length + groups.length > 0;
  }
}

function nextMember(group: QueueGroup<Subscriber>): Subscriber {
  const member = group.members[group.turn.next % group.members.length];
  group.turn.next += 1;
  if (member === undefined) throw new RangeError("a queue group has members");
  return member;
}
