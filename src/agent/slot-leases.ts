// The slot leases of one agent: the session's part. Requests are repeated until answered, heartbeats list held
// and waiting slot leases, and releases are repeated until acknowledged. The user of a slot may run in another
// thread (slots.ts); keys identify a slot lease between the two.
// - asking → waiting: the leader queued the request. asking or waiting → held: the leader granted it.
// - any → releasing: the user released it. releasing → (forgotten): the leader answered.
// - asking, waiting or held → (forgotten): refused, timed out, or revoked.
//
// A handle is listed from before its request until its end is known, so the leader may take back all slots that
// are not listed. A grant may arrive before the answer that says to wait. The first answer must come within the
// time of any request; after a first answer, the wait outlasts changes of leader.

import { EMPTY, from, map, type Observable, Subscription } from "rxjs";
import type { z } from "zod";
import type { Clock, Random } from "../clock.ts";
import type { WaggleErrorCode } from "../errors.ts";
import { type Incarnation, type SlotHandle, slotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import type { CodedError, Heartbeat } from "../protocol/schemas.ts";
import {
  acquireResponseSchema,
  releaseResponseSchema,
  touchResponseSchema,
} from "../protocol/slot-schemas.ts";
import { type RetryPace, retryPaused, TryAgain } from "../retry-paused.ts";
import type { Answer, LeaderClient } from "./leader-client.ts";
import type { Leased } from "./lease-watch.ts";
import type {
  AbortReason,
  AcquireOrder,
  PlainError,
  SessionNotice,
  SlotKey,
  SlotLeaseReport,
  SlotLossReason,
} from "./link.ts";

/** 36¹⁶ values. */
const HANDLE_LENGTH = 16;

type AcquireAnswer = Answer<z.infer<typeof acquireResponseSchema>>;
type ListedSlots = NonNullable<Heartbeat["slots"]>;

export interface SlotLeasesDeps {
  readonly leader: LeaderClient;
  readonly pace: RetryPace;
  readonly clock: Clock;
  readonly random: Random;
  readonly notify: (notice: SessionNotice) => void;
  /** Id of the present incarnation, after it joined. */
  readonly incarnation: () => Incarnation | undefined;
  /** Why the agent has not joined, unless it only lacks a leader. */
  readonly whyApart: () => string | undefined;
  /** @returns false for a leader of an old term, whose answer must be ignored */
  readonly hear: (term: number) => boolean;
  /** When the newest message that a leader confirmed was sent, monotonic ms. */
  readonly confirmedAt: () => number;
  /** True if a lease that counts from `sentAt` lasts long enough to be confirmed. */
  readonly isRecent: (sentAt: number) => boolean;
  /** The leader refuses the agent itself. */
  readonly onRefused: (refusal: CodedError) => void;
  /** A handle is about to be asked for: every heartbeat from now on must list it. */
  readonly onAsking: () => void;
  /** A slot was granted: its lease must be watched. */
  readonly onHeld: () => void;
  /** A background task failed because of a bug. */
  readonly onFailure: (error: unknown) => void;
}

/** A slot lease, under successive handles if necessary. */
export interface LocalSlotLease extends Leased {
  readonly order: AcquireOrder;
  handle: SlotHandle;
  phase: "asking" | "waiting" | "held" | "releasing" | "over";
  /** The present request and its repetitions, one at a time. */
  asking: Subscription;
  cancelGivingUp: () => void;
  /** Armed until the first answer. */
  cancelAskTimeout: () => void;
  /** Why the newest request had no answer. */
  unanswered?: string;
  /** To be sent with the release. */
  report?: DatedReport | undefined;
}

/** A report, and when the holder made it, monotonic ms. */
interface DatedReport extends SlotLeaseReport {
  readonly at: number;
}

/** The release of a handle that this process does not hold. */
interface HandleRelease extends SlotLeaseReport {
  readonly key: SlotKey;
}

export class SlotLeases {
  readonly #deps: SlotLeasesDeps;
  readonly #byKey = new Map<SlotKey, LocalSlotLease>();
  readonly #byHandle = new Map<string, LocalSlotLease>();
  /** Reports that no leader has answered, from incarnations that ended. */
  readonly #unheard: (HandleRelease & DatedReport)[] = [];

  constructor(deps: SlotLeasesDeps) {
    this.#deps = deps;
  }

  all(): LocalSlotLease[] {
    return [...this.#byKey.values()];
  }

  /** For a heartbeat. Undefined when empty. */
  listed(): ListedSlots | undefined {
    if (this.#byKey.size === 0) return undefined;
    const all = this.all();
    return {
      held: all.filter(({ isRunning }) => isRunning).map(({ handle }) => handle),
      waiting: all.filter(({ isRunning }) => !isRunning).map(({ handle }) => handle),
    };
  }

  /** A leader renewed the leases that a message sent at `sentAt` listed. */
  confirm(listed: ListedSlots | undefined, sentAt: number): void {
    for (const handle of listed?.held ?? []) {
      const slotLease = this.#byHandle.get(handle);
      if (slotLease !== undefined) slotLease.confirmedAt = Math.max(slotLease.confirmedAt, sentAt);
    }
  }

  acquire(order: AcquireOrder): void {
    if (this.#byKey.size >= limits.slotLeasesPerAgentMax)
      return this.#deps.notify({ type: "slot-refused", key: order.key, error: tooMany });
    const slotLease: LocalSlotLease = {
      order,
      handle: this.#freshHandle(),
      phase: "asking",
      asking: Subscription.EMPTY,
      isRunning: false,
      isAborted: false,
      confirmedAt: 0,
      cancelGivingUp: () => undefined,
      cancelAskTimeout: this.#deps.clock.after(limits.askTimeoutMs, () =>
        this.#giveUp(slotLease, noLeaderAnswered(this.#deps.whyApart() ?? slotLease.unanswered)),
      ),
    };
    this.#byKey.set(order.key, slotLease);
    this.#byHandle.set(slotLease.handle, slotLease);
    if (order.timeoutMs !== undefined) {
      const waitMs = order.timeoutMs + limits.acquireGraceMs;
      slotLease.cancelGivingUp = this.#deps.clock.after(waitMs, () =>
        this.#giveUp(slotLease, timedOut(order)),
      );
    }
    this.#ask(slotLease);
  }

  /** Starts the idle time of a held slot anew. Repeated until a leader answers, or the next touch. */
  touch(key: SlotKey): void {
    const slotLease = this.#byKey.get(key);
    const incarnation = this.#deps.incarnation();
    if (slotLease?.phase !== "held" || incarnation === undefined) return;
    slotLease.asking.unsubscribe();
    slotLease.asking = this.#repeat(() => this.#touchOnce(slotLease, incarnation));
  }

  /** Releases a slot, or gives up the request. Idempotent. A report reaches the leader also where the slot is lost. */
  release(key: SlotKey, report?: SlotLeaseReport): void {
    const slotLease = this.#byKey.get(key);
    if (slotLease === undefined && saysMore(report)) return this.#releaseLost(key, report);
    if (slotLease === undefined) return this.#deps.notify({ type: "slot-released", key });
    if (slotLease.phase === "releasing") return;
    cancelAll(slotLease);
    slotLease.phase = "releasing";
    slotLease.report = report && this.#dated(report);
    const incarnation = this.#deps.incarnation();
    if (incarnation === undefined) this.#endRelease(slotLease);
    else slotLease.asking = this.#repeat(() => this.#giveBack(slotLease, incarnation));
  }

  /** Releases a handle that this process does not hold: only the leader knows its state. */
  releaseHandle({ key, ...report }: HandleRelease): void {
    const release = { key, ...this.#dated(report) };
    this.#repeat(() => this.#askToRelease(release));
  }

  /** The loss of a slot has settled its tokens, unless the holder reports more. */
  #releaseLost(key: SlotKey, { usage = { tokens: 0 }, ...report }: SlotLeaseReport): void {
    this.releaseHandle({ key, usage, ...report });
  }

  granted(handles: readonly string[]): void {
    for (const handle of handles) {
      const slotLease = this.#byHandle.get(handle);
      if (slotLease !== undefined) this.#hold(slotLease, this.#deps.confirmedAt());
    }
  }

  ended(waits: readonly { readonly handle: string; readonly reason: string }[]): void {
    for (const { handle, reason } of waits) {
      const slotLease = this.#byHandle.get(handle);
      if (slotLease === undefined || slotLease.phase === "releasing" || slotLease.phase === "held") continue;
      if (reason === "timed-out") this.#refuse(slotLease, timedOut(slotLease.order));
      else if (slotLease.phase === "waiting") this.#askAnew(slotLease);
    }
  }

  /** A release under way goes on where it reports more than the release: the leader has not heard it yet. */
  revoked(handles: readonly string[], reason: SlotLossReason = "revoked"): void {
    for (const handle of handles) {
      const slotLease = this.#byHandle.get(handle);
      if (slotLease?.phase === "held") this.#lose(slotLease, reason);
      else if (slotLease?.phase === "releasing" && slotLease.isRunning && !saysMore(slotLease.report))
        this.#released(slotLease);
    }
  }

  /** An incarnation joined: pending requests are repeated in its name. */
  begin(): void {
    for (const slotLease of this.#byKey.values())
      if (slotLease.phase === "asking" || slotLease.phase === "waiting") this.#askAnew(slotLease);
    for (const release of this.#unheard.splice(0)) this.#repeat(() => this.#askToRelease(release));
  }

  /** The incarnation ended: its held slots are lost. Pending requests wait for the next incarnation. */
  endIncarnation(reason: AbortReason): void {
    for (const slotLease of this.all()) {
      if (slotLease.phase === "held") this.#lose(slotLease, reason);
      else if (slotLease.phase === "releasing") this.#endRelease(slotLease);
      else slotLease.asking.unsubscribe();
    }
  }

  /** The incarnation ends before a leader answered a release: the next incarnation reports. */
  #endRelease(slotLease: LocalSlotLease): void {
    const { report, order } = slotLease;
    this.#released(slotLease);
    if (saysMore(report)) this.#unheard.push({ key: order.key, usage: { tokens: 0 }, ...report });
    if (this.#unheard.length > limits.slotLeasesPerAgentMax) this.#unheard.shift();
  }

  /** No incarnation follows. */
  close(): void {
    this.endIncarnation("stopping");
    for (const slotLease of this.all())
      this.#refuse(slotLease, {
        code: "WAGGLE_UNREACHABLE",
        message: "the agent has ended and can acquire nothing",
      });
  }

  #ask(slotLease: LocalSlotLease): void {
    slotLease.asking.unsubscribe();
    const incarnation = this.#deps.incarnation();
    if (incarnation === undefined) return;
    this.#deps.onAsking();
    slotLease.asking = this.#repeat(() => this.#askOnce(slotLease, incarnation));
  }

  /** Uses a new handle, because the outcome of the old handle is unknown or final. */
  #askAnew(slotLease: LocalSlotLease): void {
    this.#byHandle.delete(slotLease.handle);
    slotLease.handle = this.#freshHandle();
    this.#byHandle.set(slotLease.handle, slotLease);
    slotLease.phase = "asking";
    this.#ask(slotLease);
  }

  #askOnce(slotLease: LocalSlotLease, incarnation: Incarnation): Observable<void> {
    const { leader, clock } = this.#deps;
    const { handle } = slotLease;
    const { key: _, ...wanted } = slotLease.order;
    const sentAt = clock.monotonicMs();
    const answer = leader.ask("acquire", { incarnation, handle, ...wanted }, acquireResponseSchema);
    return from(answer).pipe(map((each) => this.#onAsked(slotLease, each, sentAt)));
  }

  /** @throws TryAgain */
  #onAsked(slotLease: LocalSlotLease, answer: AcquireAnswer, sentAt: number): void {
    const { hear, confirmedAt, isRecent, onRefused } = this.#deps;
    if (answer.kind === "refused") {
      if (isOfTheAgent(answer.refusal)) return onRefused(answer.refusal);
      return this.#refuse(slotLease, answer.refusal);
    }
    if (answer.kind === "answered" && "answer" in answer.value && hear(answer.value.term)) {
      const { answer: verdict } = answer.value;
      if (!verdict.ok) return this.#refuse(slotLease, verdict);
      if (verdict.state === "waiting") {
        slotLease.phase = "waiting";
        return slotLease.cancelAskTimeout();
      }
      const grantedAt = Math.max(sentAt, confirmedAt());
      if (isRecent(grantedAt)) return this.#hold(slotLease, grantedAt);
    }
    if (answer.kind === "unanswered") slotLease.unanswered = answer.why;
    throw new TryAgain();
  }

  #touchOnce(slotLease: LocalSlotLease, incarnation: Incarnation): Observable<void> {
    const { leader, hear, onRefused } = this.#deps;
    const { handle } = slotLease;
    return from(leader.ask("touch", { incarnation, handle }, touchResponseSchema)).pipe(
      map((answer) => {
        if (answer.kind === "refused" && isOfTheAgent(answer.refusal)) return onRefused(answer.refusal);
        if (answer.kind === "unanswered") throw new TryAgain();
        if (answer.kind === "refused" || !("term" in answer.value) || !hear(answer.value.term)) return;
        const { state, reason } = answer.value;
        if (state === "ended") this.revoked([handle], reason === "idle" ? "idle" : "revoked");
      }),
    );
  }

  #giveBack(slotLease: LocalSlotLease, incarnation: Incarnation): Observable<void> {
    const { leader, onRefused } = this.#deps;
    const { handle, report } = slotLease;
    const message = { incarnation, handle, ...this.#toSend(report) };
    return from(leader.ask("release", message, releaseResponseSchema)).pipe(
      map((answer) => {
        if (answer.kind === "refused" && isOfTheAgent(answer.refusal)) return onRefused(answer.refusal);
        if (answer.kind === "unanswered") throw new TryAgain();
        // The leader never granted an unknown handle, so nothing is left to release.
        this.#released(slotLease);
      }),
    );
  }

  #askToRelease(release: HandleRelease & DatedReport): Observable<void> {
    const { leader, notify, onRefused } = this.#deps;
    const { key, handle } = release;
    const incarnation = this.#deps.incarnation();
    if (incarnation === undefined) {
      if (saysMore(release)) this.#unheard.push(release);
      notify({ type: "slot-released", key });
      return EMPTY;
    }
    const message = { incarnation, handle, ...this.#toSend(release) };
    return from(leader.ask("release", message, releaseResponseSchema)).pipe(
      map((answer) => {
        if (answer.kind === "answered") return notify({ type: "slot-released", key });
        if (answer.kind === "refused" && !isOfTheAgent(answer.refusal))
          return notify({ type: "slot-released", key, error: plain(answer.refusal) });
        if (answer.kind === "refused") onRefused(answer.refusal);
        throw new TryAgain();
      }),
    );
  }

  #dated(report: SlotLeaseReport): DatedReport {
    return { ...report, at: this.#deps.clock.monotonicMs() };
  }

  /** The provider's time runs from the report, and not from a message that is repeated. */
  #toSend(report: DatedReport | undefined): Omit<SlotLeaseReport, "handle"> {
    const { usage, refused, unanswered, at = 0 } = report ?? {};
    const passedMs = Math.floor(this.#deps.clock.monotonicMs() - at);
    const forMs = refused?.forMs;
    const left = forMs === undefined ? refused : { ...refused, forMs: Math.max(0, forMs - passedMs) };
    return {
      ...(usage === undefined ? {} : { usage }),
      ...(left === undefined ? {} : { refused: left }),
      ...(unanswered === undefined ? {} : { unanswered }),
    };
  }

  #repeat(ask: () => Observable<void>): Subscription {
    const { pace, onFailure } = this.#deps;
    return retryPaused(ask, pace).subscribe({ error: onFailure });
  }

  /** @param confirmedAt start of the lease, monotonic ms */
  #hold(slotLease: LocalSlotLease, confirmedAt: number): void {
    if (slotLease.phase !== "asking" && slotLease.phase !== "waiting") return;
    cancelAll(slotLease);
    slotLease.phase = "held";
    slotLease.isRunning = true;
    slotLease.confirmedAt = confirmedAt;
    this.#deps.notify({ type: "slot-granted", key: slotLease.order.key, handle: slotLease.handle });
    this.#deps.onHeld();
  }

  #lose(slotLease: LocalSlotLease, reason: SlotLossReason): void {
    this.#forget(slotLease);
    this.#deps.notify({ type: "slot-lost", key: slotLease.order.key, reason });
  }

  #released(slotLease: LocalSlotLease): void {
    this.#forget(slotLease);
    this.#deps.notify({ type: "slot-released", key: slotLease.order.key });
  }

  #refuse(slotLease: LocalSlotLease, error: Omit<CodedError, "ok">): void {
    this.#forget(slotLease);
    this.#deps.notify({ type: "slot-refused", key: slotLease.order.key, error: plain(error) });
  }

  /** No leader reported the timeout, or answered at all, in time: the slot must not be granted any more. */
  #giveUp(slotLease: LocalSlotLease, error: PlainError): void {
    if (slotLease.phase !== "asking" && slotLease.phase !== "waiting") return;
    this.#deps.notify({ type: "slot-refused", key: slotLease.order.key, error });
    this.release(slotLease.order.key);
  }

  #forget(slotLease: LocalSlotLease): void {
    cancelAll(slotLease);
    slotLease.phase = "over";
    slotLease.isRunning = false;
    this.#byKey.delete(slotLease.order.key);
    this.#byHandle.delete(slotLease.handle);
  }

  #freshHandle(): SlotHandle {
    return slotHandle(this.#deps.random.id(HANDLE_LENGTH));
  }
}

/** Whether the leader must hear the report, also where it has taken the slot back. */
function saysMore(report: SlotLeaseReport | undefined): report is SlotLeaseReport {
  return report?.usage !== undefined || report?.refused !== undefined;
}

/** The leader may have accepted the request. Releasing the handle makes the end definite. */
export function noLeaderAnswered(why?: string): PlainError {
  const cause = why === undefined ? "" : `: ${why}`;
  const seconds = limits.askTimeoutMs / 1_000;
  const message = `No leader answered for ${seconds} s${cause}. Is a coordinator running (\`waggle up\`)? Nothing is held`;
  return { code: "WAGGLE_NO_LEADER", message };
}

/** Mirrors the leader's limit. Counts requests that no leader has received as well, since a heartbeat lists
 *  them all. */
const tooMany: PlainError = {
  code: "WAGGLE_BACKPRESSURE",
  message: `the agent holds, waits for or releases ${limits.slotLeasesPerAgentMax} slot leases, the maximum: release some`,
  retryAfterMs: limits.retryAfterMs,
};

function timedOut({ resources, timeoutMs, tokens = 0 }: AcquireOrder): PlainError {
  const within = timeoutMs === undefined ? "in time" : `within ${timeoutMs} ms`;
  const room = tokens === 0 ? "" : `, or budgets and rates had no room for ${tokens} tokens,`;
  const message = `no slot of ${resources.join(" and ")} was free${room} ${within}: nothing is held. \`waggle resource show ${resources[0]}\` says what requests wait for`;
  return { code: "WAGGLE_ACQUIRE_TIMED_OUT", message };
}

function cancelAll({ asking, cancelGivingUp, cancelAskTimeout }: LocalSlotLease): void {
  asking.unsubscribe();
  cancelGivingUp();
  cancelAskTimeout();
}

function isOfTheAgent({ code }: CodedError): boolean {
  return code === "WAGGLE_UNKNOWN_AGENT" || code === "WAGGLE_FENCED";
}

/** Codes of a later version pass through unchanged. */
function plain({ code, message, field, retryAfterMs, budget, hold }: Omit<CodedError, "ok">): PlainError {
  return {
    code: code as WaggleErrorCode,
    message,
    ...(field === undefined ? {} : { field }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(budget === undefined ? {} : { budget }),
    ...(hold === undefined ? {} : { hold }),
  };
}
