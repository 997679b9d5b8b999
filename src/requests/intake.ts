// The intake, shared by all handlers of requests: puts commands before the next turn, answers after their commit,
// refuses invalid requests, and counts refused and dropped messages. Refusals for want of room are summed up in the
// journal. Not here: the contents of requests (the handlers), and decisions (core/).

import type { Logger } from "pino";
import type { z } from "zod";
import type { AuditReader } from "../audit/reading/audit-reader.ts";
import type { Clock, Random } from "../clock.ts";
import type { Command, Reply } from "../core/command.ts";
import { type BatchIndex, NO_PROJECT, type ProjectId, type Term } from "../ids.ts";
import { limits } from "../limits.ts";
import { check, type Decoded, decode, encode, encodeText } from "../protocol/codec.ts";
import { type QuickCheck, readQuickly } from "../protocol/quick-checks.ts";
import type { CodedError } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { RefusalReason } from "../state/event.ts";
import type { SwarmState } from "../state/state.ts";
import type { Message, Transport } from "../transport/transport.ts";
import type { MessageSort } from "./agent-gate.ts";
import { backpressure, sendFitting } from "./answers.ts";
import type { AttemptTokens } from "./attempt-tokens.ts";
import type { Commit, InboxEntry } from "./inbox.ts";
import { Items } from "./items.ts";
import type { Outbox } from "./outbox.ts";
import type { Presences } from "./presence.ts";

/** Parts of the leader that the handlers use. */
export interface LeaderParts {
  readonly term: () => Term;
  readonly state: SwarmState;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly room: { readonly isShort: boolean };
  readonly presences: Presences;
  readonly tokens: AttemptTokens;
  readonly outbox: Outbox;
  readonly reader: AuditReader;
  /** The first batch that readers find in the journal. */
  readonly auditFirstIdx: () => BatchIndex;
  /** Puts an entry before the next turn. @returns false when the inbox is full */
  readonly enqueue: (entry: InboxEntry) => boolean;
  /** Hands leadership over to another coordinator. @returns false when the inbox is full */
  readonly transfer: (request: TransferRequest) => boolean;
  /** Why the leader can decide and answer nothing now: a sentence without its full stop. Undefined while it can. */
  readonly stuckReason: () => string | undefined;
  /** Whether the leader lease holds: an answer may leave without a commit. */
  readonly holdsLease: () => boolean;
}

export interface TransferRequest {
  /** The term to end. */
  readonly of: number;
  /** Id of the next leader; undefined: any standby. */
  readonly to: string | undefined;
  /** Called at most once: after the end of the term, or with the reason why the term goes on. */
  answer(message: object): void;
}

/** A request to be decided. */
export interface Request {
  readonly reply: string;
  readonly commands: readonly Command[];
  /** Reads the state right after the last command, before the commit. */
  readonly look?: (state: SwarmState, replies: readonly Reply[]) => void;
  /** Makes the answer after the commit. A string is the answer's JSON. @param replies one per command */
  readonly answer: (replies: readonly Reply[], commit: Commit) => object | string;
  /** Default: refusals are counted for no project. */
  readonly project?: ProjectId;
}

/** A sort of requests with items. */
export interface ItemRequest<Body, List extends keyof Body & string, Item> {
  readonly schema: z.ZodType<Body>;
  /** The field of the items. */
  readonly list: List;
  readonly itemSchema: z.ZodType<Item>;
  /** The check by hand of a request whose items are all right. */
  readonly isRight?: QuickCheck<Body & Readonly<Record<List, readonly Item[]>>>;
}

/** Why a message was dropped or refused. */
export type CountedAs =
  | "invalid"
  | "refused"
  | "unanswered"
  | "reply-not-an-inbox"
  | "reply-not-the-askers"
  | "no-reply"
  | "unknown-subject"
  | "invalid-publish"
  | "too-much-progress"
  | `too-many-${Exclude<MessageSort, "progress">}`;

export class Intake {
  /** Dropped and refused messages, by reason. */
  readonly counters: Record<string, number> = {};
  readonly refusals: RefusalTally;
  readonly #parts: LeaderParts;

  constructor(parts: LeaderParts) {
    this.#parts = parts;
    this.refusals = new RefusalTally(parts.clock.monotonicMs());
  }

  /** Puts a request before the next turn, or refuses it when the inbox is full. */
  decide({ reply, commands, look, answer, project }: Request): void {
    const replies: Reply[] = [];
    const isQueued = this.#parts.enqueue({
      commands,
      replies,
      ...(look === undefined ? {} : { look: (state: SwarmState) => look(state, replies) }),
      finish: (commit) => this.send(reply, answer(replies, commit)),
    });
    if (isQueued) return;
    if (project !== undefined) this.refusals.add(project, "inbox-full", Math.max(1, commands.length));
    this.refuseFull(reply);
  }

  /** @param message a string is the message's JSON */
  send(reply: string, message: object | string): void {
    const bytes = typeof message === "string" ? encodeText(message) : encode(message);
    sendFitting(this.#parts.transport, reply, bytes);
  }

  refuse(reply: string, error: CodedError): void {
    const isForRoom = error.code === "WAGGLE_BACKPRESSURE";
    if (isForRoom && !this.mayRefuse) return this.count("unanswered");
    this.count(isForRoom ? "refused" : "invalid");
    this.send(reply, error);
  }

  /** Refuses a request because the inbox is full. */
  refuseFull(reply: string): void {
    this.refuse(reply, backpressure("inbox-full", limits.retryAfterMs));
  }

  /** Refuses a request, or counts a message without a reply subject. */
  refuseMaybe({ reply }: Pick<Message, "reply">, error: CodedError): void {
    if (reply === undefined) this.count("invalid-publish");
    else this.refuse(reply, error);
  }

  /** Refuses new work of a project while the journal is short of room. @returns true after a refusal */
  isClosed(reply: string, project: ProjectId, count: number): boolean {
    if (!this.#parts.room.isShort) return false;
    this.refusals.add(project, "journal-full", count);
    this.refuse(reply, backpressure("journal-full", limits.retryAfterMs));
    return true;
  }

  /** Whether the leader may refuse for want of room. A leader without a lease stays silent, and the sender asks
   *  again. */
  get mayRefuse(): boolean {
    return this.#parts.holdsLease();
  }

  count(what: CountedAs): void {
    this.counters[what] = (this.counters[what] ?? 0) + 1;
  }

  /** Decodes and checks the reply subject and the body of a request. Counts or refuses an invalid request.
   *  @returns undefined for an invalid request */
  read<Body>(
    { reply, data }: Message,
    decoded: (data: Uint8Array) => Decoded<Body>,
  ): { readonly reply: string; readonly body: Body } | undefined {
    if (reply === undefined) {
      this.count("no-reply");
      return undefined;
    }
    const body = decoded(data);
    if (body.ok) return { reply, body: body.value };
    this.refuse(reply, body);
    return undefined;
  }

  /** Reads a request with items. @returns undefined for an invalid request */
  readItems<Body, List extends keyof Body & string, Item>(
    message: Message,
    { schema, list, itemSchema, isRight }: ItemRequest<Body, List, Item>,
  ): { readonly reply: string; readonly body: Body; readonly items: Items<Item> } | undefined {
    const { reply, data } = message;
    const body = isRight === undefined ? undefined : readQuickly(data, isRight);
    if (body !== undefined && reply !== undefined) return { reply, body, items: new Items<Item>(body[list]) };
    const request = this.read(message, (bytes) => decode(bytes, schema));
    if (request === undefined) return undefined;
    return {
      ...request,
      items: this.checkItems(request.body[list] as readonly unknown[], itemSchema, list),
    };
  }

  /** Checks the items of a request. @param list name of the field @param verdictOn the error of a right item that the
   *  schema cannot judge */
  checkItems<Item>(
    items: readonly unknown[],
    schema: z.ZodType<Item>,
    list: string,
    verdictOn: (item: Item, where: string) => CodedError | undefined = () => undefined,
  ): Items<Item> {
    const right: Item[] = [];
    const wrongByPlace = new Map<number, CodedError>();
    for (const [place, item] of items.entries()) {
      const where = `${list}[${place}]`;
      const checked = this.checkItem(item, schema, where);
      const wrong = checked.ok ? verdictOn(checked.value, where) : checked;
      if (checked.ok && wrong === undefined) right.push(checked.value);
      else if (wrong !== undefined) wrongByPlace.set(place, wrong);
    }
    return new Items(right, wrongByPlace);
  }

  /** Checks an item of a request. An invalid item is counted, and answered with the error. */
  checkItem<Schema extends z.ZodType>(
    item: unknown,
    schema: Schema,
    where: string,
  ): Decoded<z.infer<Schema>> {
    const checked = check(item, schema, where);
    if (!checked.ok) this.count("invalid");
    return checked;
  }
}

interface Tally {
  readonly project: ProjectId;
  readonly reason: RefusalReason;
  count: number;
}

/** Sums refusals up for the journal: one event per second, project and reason. */
export class RefusalTally {
  readonly #tallies = new Map<string, Tally>();
  #summarisedMs: number;

  /** @param now on the monotonic clock */
  constructor(now: number) {
    this.#summarisedMs = now;
  }

  /** With `limits.projectsMax` tallies, refusals of further projects are counted under `_`. */
  add(project: ProjectId, reason: RefusalReason, count: number): void {
    const known = this.#tallies.get(keyOf(project, reason));
    const isFull = known === undefined && this.#tallies.size >= limits.projectsMax;
    const counted = isFull ? (NO_PROJECT as ProjectId) : project;
    const tally = known ??
      this.#tallies.get(keyOf(counted, reason)) ?? { project: counted, reason, count: 0 };
    tally.count += count;
    this.#tallies.set(keyOf(counted, reason), tally);
  }

  /** Takes out all due summaries. */
  take(now: number): Command[] {
    if (this.#tallies.size === 0 || now - this.#summarisedMs < limits.refusalSummaryMs) return [];
    this.#summarisedMs = now;
    const commands = [...this.#tallies.values()].map(
      (tally): Command => ({ type: "SummarizeRefusals", ...tally }),
    );
    this.#tallies.clear();
    return commands;
  }
}

function keyOf(project: ProjectId, reason: RefusalReason): string {
  return `${project} ${reason}`;
}
