// What the edge of the coordinator does for every request alike, whoever sent it: refuses and counts what it cannot
// take, and puts the rest into the inbox. Not here: what a request says (project-requests.ts, agent-requests.ts,
// slot-requests.ts, operator-requests.ts).

import type { z } from "zod";
import type { ProjectId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { check, type Decoded, encode } from "../../protocol/codec.ts";
import type { CodedError } from "../../protocol/schemas.ts";
import type { Message } from "../../transport/transport.ts";
import { backpressure } from "./answers.ts";
import type { InboxEntry } from "./inbox.ts";
import type { RequestTarget } from "./request-target.ts";

export class RequestEdge {
  readonly target: RequestTarget;

  constructor(target: RequestTarget) {
    this.target = target;
  }

  /** Puts an entry into the inbox, or refuses it. @param project whose refusals are put on record */
  enqueue(reply: string, entry: InboxEntry, project?: ProjectId): void {
    if (this.target.enqueue(entry)) return;
    if (project !== undefined) this.target.refused(project, "inbox-full", Math.max(1, entry.commands.length));
    this.refuseFull(reply);
  }

  /** The inbox has no room for it. */
  refuseFull(reply: string): void {
    this.refuse(reply, backpressure("inbox-full", limits.retryAfterMs));
  }

  refuse(reply: string, error: CodedError): void {
    const isForRoom = error.code === "WAGGLE_BACKPRESSURE";
    if (isForRoom && !this.target.mayRefuse()) return this.target.count("unanswered");
    this.target.count(isForRoom ? "refused" : "invalid");
    this.target.send(reply, encode(error));
  }

  /** …where an answer is awaited. */
  refuseMaybe(message: Message, error: CodedError): void {
    if (message.reply === undefined) this.target.count("invalid-publish");
    else this.refuse(message.reply, error);
  }

  /** Where to answer; without that, it is dropped and counted. */
  replyOf(message: Message): string | undefined {
    if (message.reply === undefined) this.target.count("no-reply");
    return message.reply;
  }

  /** One item of a message; what fails is counted, and refused in its place. */
  checkItem<Schema extends z.ZodType>(
    item: unknown,
    schema: Schema,
    where: string,
  ): Decoded<z.infer<Schema>> {
    const checked = check(item, schema, where);
    if (!checked.ok) this.target.count("invalid");
    return checked;
  }
}
