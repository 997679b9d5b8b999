// The leader's subjects: a router subscribes to them and hands each message to the sender's handlers. A message takes
// four hops: router → handler → intake → turns, where it waits as an entry of the inbox.
//
// An invalid message is answered with a coded error that names the field, is counted, and changes nothing. A message
// without a reply subject, or with a reply subject outside of all inboxes, is dropped and counted. So is a message
// whose reply subject is not the sender's, where security is strict.

import { isInbox } from "../protocol/subjects.ts";
import type { Message, Subscription } from "../transport/transport.ts";
import { AgentHandlers } from "./agent-handlers.ts";
import { codedError } from "./answers.ts";
import { InboxOwners } from "./inbox-owners.ts";
import { Intake, type LeaderParts } from "./intake.ts";
import { OperatorHandlers } from "./operator-handlers.ts";
import { ProjectHandlers } from "./project-handlers.ts";

export class Router {
  readonly intake: Intake;
  readonly #parts: LeaderParts;
  readonly #projects: ProjectHandlers;
  readonly #agents: AgentHandlers;
  readonly #operators: OperatorHandlers;
  readonly #owners: InboxOwners;
  #subscriptions: readonly Subscription[] = [];

  constructor(parts: LeaderParts) {
    this.#parts = parts;
    this.intake = new Intake(parts);
    this.#owners = new InboxOwners(() => parts.state);
    this.#projects = new ProjectHandlers(this.intake, parts);
    this.#agents = new AgentHandlers(this.intake, parts);
    this.#operators = new OperatorHandlers(this.intake, parts);
  }

  open(): void {
    const { transport, subjects } = this.#parts;
    this.#subscriptions = subjects.leaderPatterns.map((pattern) =>
      transport.subscribe(pattern, (message) => this.take(message)),
    );
  }

  /** Idempotent. */
  close(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions = [];
  }

  /** Takes one message. Never throws. */
  take(message: Message): void {
    const { subject, reply } = message;
    const [sender, ...rest] = subject.slice(this.#parts.subjects.prefix.length + 1).split(".");
    if (reply !== undefined && !isInbox(reply)) return this.intake.count("reply-not-an-inbox");
    if (reply !== undefined && !this.#owners.mayReply([sender ?? "", ...rest], reply))
      return this.intake.count("reply-not-the-askers");
    if (sender === "agent") return this.#agents.take(rest, message);
    if (this.#isStuck(reply)) return;
    if (sender === "project") return this.#projects.take(rest, message);
    if (sender === "operator") return this.#operators.take(rest, message);
    this.intake.count("unknown-subject");
  }

  /** Tells a client why nothing can be decided now; the client asks again. Agents ask again by themselves. */
  #isStuck(reply: string | undefined): boolean {
    const why = this.#parts.stuckReason();
    if (why === undefined || reply === undefined) return false;
    this.intake.count("unanswered");
    this.intake.send(reply, codedError("WAGGLE_UNREACHABLE", why));
    return true;
  }
}
