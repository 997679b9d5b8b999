// Whose inboxes get answers and pushes where the policy's security is strict: those of the group whose agent asks, or
// of the users set for the project. A NATS server permits a user to publish with any reply subject, so a stranger's
// inbox could otherwise be flooded with answers. Questions about the whole swarm, and operators, are permitted by
// subject.

import { NO_PROJECT } from "../ids.ts";
import type { CodedError } from "../protocol/schemas.ts";
import type { SwarmState } from "../state/state.ts";
import { codedError } from "./answers.ts";

export class InboxOwners {
  readonly #state: () => SwarmState;

  constructor(state: () => SwarmState) {
    this.#state = state;
  }

  /** Whether the sender of a message owns its reply subject. @param tokens of the subject, after the swarm's prefix */
  mayReply([sender, owner = ""]: readonly string[], reply: string): boolean {
    if (!this.#isStrict) return true;
    if (sender === "agent") return isInboxOf(owner, reply);
    return sender !== "project" || this.isOwn(owner, reply);
  }

  /** Whether an inbox belongs to a user of the project. */
  isOwn(project: string, inbox: string): boolean {
    if (!this.#isStrict || project === NO_PROJECT) return true;
    const users = this.#state().projectById.get(project as never)?.settings?.inboxUsers ?? [];
    return users.some((user) => isInboxOf(user, inbox));
  }

  get #isStrict(): boolean {
    return this.#state().policy.security === "strict";
  }
}

function isInboxOf(user: string, inbox: string): boolean {
  return inbox.startsWith(`_INBOX.${user}.`) || inbox.startsWith(`_INBOX_${user}.`);
}

export function foreignInbox(project: string): CodedError {
  const sentence =
    `notify: security is strict, and the inbox belongs to no user set for project ${project}. Use the user's inbox ` +
    "prefix (--inbox-prefix), or have the project's owner name the user (`waggle project set --inbox-user`)";
  return codedError("WAGGLE_FORBIDDEN", sentence, { field: "notify" });
}
