// Stepping down for another coordinator: when an operator asks for it, for one of those that stand by, as far as they
// were heard; or when nobody can reach this one (isolation.ts). Not here: the end of the term itself (leader.ts).

import type { Term } from "../../ids.ts";
import type { CodedError } from "../../protocol/schemas.ts";
import { codedError } from "../requests/answers.ts";
import type { InboxEntry } from "../requests/inbox.ts";
import type { TransferRequest } from "../requests/intake.ts";

export interface HandOverDeps {
  /** Of the coordinator that leads. */
  readonly id: string;
  readonly term: () => Term;
  /** Ids of the coordinators that were heard within T. */
  readonly standbys: () => readonly string[];
}

export interface HandOverLeader {
  /** @returns false when the inbox is full */
  readonly enqueue: (entry: InboxEntry) => boolean;
  readonly end: () => void;
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

  /** For which the term ends; to be answered when it has ended. */
  get accepted(): TransferRequest | undefined {
    return this.#accepted;
  }

  /** Whether the coordinator stands by when the term has ended, and another may lead. */
  get standsBy(): boolean {
    return this.#isAside || this.#accepted !== undefined;
  }

  /** The term ends for whoever can be reached. */
  standAside(): void {
    this.#isAside = true;
  }

  /** Decided behind what came before it, answered with the end of the term.
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
        this.#leader.end();
      },
      finish: (commit) => {
        if (refusal !== undefined) answer(refusal);
        else if (isDone) answer({ ok: true, ...commit });
      },
    });
  }
}

/** Why nobody can take over, or not the one that is named; undefined when somebody can. */
function whyNotTo(to: string | undefined, standbys: readonly string[]): CodedError | undefined {
  if (standbys.length === 0) {
    const sentence =
      "no other coordinator stands by: start one (`waggle up`) on the same server and swarm, with its journal in " +
      "JetStream, and try again";
    return codedError("WAGGLE_NO_STANDBY", sentence);
  }
  if (to === undefined || standbys.includes(to)) return undefined;
  const sentence = `no coordinator ${to} stands by; there ${standbys.length === 1 ? "is" : "are"} ${standbys.join(", ")}`;
  return codedError("WAGGLE_NO_STANDBY", sentence, { field: "to" });
}
