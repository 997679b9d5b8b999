// Hand-over to another coordinator: on an operator's request, to a standby that was heard lately; or because no agent
// or client reaches the leader (isolation.ts). Not here: the end of the term (leader.ts).

import type { Term } from "../../ids.ts";
import type { CodedError } from "../../protocol/schemas.ts";
import { codedError } from "../../requests/answers.ts";
import type { InboxEntry } from "../../requests/inbox.ts";
import type { TransferRequest } from "../../requests/intake.ts";

export interface HandOverDeps {
  /** The coordinator's id. */
  readonly id: string;
  readonly term: () => Term;
  /** Ids of the coordinators that were heard within T. */
  readonly standbys: () => readonly string[];
}

export interface HandOverLeader {
  /** @returns false when the inbox is full */
  readonly enqueue: (entry: InboxEntry) => boolean;
  readonly stepDown: () => void;
}

export class HandOver {
  readonly #deps: HandOverDeps;
  readonly #leader: HandOverLeader;
  #accepted: TransferRequest | undefined;
  #isAside = false;

  constructor(deps: HandOverDeps, leader: HandOverLeader) {
    this.#deps = deps;
    this.#leader = leader;
  }

  /** The request that ends the term. It is answered after the end. */
  get accepted(): TransferRequest | undefined {
    return this.#accepted;
  }

  /** Whether the coordinator becomes a standby after the term. */
  get standsBy(): boolean {
    return this.#isAside || this.#accepted !== undefined;
  }

  /** The term ends for whoever can be reached. */
  standAside(): void {
    this.#isAside = true;
  }

  /** Decided in the order of the inbox, answered after the end of the term.
   *  @returns false when the inbox is full */
  take(request: TransferRequest): boolean {
    const { id, term, standbys } = this.#deps;
    const { of, to, answer } = request;
    let refusal: CodedError | undefined;
    let isDone = false;
    return this.#leader.enqueue({
      commands: [],
      replies: [],
      look: () => {
        isDone = of < term() || to === id;
        refusal = isDone ? undefined : whyNotTo(to, standbys());
        if (isDone || refusal !== undefined) return;
        this.#accepted ??= request;
        this.#leader.stepDown();
      },
      finish: (commit) => {
        if (refusal !== undefined) answer(refusal);
        else if (isDone) answer({ ok: true, ...commit });
      },
    });
  }
}

/** Why no standby, or not the named standby, can take over; undefined when one can. */
function whyNotTo(to: string | undefined, standbys: readonly string[]): CodedError | undefined {
  if (standbys.length === 0) {
    const sentence =
      "no standby: start a second coordinator (`waggle up`) on the same server and swarm, with the journal in " +
      "JetStream, and try again";
    return codedError("WAGGLE_NO_STANDBY", sentence);
  }
  if (to === undefined || standbys.includes(to)) return undefined;
  const sentence = `no coordinator ${to} stands by; there ${standbys.length === 1 ? "is" : "are"} ${standbys.join(", ")}`;
  return codedError("WAGGLE_NO_STANDBY", sentence, { field: "to" });
}
