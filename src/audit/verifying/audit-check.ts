// Verifies the whole journal in the background while a coordinator leads: some time after the term begins, and then
// once a day. At its start a leader verifies only the newest base and the batches behind the base. Older segments are
// verified only here.
//
// The result is what `status` says about the audit. A fault stops nothing: the state is sound, the history is not.

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { Fault, Verification } from "./verify.ts";

/** Reads the journal without the leader's thread. Undefined if the journal has no live segment. */
export interface JournalVerifier {
  /** @param onProgress called now and then with the last batch verified
   *  @throws UnreachableError; the signal's reason */
  verify(signal: AbortSignal, onProgress: (idx: number) => void): Promise<FoundAudit | undefined>;
}

/** What a leader keeps of a verification. */
export interface FoundAudit extends Pick<Verification, "firstIdx"> {
  /** The last good batch. */
  readonly lastIdx: number;
  readonly fault: Pick<Fault, "segment" | "idx" | "text"> | undefined;
}

export interface AuditStatus {
  /** The last batch verified, in this run or an earlier one of the term. */
  readonly idx: number;
  /** Wall time of the last whole run, ms since the Unix epoch. Undefined until the first run has ended. */
  readonly endedAt: number | undefined;
  readonly fault: FoundAudit["fault"];
}

export interface AuditCheckDeps {
  readonly verifier: JournalVerifier;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class AuditCheck {
  readonly #deps: AuditCheckDeps;
  readonly #ending = new AbortController();
  #cancelTimer: (() => void) | undefined;
  #status: AuditStatus | undefined;

  constructor(deps: AuditCheckDeps) {
    this.#deps = deps;
    this.#after(limits.auditCheckDelayMs);
  }

  /** Undefined until the first batches are verified. */
  get status(): AuditStatus | undefined {
    return this.#status;
  }

  end(): void {
    this.#cancelTimer?.();
    this.#ending.abort();
  }

  #after(ms: number): void {
    this.#cancelTimer = this.#deps.clock.after(ms, () => void this.#run());
  }

  async #run(): Promise<void> {
    const { verifier, clock, logger } = this.#deps;
    const { signal } = this.#ending;
    try {
      const found = await verifier.verify(signal, (idx) => this.#progressed(idx));
      if (signal.aborted) return;
      if (found !== undefined) this.#found(found, clock.now());
    } catch (error) {
      if (signal.aborted) return;
      logger.warn({ why: messageOf(error) }, "the journal could not be verified; trying again");
      return this.#after(limits.auditCheckRetryMs);
    }
    this.#after(limits.auditCheckEveryMs);
  }

  #progressed(idx: number): void {
    const { idx: before = 0, endedAt, fault } = this.#status ?? {};
    this.#status = { idx: Math.max(before, idx), endedAt, fault };
  }

  #found({ lastIdx, fault }: FoundAudit, endedAt: number): void {
    this.#status = { idx: lastIdx, endedAt, fault };
    if (fault === undefined) return;
    this.#deps.logger.error(
      fault,
      "the journal was changed after it was written: `waggle verify` names the changes",
    );
  }
}
