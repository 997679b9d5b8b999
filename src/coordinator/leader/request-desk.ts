// What the leader does for every request at its edge alike: takes what is to be decided, sends answers, counts what was
// dropped or refused, and says what it takes now. Leaves every decision to the turn. Not here: what agents say of
// themselves (agent-desk.ts), and waiting clients (await-desk.ts).

import type { ProjectId } from "../../ids.ts";
import type { RefusalReason } from "../../state/event.ts";
import type { Transport } from "../../transport/transport.ts";
import type { JournalRoom } from "../journal-room.ts";
import { sendFitting } from "../requests/fitting.ts";
import type { InboxEntry } from "../requests/inbox.ts";
import type {
  AgentTarget,
  AwaitTarget,
  DropReason,
  RequestTarget,
  RetryTarget,
  TransferRequest,
} from "../requests/request-target.ts";
import type { RefusalTally } from "./refusal-tally.ts";

export interface RequestDeskDeps {
  readonly transport: Transport;
  readonly room: JournalRoom;
  readonly refusals: RefusalTally;
  readonly agents: AgentTarget;
  readonly awaited: AwaitTarget;
  readonly retries: RetryTarget;
  /** Puts an entry before the next turn. @returns false when there is no room */
  readonly enqueue: (entry: InboxEntry) => boolean;
  /** Lets another coordinator lead. @returns false when there is no room */
  readonly transfer: (request: TransferRequest) => boolean;
  /** Why nothing can be decided or answered now, if so. */
  readonly stuckReason: () => string | undefined;
  /** Whether something definite may be said without a commit. */
  readonly isTrusted: () => boolean;
}

export class RequestDesk implements RequestTarget {
  readonly agents: AgentTarget;
  readonly awaited: AwaitTarget;
  readonly retries: RetryTarget;
  /** Messages dropped or refused at the edge, by reason. */
  readonly counters: Record<string, number> = {};
  readonly #deps: RequestDeskDeps;

  constructor(deps: RequestDeskDeps) {
    this.#deps = deps;
    this.agents = deps.agents;
    this.awaited = deps.awaited;
    this.retries = deps.retries;
  }

  enqueue(entry: InboxEntry): boolean {
    return this.#deps.enqueue(entry);
  }

  send(subject: string, message: Uint8Array): void {
    sendFitting(this.#deps.transport, subject, message);
  }

  count(what: DropReason | "invalid" | "refused" | "unanswered"): void {
    this.counters[what] = (this.counters[what] ?? 0) + 1;
  }

  refused(project: ProjectId, reason: RefusalReason, count: number): void {
    this.#deps.refusals.add(project, reason, count);
  }

  /** A leader that may be deposed without knowing refuses nobody. */
  mayRefuse(): boolean {
    return this.#deps.isTrusted();
  }

  stuckReason(): string | undefined {
    return this.#deps.stuckReason();
  }

  closedReason(): "journal-full" | undefined {
    return this.#deps.room.isShort ? "journal-full" : undefined;
  }

  transfer(request: TransferRequest): boolean {
    return this.#deps.transfer(request);
  }
}
