// A coordinator's process on one swarm: follows the journal warm (follower.ts), campaigns when it is time
// (candidacy.ts), leads while the journal lets it (leader.ts), and stands by again when it is deposed. The charts in
// machines/ say where it is; this file owns them and does what they call for.
//
// Authoritative is the journal alone: who leads is whoever's `TermStarted` is the highest in it. A coordinator that
// starts campaigns at once where the last term ended of its own accord, or nothing was ever written, and nobody else
// is there; else it stands by. Whoever is refused has lost, and reads on. A leader's state runs ahead of the journal,
// so that of one that was deposed is thrown away and folded anew; a campaign that is lost changes nothing.
//
// Not here: how the journal is read, and when what was read is thrown away (follower.ts), and what coordinators say to
// each other (announcer.ts).

import type { Logger } from "pino";
import { BehaviorSubject, type Observable } from "rxjs";
import { createActor } from "xstate";
import { type CoordinatorSignal, coordinatorMachine } from "../../machines/coordinator.ts";
import { type LeadershipSignal, leadershipMachine } from "../../machines/leadership.ts";
import type { Clock, Random } from "../clock.ts";
import { type JournalDamagedError, WaggleError } from "../errors.ts";
import type { SwarmId, Term } from "../ids.ts";
import type { Journal } from "../journal/journal.ts";
import { lostWithinError } from "../journal/journal-errors.ts";
import { limits } from "../limits.ts";
import { type Subjects, subjectsOf } from "../protocol/subjects.ts";
import type { SwarmState } from "../state/state.ts";
import type { Subscription, Transport } from "../transport/transport.ts";
import { Announcements } from "./announcements.ts";
import { Announcer } from "./announcer.ts";
import type { PendingBatch } from "./append/sends.ts";
import type { Compaction } from "./compaction/compactor.ts";
import { ReadableSnapshots } from "./compaction/readable-snapshots.ts";
import { JournalRoom } from "./journal-room.ts";
import type { Victory } from "./leader/campaign.ts";
import { Leader, type LeaderEnd } from "./leader/leader.ts";
import { Queries } from "./queries/queries.ts";
import { DeadRecordLog } from "./repair/dead-records.ts";
import { JournalWatch } from "./repair/journal-watch.ts";
import { JournalReads } from "./requests/journal-reads.ts";
import { Candidacy } from "./standby/candidacy.ts";
import { Follower } from "./standby/follower.ts";
import { requireItsJournal } from "./standby/lost-journal.ts";
import { type Timing, timingOf } from "./timing.ts";

export interface CoordinatorOptions {
  /** Names this process to people; stands in the journal as the term's leader. */
  readonly id: string;
  readonly swarm: SwarmId;
  readonly transport: Transport;
  readonly journal: Journal;
  /** Snapshots beside the journal, and how it is kept short by them. Absent where there are none: the journal is
   *  read from its first record, and grows. */
  readonly compaction?: Compaction;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** T of the terms that it leads, ms. Default `limits.leaderTimeoutMs`. */
  readonly leaderTimeoutMs?: number;
}

export type Role = "standing-by" | "leading" | "halted" | "stopped";

export interface Coordinator {
  /** The present role, then each change; completes when stopped or halted. */
  readonly role$: Observable<Role>;
  /** After that much silence of the leader it campaigns, ms: T of the term that it follows, and the jitter. */
  readonly silenceMsMax: number;
  /** What it has made of the journal, for checkers: not to be changed, and good until it goes on. Undefined while
   *  batches of its own are in flight, which the state contains. */
  readonly settledState: SwarmState | undefined;
  /** Of the newest batch in that, and so of all before it; "" before the first, undefined with it. */
  readonly settledHash: string | undefined;
  /** Behind which record it could put back what the journal loses of its end, for checkers; infinite where it holds no
   *  batch of it, as who began at a snapshot whose end is not found. */
  readonly heldFromSeq: number;
  /** What it decided and the journal may not have, oldest first, for checkers. */
  readonly pending: readonly PendingBatch[];
  /** Resolves with the term when it leads; at once when it does. Rejects when it ends before it ever led. */
  whenLeading(): Promise<Term>;
  /** Resolves when it has ended: with the reason when it halted, undefined when it was stopped. */
  readonly closed: Promise<WaggleError | undefined>;
  /** Hands over and ends: settles what is in flight, says so in the journal. Idempotent. Leaves the transport and
   *  the journal open: they belong to the caller. */
  stop(): Promise<void>;
}

/** Starts a coordinator. Resolves once the journal is read: it stands by, or campaigns where nobody leads.
 *  @throws UnreachableError, JournalDamagedError */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const coordinator = new RunningCoordinator(options);
  await coordinator.start();
  return coordinator;
}

class RunningCoordinator implements Coordinator {
  readonly closed: Promise<WaggleError | undefined>;
  readonly #options: CoordinatorOptions;
  readonly #subjects: Subjects;
  readonly #life = createActor(coordinatorMachine).start();
  readonly #leadership = createActor(leadershipMachine).start();
  readonly #role = new BehaviorSubject<Role>("standing-by");
  readonly #queries: Queries;
  readonly #reads: JournalReads;
  readonly #room: JournalRoom;
  /** Of the terms that it leads. */
  readonly #timing: Timing;
  readonly #subscriptions: Subscription[] = [];
  #resolveClosed: (error: WaggleError | undefined) => void = () => undefined;
  readonly #announcements = new Announcements();
  readonly #announcer: Announcer;
  readonly #readable: ReadableSnapshots;
  readonly #watch: JournalWatch;
  readonly #deadLog: DeadRecordLog;
  readonly #follower: Follower;
  #candidacy: Candidacy | undefined;
  #leader: Leader | undefined;
  #isStopping = false;
  #isOver = false;
  #cancelBeat: (() => void) | undefined;

  constructor(given: CoordinatorOptions) {
    // Several write one log: each line says which it is about.
    const options = { ...given, logger: given.logger.child({ coordinator: given.id }) };
    this.#options = options;
    this.#subjects = subjectsOf(options.swarm);
    this.#timing = timingOf(options.leaderTimeoutMs ?? limits.leaderTimeoutMs);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#announcer = new Announcer({
      ...options,
      subjects: this.#subjects,
      announcements: this.#announcements,
      held: () => this.#leader?.committed ?? this.#follower.copy.replay.position,
      isLeading: () => this.#leader !== undefined,
      neededBytes: () => this.#leader?.neededBytes,
    });
    this.#room = new JournalRoom(options.journal, options.clock, options.logger);
    this.#readable = new ReadableSnapshots(options.compaction?.snapshots, options);
    this.#deadLog = new DeadRecordLog(options);
    this.#follower = new Follower(
      {
        ...options,
        deadLog: this.#deadLog,
        snapshots: options.compaction?.snapshots,
        readable: this.#readable,
        announcer: this.#announcer,
        announcements: this.#announcements,
        timing: this.#timing,
      },
      {
        onSilence: () => this.#leadershipSignal({ type: "SILENCE" }),
        onHeard: () => this.#leadershipSignal({ type: "HEARD" }),
        onShort: () => this.#leadershipSignal({ type: "LOG_SHORT" }),
        onTime: () => this.#campaign(),
        onHalted: (cause) => this.#halt(cause),
      },
    );
    this.#watch = new JournalWatch(
      { ...options, readable: this.#readable },
      {
        onHole: ({ firstSeq, missing }) => this.#foundHole(lostWithinError(firstSeq, missing)),
        onPurged: (firstSeq) => this.#leader?.purgedBelow(firstSeq),
        onDamaged: (error) => this.#halt(error),
      },
    );
    this.#reads = new JournalReads({
      ...options,
      isLeading: () => this.#leader !== undefined,
      isLed: () => this.#announcements.isLed(0, this.#follower.lately),
    });
    this.#queries = new Queries({
      ...options,
      reads: this.#reads,
      room: this.#room,
      subjects: this.#subjects,
      leader: () => this.#leader,
      copy: () => this.#follower.copy,
      standbys: () => this.#standbys,
    });
  }

  get role$(): Observable<Role> {
    return this.#role.asObservable();
  }

  get settledState(): SwarmState | undefined {
    if (this.#leader === undefined) return this.#follower.copy.replay.state;
    return this.#leader.isSettled ? this.#leader.state : undefined;
  }

  get settledHash(): string | undefined {
    if (this.#leader === undefined) return this.#follower.copy.replay.position.hash;
    return this.#leader.isSettled ? this.#leader.tailHash : undefined;
  }

  get pending(): readonly PendingBatch[] {
    return this.#leader?.pending ?? [];
  }

  get heldFromSeq(): number {
    const { recent, replay } = this.#follower.copy;
    return recent.heldFromSeq(this.#leader?.lastSeq ?? replay.position.seq); // a leader's state is ahead of that
  }

  get silenceMsMax(): number {
    return this.#follower.timing.silenceMsMax;
  }

  async start(): Promise<void> {
    const { transport } = this.#options;
    await this.#follower.begin();
    await this.#watch.begin();
    this.#signal({ type: "READY" });
    this.#subscriptions.push(
      transport.subscribe(this.#subjects.queryPattern, (message) => this.#queries.take(message)),
    );
    const isAlone = await this.#isAlone();
    this.#subscriptions.push(this.#announcer.takePart());
    await transport.flush();
    if (isAlone) this.#campaign();
    else this.#follower.standBy();
    this.#beat();
  }

  whenLeading(): Promise<Term> {
    return new Promise((resolve, reject) => {
      this.#role.subscribe({
        next: (role) => {
          if (role === "leading" && this.#leader !== undefined) resolve(this.#leader.term);
        },
        complete: () => {
          const sentence = "the coordinator ended before it led";
          this.closed.then((error) => reject(error ?? new WaggleError("WAGGLE_NO_LEADER", sentence)), reject);
        },
      });
    });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#signal({ type: "STOP" });
    if (this.#leader === undefined) this.#end(undefined);
    else this.#leader.end();
    const cancel = this.#options.clock.after(limits.handOverMs, () => this.#abandon());
    await this.closed;
    cancel();
  }

  // --- the start ----------------------------------------------------------------------------------

  /** Whether nobody leads, and nobody else is there who might or who holds more of the journal: asks, before it
   *  listens itself. @throws JournalDamagedError where that one's journal is gone */
  async #isAlone(): Promise<boolean> {
    const { journal, logger } = this.#options;
    const { position, lastEventType } = this.#follower.copy.replay;
    const isNew = position.seq === 0;
    const other = journal.sharable ? await this.#announcer.greet() : undefined;
    if (isNew && other !== undefined) await requireItsJournal(other, journal);
    if (isNew && other === undefined) logger.info("nothing was ever written here: a new journal begins");
    if (!journal.sharable) return true;
    return (isNew || lastEventType === "TermEnded") && other === undefined;
  }

  // --- leading ------------------------------------------------------------------------------------

  #campaign(): void {
    this.#leadershipSignal({ type: "SILENCE" }, { type: "LOG_WHOLE" }, { type: "HEALED" });
    this.#room.lookAgain(); // a standby's figure may be of long ago
    this.#candidacy = new Candidacy(
      {
        ...this.#options,
        timeoutMs: this.#timing.timeoutMs,
        announcements: this.#announcements,
        readable: this.#readable,
        follower: this.#follower,
      },
      {
        onWon: (victory) => this.#guarded(() => this.#lead(victory)),
        onNotElected: () => this.#notElected(),
        onHalted: (error) => this.#halt(error),
      },
    );
  }

  #notElected(): void {
    this.#candidacy = undefined;
    this.#leadershipSignal({ type: "REFUSED" });
  }

  #lead(victory: Victory): void {
    this.#candidacy = undefined;
    this.#leadershipSignal({ type: "WON" });
    for (const record of victory.records) this.#follower.take(record);
    this.#leadershipSignal({ type: "REPLAYED" });
    this.#signal({ type: "ELECTED" });
    const { replay, recent, foundSnapshots } = this.#follower.copy;
    const deps = {
      ...this.#options,
      subjects: this.#subjects,
      room: this.#room,
      reads: this.#reads,
      recent,
      foundSnapshots,
      readable: this.#readable,
      deadLog: this.#deadLog,
      announcements: this.#announcements,
      timing: this.#timing,
      standbys: () => this.#standbys,
    };
    const leader = new Leader(deps, replay, victory, (end) => this.#leaderEnded(end));
    this.#leader = leader;
    this.#options.logger.info({ term: leader.term }, "leading");
    leader.begin();
    if (this.#leader !== leader) return; // it broke as it began
    this.#announcer.announce({ began: true });
    this.#role.next("leading");
    const hole = this.#follower.seenHole.take();
    if (hole !== undefined) this.#foundHole(hole);
  }

  /** Whoever leads rescues what was lost; a standby remembers it, should it come to lead. */
  #foundHole(lost: JournalDamagedError): void {
    if (this.#leader === undefined) this.#follower.seenHole.saw(lost);
    else this.#leader.rescue(lost);
  }

  #leaderEnded(end: LeaderEnd): void {
    if (this.#leader !== undefined)
      this.#follower.time.read(this.#leader.now, this.#options.clock.monotonicMs());
    this.#leader = undefined;
    if (end.kind === "halted") return this.#halt(end.error);
    if (end.kind === "ended" || this.#isStopping) return this.#end(undefined);
    this.#leadershipSignal({ type: "DEPOSED" });
    this.#signal({ type: "DEPOSED" });
    this.#role.next("standing-by");
    if (end.kind === "deposed") {
      this.#options.logger.warn("deposed: another coordinator leads");
      void this.#follower.foldAnew();
    } else {
      this.#options.logger.info("handed over: standing by");
      this.#follower.copy.goOnFrom(end.folded);
      this.#announcer.announce();
      this.#follower.standBy();
    }
  }

  get #standbys(): readonly string[] {
    return this.#announcements.standbys(this.#follower.lately);
  }

  // --- other coordinators -------------------------------------------------------------------------

  /** Says who is here, for other coordinators and for clients that watch for a new term. */
  #beat(): void {
    this.#announcer.announce();
    this.#watch.look();
    this.#cancelBeat = this.#options.clock.after(this.#follower.timing.beatMs, () => this.#beat());
  }

  // --- endings ------------------------------------------------------------------------------------

  #guarded(run: () => void): void {
    try {
      run();
    } catch (cause) {
      this.#halt(cause);
    }
  }

  #halt(cause: unknown): void {
    if (this.#isOver) return;
    const error =
      cause instanceof WaggleError
        ? cause
        : new WaggleError("WAGGLE_INVARIANT", "the coordinator met an error it does not know", { cause });
    this.#options.logger.fatal({ err: error, code: error.code }, "halted");
    this.#signal({ type: "HALT" });
    this.#leadershipSignal({ type: "HALT" });
    this.#role.next("halted");
    this.#end(error);
  }

  /** The journal cannot be written: what is in flight stays unknown to whoever asked, as after a crash. */
  #abandon(): void {
    this.#options.logger.warn("the journal does not answer: ending without a word in it");
    this.#leader?.abandon();
  }

  #end(error: WaggleError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#leader?.abandon();
    this.#queries.stop();
    this.#announcer.announce({ leaves: true });
    this.#follower.end();
    this.#candidacy?.abandon();
    this.#watch.stop();
    this.#reads.stop();
    this.#deadLog.stop();
    this.#cancelBeat?.();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    if (error === undefined) {
      // Who was not leading had nothing to hand over, and has stopped already.
      if (this.#life.getSnapshot().status === "active") this.#signal({ type: "HANDED_OVER" });
      this.#role.next("stopped");
    }
    this.#role.complete();
    this.#resolveClosed(error);
  }

  /** A chart that has come to its end takes nothing more, and complains. */
  #signal(signal: CoordinatorSignal): void {
    if (this.#life.getSnapshot().status === "active") this.#life.send(signal);
  }

  #leadershipSignal(...signals: readonly LeadershipSignal[]): void {
    for (const signal of signals)
      if (this.#leadership.getSnapshot().status === "active") this.#leadership.send(signal);
  }
}
