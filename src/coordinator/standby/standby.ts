// Standing by: reads the journal on as another writes it, and says when it is time to campaign.
//
// Silence is timed on our own monotonic clock, from the last record that was applied, and starts anew when our own
// loop stalled or the wire was away: a standby must not take its own deafness for the leader's. A record that
// everybody skips is no sign of life: whoever may write there could keep the swarm without a leader with it.
// What ends it:
//
//   the term ended of its own accord → campaign at once, unless another is named to lead, or the wire is away
//   silence                          → look what it means (silence-look.ts): campaign, read on, wait for the next one,
//                                      or end for what the journal lost, of which others see to the rest (follower.ts)

import { unreachable } from "../../assert.ts";
import type { Random } from "../../clock.ts";
import type { JournalDamagedError } from "../../errors.ts";
import type { Batch } from "../../journal/batch.ts";
import type { JournalRecord } from "../../journal/journal.ts";
import type { Verdict } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import { SilenceLook, type SilenceLookDeps, type SilenceLookHooks } from "./silence-look.ts";

export interface StandbyDeps extends SilenceLookDeps {
  readonly id: string;
  readonly random: Random;
  /** Whether other parties can be heard. */
  readonly isConnected: () => boolean;
  /** Folds a record that was just written. */
  readonly take: (record: JournalRecord) => Verdict;
}

export interface StandbyHooks extends SilenceLookHooks {
  /** The leader is silent. */
  readonly onSilence: () => void;
  /** …or was heard after all, or another is to lead. */
  readonly onHeard: () => void;
  /** The journal ends at `lastSeq`, and nobody puts back what is missing. The last call. */
  readonly onEndLost: (lastSeq: number, error: JournalDamagedError) => void;
  /** A snapshot that can be read reaches further than what was read, and the journal does not. The last call. */
  readonly onOvertaken: () => void;
  /** It is time to campaign. The last call. */
  readonly onTime: () => void;
  /** The journal cannot be read on, or went on differently. The last call. */
  readonly onUnreadable: (cause: unknown) => void;
}

export class Standby {
  readonly #deps: StandbyDeps;
  readonly #hooks: StandbyHooks;
  readonly #look: SilenceLook;
  readonly #ending = new AbortController();
  #reading = new AbortController();
  /** Since when the journal has more than was read, and no more is. */
  #stuck: { readonly seq: number; readonly sinceMonotonicMs: number } | undefined;
  #heardMonotonicMs = 0;
  #silenceMs = 0;
  #watchedMonotonicMs = 0;
  #cancelWatch: (() => void) | undefined;

  /** Begins at once. */
  constructor(deps: StandbyDeps, hooks: StandbyHooks) {
    this.#deps = deps;
    this.#hooks = hooks;
    this.#look = new SilenceLook(deps, hooks);
    this.#heard();
    void this.#readOn();
    this.#watchSilence();
  }

  /** Whether it has ended, or has made its last call. */
  get isOver(): boolean {
    return this.#ending.signal.aborted;
  }

  /** No further call to a hook. Idempotent. */
  end(): void {
    this.#ending.abort();
    this.#reading.abort();
    this.#cancelWatch?.();
  }

  async #readOn(): Promise<void> {
    const { journal, position, recent, take } = this.#deps;
    const { signal } = this.#reading;
    const { seq } = position();
    try {
      for await (const record of journal.follow(seq + 1, signal, recent.at(seq))) {
        if (signal.aborted) return;
        const verdict = take(record);
        if (verdict.kind === "dead") continue;
        this.#look.heard();
        this.#heard();
        if (this.#isOurTurn(verdict.batch)) return this.#finish();
      }
    } catch (cause) {
      if (!signal.aborted) this.#cannotReadOn(cause);
    }
  }

  /** Whether the leader stepped down in this batch, and we may follow: where nobody can reach us, another is to. */
  #isOurTurn(batch: Batch): boolean {
    const { id, isConnected } = this.#deps;
    const last = batch.events.at(-1);
    const isForUs = last?.type === "TermEnded" && (last.to === undefined || last.to === id);
    return isForUs && isConnected() && this.#look.isAhead();
  }

  #heard(): void {
    const { clock, random, timing } = this.#deps;
    this.#heardMonotonicMs = clock.monotonicMs();
    const { timeoutMs, silenceMsMax } = timing();
    this.#silenceMs = timeoutMs + (silenceMsMax - timeoutMs) * random.next();
  }

  #watchSilence(): void {
    const { clock, timing, isConnected } = this.#deps;
    const { pulseMs, pulseLateMs } = timing();
    this.#watchedMonotonicMs = clock.monotonicMs();
    this.#cancelWatch = clock.after(pulseMs, () => {
      const late = clock.monotonicMs() - this.#watchedMonotonicMs;
      const isAway = !isConnected();
      if (late > pulseMs + pulseLateMs || isAway) this.#heard();
      if (isAway) this.#hooks.onUnreachable();
      const isSilent = clock.monotonicMs() - this.#heardMonotonicMs > this.#silenceMs;
      if (isSilent) void this.#inspect();
      else this.#watchSilence();
    });
  }

  async #inspect(): Promise<void> {
    this.#hooks.onSilence();
    const silence = await this.#look.look(this.#ending.signal);
    if (this.isOver) return;
    switch (silence.kind) {
      case "time":
        return this.#finish();
      case "wait":
        this.#heard();
        return this.#goOn();
      case "behind":
        this.#readAnewWhereStuck();
        return this.#goOn();
      case "heard":
        return this.#goOn();
      case "overtaken":
        this.end();
        return this.#hooks.onOvertaken();
      case "end-lost":
        this.end();
        return this.#hooks.onEndLost(silence.lastSeq, silence.error);
      case "unreadable":
        return this.#cannotReadOn(silence.cause);
      default:
        return unreachable(silence);
    }
  }

  #goOn(): void {
    this.#hooks.onHeard();
    this.#watchSilence();
  }

  /** A server may go on saying that it has nothing, of a reader that it no longer serves. */
  #readAnewWhereStuck(): void {
    const { clock, position, logger } = this.#deps;
    const { seq } = position();
    const now = clock.monotonicMs();
    if (this.#stuck?.seq !== seq) this.#stuck = { seq, sinceMonotonicMs: now };
    if (now - this.#stuck.sinceMonotonicMs < limits.standbyStuckMs) return;
    this.#stuck = undefined;
    logger.warn({ seq }, "the journal has more, and reading it brings nothing: it is read anew from there");
    this.#reading.abort();
    this.#reading = new AbortController();
    void this.#readOn();
  }

  #finish(): void {
    this.end();
    this.#hooks.onTime();
  }

  #cannotReadOn(cause: unknown): void {
    if (this.isOver) return;
    this.end();
    this.#hooks.onUnreadable(cause);
  }
}
