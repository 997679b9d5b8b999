// A coordinator's process on one swarm: follows the journal warm, campaigns when it hears nothing, leads while
// the journal lets it, and stands by again when it is deposed. The charts in machines/ say where it is; this file
// owns them and does what they call for. Each term of leadership is one `Leader`, thrown away with its state.
//
// Authoritative is the journal alone: who leads is whoever's `TermStarted` is the highest in it. A standby waits
// T·(1 + jitter) of silence, T being the term's, on its own monotonic clock, restarted when its own loop stalled, unless the last term
// ended of its own accord, or nobody else can be there (an empty journal, or one that only one process can open).
// It campaigns by appending behind the last record it has read; whoever is refused has lost, and reads on.

import type { Logger } from "pino";
import { BehaviorSubject, type Observable } from "rxjs";
import { createActor } from "xstate";
import { type CoordinatorSignal, coordinatorMachine } from "../../machines/coordinator.ts";
import { type LeadershipSignal, leadershipMachine } from "../../machines/leadership.ts";
import type { Clock, Random } from "../clock.ts";
import { WaggleError } from "../errors.ts";
import type { SwarmId, Term } from "../ids.ts";
import type { Journal } from "../journal/journal.ts";
import { Replay } from "../journal/replay.ts";
import { limits } from "../limits.ts";
import { encode } from "../protocol/codec.ts";
import { type Subjects, subjectsOf } from "../protocol/subjects.ts";
import type { Subscription, Transport } from "../transport/transport.ts";
import { FollowedTime } from "./journal-clock.ts";
import { JournalRoom } from "./journal-room.ts";
import { Leader, type LeaderEnd } from "./leader.ts";
import { Queries } from "./queries.ts";
import { type Timing, timingOf } from "./timing.ts";

export interface CoordinatorOptions {
  /** Names this process to people; stands in the journal as the term's leader. */
  readonly id: string;
  readonly swarm: SwarmId;
  readonly transport: Transport;
  readonly journal: Journal;
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
  /** Resolves with the term when it leads; at once when it does. Rejects when it ends before it ever led. */
  whenLeading(): Promise<Term>;
  /** Resolves when it has ended: with the reason when it halted, undefined when it was stopped. */
  readonly closed: Promise<WaggleError | undefined>;
  /** Hands over and ends: settles what is in flight, says so in the journal. Idempotent. Leaves the transport and
   *  the journal open: they belong to the caller. */
  stop(): Promise<void>;
}

/** Starts a coordinator. Resolves once the journal is read and it stands by.
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
  readonly #room: JournalRoom;
  /** Of the terms that it leads. */
  readonly #timing: Timing;
  readonly #subscriptions: Subscription[] = [];
  #resolveClosed: (error: WaggleError | undefined) => void = () => undefined;
  readonly #followed = new FollowedTime();
  #replay = new Replay();
  #leader: Leader | undefined;
  #stopFollowing = new AbortController();
  #isStopping = false;
  #isOver = false;
  #heardMonotonicMs = 0;
  #silenceMs = 0;
  #watchedMonotonicMs = 0;
  #cancelWatch: (() => void) | undefined;
  #cancelBeat: (() => void) | undefined;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.#subjects = subjectsOf(options.swarm);
    this.#timing = timingOf(options.leaderTimeoutMs ?? limits.leaderTimeoutMs);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    this.#room = new JournalRoom(options.journal, options.clock, options.logger);
    this.#queries = new Queries({
      ...options,
      room: this.#room,
      subjects: this.#subjects,
      leader: () => (this.#role.value === "leading" ? this.#leader : undefined),
      replay: () => this.#replay,
      isCampaigning: () => this.#isCampaigning,
    });
  }

  get role$(): Observable<Role> {
    return this.#role.asObservable();
  }

  get silenceMsMax(): number {
    return this.#followedTiming.silenceMsMax;
  }

  async start(): Promise<void> {
    const { transport } = this.#options;
    await this.#catchUp();
    this.#signal({ type: "READY" });
    this.#subscriptions.push(
      transport.subscribe(this.#subjects.queryPattern, (message) => this.#queries.take(message)),
    );
    await transport.flush();
    this.#follow();
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

  // --- following ----------------------------------------------------------------------------------

  /** Reads the journal to where it ends now. */
  async #catchUp(): Promise<void> {
    for await (const record of this.#options.journal.replay(this.#replay.position.seq + 1))
      this.#replay.take(record);
  }

  #follow(): void {
    if (this.#isOver || this.#leader !== undefined) return;
    this.#heard();
    const isAlone = !this.#options.journal.sharable || this.#replay.position.seq === 0;
    if (isAlone || this.#hasLastTermEnded()) return this.#campaign();
    const stopFollowing = new AbortController();
    this.#stopFollowing = stopFollowing;
    void this.#readOn(stopFollowing.signal);
    this.#watchSilence();
  }

  async #readOn(signal: AbortSignal): Promise<void> {
    try {
      for await (const record of this.#options.journal.follow(this.#replay.position.seq + 1, signal)) {
        if (signal.aborted) return;
        this.#replay.take(record);
        this.#followed.read(this.#replay.state.at, this.#options.clock.monotonicMs());
        this.#heard();
        if (this.#hasLastTermEnded()) return this.#campaign();
      }
    } catch (cause) {
      if (!signal.aborted) this.#halt(cause);
    }
  }

  /** By the T of the term that it leads or follows; of its own while there is none. */
  get #followedTiming(): Timing {
    const { leaderTimeoutMs } = this.#replay.state;
    return leaderTimeoutMs === 0 ? this.#timing : timingOf(leaderTimeoutMs);
  }

  #hasLastTermEnded(): boolean {
    return this.#replay.lastEventType === "TermEnded";
  }

  #heard(): void {
    this.#heardMonotonicMs = this.#options.clock.monotonicMs();
    const { timeoutMs, silenceMsMax } = this.#followedTiming;
    this.#silenceMs = timeoutMs + (silenceMsMax - timeoutMs) * this.#options.random.next();
  }

  #watchSilence(): void {
    const { clock } = this.#options;
    const { pulseMs, pulseLateMs } = this.#followedTiming;
    this.#watchedMonotonicMs = clock.monotonicMs();
    this.#cancelWatch = clock.after(pulseMs, () => {
      const late = clock.monotonicMs() - this.#watchedMonotonicMs;
      if (late > pulseMs + pulseLateMs || this.#options.transport.status() !== "connected") this.#heard();
      const isSilent = clock.monotonicMs() - this.#heardMonotonicMs > this.#silenceMs;
      if (isSilent) void this.#inspect();
      else this.#watchSilence();
    });
  }

  /** Silence: reads what is there, and campaigns unless somebody was heard after all. */
  async #inspect(): Promise<void> {
    this.#leadershipSignal({ type: "SILENCE" });
    const isQuiet = await this.#isJournalQuiet();
    if (this.#isOver || this.#leader !== undefined) return;
    if (isQuiet) return this.#campaign();
    this.#leadershipSignal({ type: "HEARD" });
    this.#heard();
    this.#watchSilence();
  }

  async #isJournalQuiet(): Promise<boolean> {
    const before = this.#replay.position.seq;
    try {
      const { lastSeq } = await this.#options.journal.position();
      return lastSeq === before && this.#replay.position.seq === before;
    } catch (cause) {
      this.#options.logger.warn({ err: cause }, "the journal cannot be reached: standing by");
      return false;
    }
  }

  // --- leading ------------------------------------------------------------------------------------

  #campaign(): void {
    this.#stopFollowing.abort();
    this.#cancelWatch?.();
    this.#leadershipSignal({ type: "SILENCE" }, { type: "LOG_WHOLE" });
    const deps = {
      ...this.#options,
      subjects: this.#subjects,
      room: this.#room,
      timing: this.#timing,
      followed: this.#followed,
    };
    try {
      this.#leader = new Leader(deps, this.#replay, {
        onLeading: () => this.#lead(),
        onEnd: (end) => this.#leaderEnded(end),
      });
    } catch (cause) {
      this.#halt(cause);
    }
  }

  #lead(): void {
    this.#leadershipSignal({ type: "WON" }, { type: "REPLAYED" });
    this.#signal({ type: "ELECTED" });
    this.#options.logger.info({ term: this.#leader?.term }, "leading");
    this.#role.next("leading");
  }

  #leaderEnded(end: LeaderEnd): void {
    if (this.#role.value === "leading" && this.#leader !== undefined)
      this.#followed.read(this.#leader.now, this.#options.clock.monotonicMs());
    this.#leader = undefined;
    if (end.kind === "halted") return this.#halt(end.error);
    if (end.kind === "ended" || this.#isStopping) return this.#end(undefined);
    this.#options.logger.warn("deposed: another coordinator leads");
    this.#leadershipSignal({ type: "REFUSED" }, { type: "DEPOSED" });
    this.#signal({ type: "DEPOSED" });
    if (this.#role.value === "leading") this.#role.next("standing-by");
    void this.#standBy();
  }

  /** The speculative state is thrown away and folded anew from the journal. */
  async #standBy(): Promise<void> {
    this.#replay = new Replay();
    try {
      await this.#catchUp();
      this.#follow();
    } catch (cause) {
      this.#halt(cause);
    }
  }

  /** Its state is that of a term that nobody may see before it is won. */
  get #isCampaigning(): boolean {
    return this.#leader !== undefined && this.#role.value !== "leading";
  }

  /** Says who is here, for other coordinators and for clients that watch for a new term. */
  #beat(): void {
    const { id, transport, clock } = this.#options;
    const { term, idx } = this.#leader?.committed ?? this.#replay.position;
    const leading = this.#role.value === "leading";
    if (!this.#isCampaigning)
      transport.publish(this.#subjects.coordinator, encode({ id, term, idx, leading }));
    this.#cancelBeat = clock.after(this.#followedTiming.beatMs, () => this.#beat());
  }

  // --- endings ------------------------------------------------------------------------------------

  #halt(cause: unknown): void {
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
    this.#stopFollowing.abort();
    this.#cancelWatch?.();
    this.#cancelBeat?.();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    if (error === undefined) {
      this.#signal({ type: "HANDED_OVER" });
      this.#role.next("stopped");
    }
    this.#role.complete();
    this.#resolveClosed(error);
  }

  #signal(signal: CoordinatorSignal): void {
    this.#life.send(signal);
  }

  #leadershipSignal(...signals: readonly LeadershipSignal[]): void {
    for (const signal of signals) this.#leadership.send(signal);
  }
}
