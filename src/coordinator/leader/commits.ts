// The way of a leader's turns to their commits, in order, and what is held back until then.
//
//   turn → batch in flight (in-flight.ts) → journal (committer.ts) → committed → told
//
// The rule: nothing leaves before its commit. Effects, events and answers of a turn are held with its batch, and
// so is every answer that was only read from the state: it leaves with the newest batch that this state contains.
// Where no batch is in flight, the leader must be able to show an append that was acknowledged and *sent* less
// than 0.8·T ago (trust.ts), or it appends a beat first and answers with that.
//
// While the journal may have lost records, what is committed is not told either, and while the state is saved that
// stands for them, no turn is taken (embargo.ts, rescue.ts). Not here: what a turn is (turns.ts), and what is told
// (telling.ts).

import type { Logger } from "pino";
import type { Clock } from "../../clock.ts";
import { InvariantError, type JournalDamagedError } from "../../errors.ts";
import type { BatchIndex, Term } from "../../ids.ts";
import type { Journal, JournalRecord } from "../../journal/journal.ts";
import type { RecentRecords } from "../../journal/recent-records.ts";
import type { DeadReason, Folded, Replay } from "../../journal/replay.ts";
import type { Manifest } from "../../journal/snapshot/manifest.ts";
import type { SnapshotStore } from "../../journal/snapshot-store.ts";
import type { TrimReason } from "../../state/event.ts";
import type { Announcements } from "../announcements.ts";
import { Committer, type Full, type Stored } from "../append/committer.ts";
import type { PendingBatch } from "../append/sends.ts";
import { UnacknowledgedLog } from "../append/unacknowledged-log.ts";
import type { ReadableSnapshots } from "../compaction/readable-snapshots.ts";
import type { DeadRecordLog } from "../repair/dead-records.ts";
import { Embargo } from "../repair/embargo.ts";
import { ownerOfEnd } from "../repair/line-end.ts";
import { tellKeptOut, tellRefilled, tellRefused } from "../repair/lost-end-log.ts";
import { type LossReason, Rescue } from "../repair/rescue.ts";
import { savedCheck } from "../repair/saved-end.ts";
import type { Commit, InboxEntry } from "../requests/inbox.ts";
import type { Timing } from "../timing.ts";
import { type Held, InFlight } from "./in-flight.ts";
import { RivalCheck } from "./rival-check.ts";
import { Trust } from "./trust.ts";

export interface CommitsDeps {
  readonly term: Term;
  readonly timing: Timing;
  readonly journal: Journal;
  readonly recent: RecentRecords;
  /** Absent where there are none: then nothing can be rescued. */
  readonly snapshots: SnapshotStore | undefined;
  readonly readable: ReadableSnapshots;
  /** Of the other coordinators. */
  readonly announcements: Announcements;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly deadLog: DeadRecordLog;
}

/** What is asked of the leader whose turns are committed, and what it is told. */
export interface CommitsHooks {
  readonly isOver: () => boolean;
  /** A turn that does nothing but renew the term. */
  readonly appendBeat: () => void;
  /** Turns are taken again. */
  readonly resume: () => void;
  /** Puts on record from which batch on the journal is whole. */
  readonly trimAudit: (firstIdx: BatchIndex, reason: TrimReason) => void;
  /** A batch is stored. @param bytes of its record */
  readonly onStored: (held: Held, record: { readonly seq: number; readonly bytes: number }) => void;
  /** A snapshot of the state is durable. */
  readonly onSaved: (manifest: Manifest, reason: LossReason) => void;
  /** A batch is committed: tells what was held back with it, perhaps some time later. */
  readonly tell: (held: Held, commit: Commit) => void;
  /** Nothing is in flight: answers what was only read. */
  readonly answer: (entries: readonly InboxEntry[]) => void;
  /** A batch is committed: there is room for the next turn. */
  readonly onCommitted: (held: Held) => void;
  /** No room in the journal; said once until there is room again, and then with nothing. */
  readonly onFull: (full: Full | undefined) => void;
  /** Another leads: nothing uncommitted will ever be. */
  readonly onDeposed: () => void;
  /** The term cannot go on. */
  readonly onBroken: (cause: unknown) => void;
}

export class Commits {
  readonly #deps: CommitsDeps;
  readonly #replay: Replay;
  readonly #hooks: CommitsHooks;
  readonly #inFlight: InFlight;
  readonly #trust: Trust;
  readonly #committer: Committer;
  readonly #embargo = new Embargo();
  readonly #rescue: Rescue;

  /** @param replay up to and with the term's own `TermStarted`
   *  @param provenMonotonicMs when the term's start was sent */
  constructor(deps: CommitsDeps, replay: Replay, provenMonotonicMs: number, hooks: CommitsHooks) {
    this.#deps = deps;
    this.#replay = replay;
    this.#hooks = hooks;
    this.#inFlight = new InFlight(replay);
    this.#trust = new Trust(deps, provenMonotonicMs);
    this.#rescue = new Rescue(deps, this.#embargo, {
      isOver: hooks.isOver,
      isSettled: () => this.isSettled,
      committedSeq: () => replay.places.seqOf(this.committed.idx) ?? deps.recent.lastSeq,
      folded: (seq) => this.folded(seq),
      continueBehind: (seq) => {
        replay.places.goOnBehind(seq);
        this.#committer.continueBehind(seq);
      },
      appendBeat: hooks.appendBeat,
      saved: hooks.onSaved,
      resume: hooks.resume,
      trimAudit: hooks.trimAudit,
      forked: (error) => this.#forked(error),
      broke: hooks.onBroken,
    });
    this.#committer = this.#startCommitter();
  }

  /** To be called when the term begins. */
  begin(): void {
    void this.#rescue.trimBehindLosses();
  }

  /** Up to where the journal is committed. */
  get committed(): Commit {
    return this.#inFlight.committed;
  }

  /** The identity of the journal. */
  get journalId(): string {
    return this.#inFlight.journalId;
  }

  /** The last record of the journal that is known: a committed batch, or a dead one behind it. */
  get lastSeq(): number {
    return this.#committer.lastSeq;
  }

  /** Of the next turn's batch. */
  get nextIdx(): BatchIndex {
    return this.#inFlight.nextIdx;
  }

  /** What the state contains and is not committed, oldest first. */
  get pending(): readonly PendingBatch[] {
    return this.#committer.pending;
  }

  /** Whether all that the state contains is committed. */
  get isSettled(): boolean {
    return this.#inFlight.newest === undefined;
  }

  /** Whether a turn may be taken now. */
  get takesTurns(): boolean {
    if (!this.#committer.hasRoom) return false; // a commit makes some
    if (this.#embargo.holdsTurns) return false; // what lifts it resumes them
    return !this.#inFlight.hasTermEnd; // nothing follows a term's end
  }

  /** Whether a beat is to be appended though no turn may be taken: it shows that the leader lives. */
  get takesBeats(): boolean {
    return this.#embargo.takesBeats;
  }

  /** Whether something definite may be said without a commit. */
  get isTrusted(): boolean {
    return this.#embargo.isLifted && this.#trust.isProven;
  }

  /** Whether an idle leader is to show that it lives, where somebody stands by. */
  get isRenewalDue(): boolean {
    return this.isSettled && this.#trust.isRenewalDue;
  }

  /** Takes a turn, behind the others: appends its batch. One without events has its answers leave with the newest
   *  batch in flight; or at once where there is none and the leader may trust itself, else with a beat. */
  take(held: Held): void {
    if (held.turn.recorded.length === 0 && held.entries.length > 0 && !this.#mayAnswerNow())
      held.turn.take({ type: "RenewTerm" });
    if (held.turn.recorded.length > 0) return this.#append(held);
    const { newest } = this.#inFlight;
    if (newest !== undefined) newest.entries.push(...held.entries);
    else this.#hooks.answer(held.entries);
  }

  /** The journal up to the newest batch, to go on behind the record `seq`; by default, the last one that is known. */
  folded(seq = this.#committer.lastSeq): Folded {
    return this.#inFlight.folded(seq);
  }

  /** What a restart would read is lost: saves the state once nothing is in flight. */
  rescue(reason: LossReason, lost: JournalDamagedError): void {
    this.#rescue.saveAtRest(reason, lost);
  }

  /** Asks, when the last answer is old, whether the journal keeps what it acknowledged. */
  look(): void {
    this.#rescue.look();
  }

  /** The server may have lost something: the next look asks, however young the last answer is. */
  lookSoon(): void {
    this.#rescue.lookSoon();
  }

  /** The term is over: what is in flight is left as it is. */
  stop(): void {
    this.#committer.stop();
    this.#rescue.stop();
  }

  /** Whether an answer without a batch of its own is safe: it leaves with the newest batch in flight, or at once. */
  #mayAnswerNow(): boolean {
    return this.isSettled ? this.isTrusted : this.#trust.willBeProven;
  }

  #append(held: Held): void {
    const batch = this.#inFlight.add(held);
    this.#trust.appended();
    this.#committer.append(batch);
  }

  #startCommitter(): Committer {
    const { logger } = this.#deps;
    const unacknowledged = new UnacknowledgedLog(this.#deps);
    const deps = {
      ...this.#deps,
      position: this.#replay.position,
      rivals: new RivalCheck({
        ...this.#deps,
        provenMonotonicMs: () => this.#trust.provenMonotonicMs,
        isOver: this.#hooks.isOver,
        of: () => this.journalId,
      }),
      isSaved: savedCheck(this.#deps),
      ownerOfEnd: (lastSeq: number, { mayLack }: { readonly mayLack: boolean }) => {
        const { journal } = this.#deps;
        return ownerOfEnd(lastSeq, this.folded(lastSeq), { journal, mayReplace: true, mayLack });
      },
    };
    return new Committer(deps, {
      onCommitted: (batch, stored) => this.#guarded(() => this.#committed(batch, stored)),
      onDead: (record, reason) => this.#sawDead(record, reason),
      onRefilled: (records) => {
        tellRefilled(logger, records);
        this.#rescue.lookSoon();
      },
      onTailLost: (lastSeq, error) => this.#guarded(() => this.#rescue.saveLostTail(lastSeq, error)),
      onTailKeptOut: (cause) => tellKeptOut(logger, cause),
      onPlaceRefused: (error) => tellRefused(logger, error),
      onPlaceLost: (error) => this.rescue("hole", error),
      onDeposed: () => this.#hooks.onDeposed(),
      onHalted: (error) => this.#hooks.onBroken(error),
      onUnacknowledged: (cause, sentMonotonicMs) => unacknowledged.tell(cause, sentMonotonicMs),
      onFull: (full) => this.#hooks.onFull(full),
    });
  }

  #committed(batch: PendingBatch, stored: Stored | undefined): void {
    const held = this.#inFlight.take(batch);
    if (held === undefined) return this.#hooks.onBroken(new InvariantError("every committed batch was held"));
    if (stored !== undefined) {
      this.#replay.places.add(batch.idx, stored.seq, batch.hash);
      this.#trust.acknowledged(stored.sentMonotonicMs);
      this.#hooks.onStored(held, { seq: stored.seq, bytes: batch.bytes.length });
    }
    const commit = this.committed;
    this.#embargo.tell(() => {
      this.#committer.told(batch.idx);
      this.#hooks.tell(held, commit);
    });
    this.#rescue.committed();
    this.#hooks.onCommitted(held);
  }

  #sawDead(record: JournalRecord, reason: DeadReason): void {
    this.#replay.sawDead(record, reason);
    this.#deps.deadLog.tell(record, reason);
  }

  /** Another batch stands where one of ours was acknowledged. Resolves with whether that was the end of the term; until
   *  it is known whether another saved ours, the next look finds it again. */
  async #forked(error: JournalDamagedError): Promise<boolean> {
    const isSaved = await this.#committer.isSaved();
    if (isSaved === true) this.#hooks.onDeposed();
    if (isSaved === false) this.#hooks.onBroken(error);
    if (isSaved === undefined) this.#embargo.doubt();
    return isSaved !== undefined;
  }

  /** Whatever throws in here is a bug. */
  #guarded(run: () => void): void {
    try {
      run();
    } catch (cause) {
      this.#hooks.onBroken(cause);
    }
  }
}
