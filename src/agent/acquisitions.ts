// What one agent has asked for of slots, and what the leader said: the session's part. It asks until it is answered,
// lists in heartbeats what it holds and waits for, and gives back until it is heard. Who waits for a slot or uses
// one is in another thread, maybe (slots.ts); the two speak by keys.
//
//   asking ─waiting→ waiting ─granted→ held ─release→ releasing ─answered→ (forgotten)
//      └──granted──────────────────────┘ any: release → releasing; refused, timed out, revoked → (forgotten)
//
// The one thing to know: a handle is listed from before it is asked for until it is known how it ended, so that
// what is not listed is free to be taken back. A grant may arrive before the answer that says to wait.

import type { Clock, Random } from "../clock.ts";
import type { WaggleErrorCode } from "../errors.ts";
import { type Incarnation, type SlotHandle, slotHandle } from "../ids.ts";
import { limits } from "../limits.ts";
import type { CodedError, Heartbeat } from "../protocol/schemas.ts";
import { acquireResponseSchema, releaseResponseSchema } from "../protocol/slot-schemas.ts";
import type { LeaderLine } from "./leader-line.ts";
import type { Leased } from "./lease-watch.ts";
import type { AbortReason, AcquireOrder, SessionNotice, SlotKey } from "./link.ts";
import type { Patience } from "./patience.ts";

/** 36¹⁶ of them. */
const HANDLE_LENGTH = 16;

type ListedSlots = NonNullable<Heartbeat["slots"]>;

export interface AcquisitionsDeps {
  readonly line: LeaderLine;
  readonly patience: Patience;
  readonly clock: Clock;
  readonly random: Random;
  readonly notify: (notice: SessionNotice) => void;
  /** The present life, when it has joined. */
  readonly life: () => Incarnation | undefined;
  /** @returns whether to listen to who says it */
  readonly hear: (term: number) => boolean;
  /** From when the lease of what is granted now counts, monotonic ms. */
  readonly leaseStart: () => number;
  /** The leader refuses the agent itself. */
  readonly onRefused: (refusal: CodedError) => void;
  /** Something is held: leases are to be watched. */
  readonly onHeld: () => void;
  /** Something that runs on its own failed as nothing should. */
  readonly onFailure: (error: unknown) => void;
}

/** One acquisition, under one handle after the other if need be. */
export interface HeldSlot extends Leased {
  readonly order: AcquireOrder;
  handle: SlotHandle;
  phase: "asking" | "waiting" | "held" | "releasing" | "over";
  /** Bumped when it is asked for anew: what an earlier question brought is told apart. */
  round: number;
  cancelGivingUp: () => void;
}

export class Acquisitions {
  readonly #deps: AcquisitionsDeps;
  readonly #byKey = new Map<SlotKey, HeldSlot>();
  readonly #byHandle = new Map<string, HeldSlot>();

  constructor(deps: AcquisitionsDeps) {
    this.#deps = deps;
  }

  all(): HeldSlot[] {
    return [...this.#byKey.values()];
  }

  /** For a heartbeat; undefined when there is nothing to list. */
  listed(): ListedSlots | undefined {
    if (this.#byKey.size === 0) return undefined;
    const all = this.all();
    return {
      held: all.filter(({ isRunning }) => isRunning).map(({ handle }) => handle),
      waiting: all.filter(({ isRunning }) => !isRunning).map(({ handle }) => handle),
    };
  }

  /** A leader has renewed the leases of what was listed in a message sent at `sentAt`. */
  confirm(listed: ListedSlots | undefined, sentAt: number): void {
    for (const handle of listed?.held ?? []) {
      const slot = this.#byHandle.get(handle);
      if (slot !== undefined) slot.confirmedAt = Math.max(slot.confirmedAt, sentAt);
    }
  }

  acquire(order: AcquireOrder): void {
    const slot: HeldSlot = {
      order,
      handle: this.#freshHandle(),
      phase: "asking",
      round: 0,
      isRunning: false,
      isAborted: false,
      confirmedAt: 0,
      cancelGivingUp: () => undefined,
    };
    this.#byKey.set(order.key, slot);
    this.#byHandle.set(slot.handle, slot);
    if (order.timeoutMs !== undefined) {
      const waitMs = Math.min(order.timeoutMs + limits.acquireGraceMs, limits.timerMsMax);
      slot.cancelGivingUp = this.#deps.clock.after(waitMs, () => this.#giveUp(slot));
    }
    this.#ask(slot);
  }

  /** Gives a slot back, or up. Idempotent. */
  release(key: SlotKey): void {
    const slot = this.#byKey.get(key);
    if (slot === undefined) return this.#deps.notify({ type: "slot-released", key });
    if (slot.phase === "releasing") return;
    slot.cancelGivingUp();
    slot.phase = "releasing";
    slot.round += 1;
    if (this.#deps.life() === undefined) this.#released(slot);
    else this.#attempted(this.#giveBack(slot));
  }

  /** A handle that nobody here holds: what becomes of it is the leader's to say. */
  releaseHandle(key: SlotKey, handle: string): void {
    this.#attempted(this.#askToRelease(key, handle));
  }

  granted(handles: readonly string[]): void {
    for (const handle of handles) {
      const slot = this.#byHandle.get(handle);
      if (slot !== undefined) this.#hold(slot);
    }
  }

  ended(waits: readonly { readonly handle: string; readonly reason: string }[]): void {
    for (const { handle, reason } of waits) {
      const slot = this.#byHandle.get(handle);
      if (slot === undefined || slot.phase === "releasing" || slot.phase === "held") continue;
      if (reason === "timed-out") this.#refuse(slot, timedOut);
      else if (slot.phase === "waiting") this.#askAnew(slot);
    }
  }

  revoked(handles: readonly string[]): void {
    for (const handle of handles) {
      const slot = this.#byHandle.get(handle);
      if (slot?.phase === "held") this.#lose(slot, "revoked");
      else if (slot?.phase === "releasing" && slot.isRunning) this.#released(slot);
    }
  }

  /** A life has joined: what waits is asked for in its name. */
  begin(): void {
    for (const slot of this.#byKey.values())
      if (slot.phase === "asking" || slot.phase === "waiting") this.#askAnew(slot);
  }

  /** The life is over, and all that it held with it; what waits goes on in the next one's name. */
  endLife(reason: AbortReason): void {
    for (const slot of this.all()) {
      if (slot.phase === "held") this.#lose(slot, reason);
      else if (slot.phase === "releasing") this.#released(slot);
      else slot.round += 1;
    }
  }

  /** There is no next life. */
  close(): void {
    this.endLife("stopping");
    for (const slot of this.all())
      this.#refuse(slot, {
        code: "WAGGLE_UNREACHABLE",
        message: "the agent has ended: nothing can be acquired by it",
      });
  }

  #ask(slot: HeldSlot): void {
    const incarnation = this.#deps.life();
    if (incarnation !== undefined) this.#attempted(this.#askUntilAnswered(slot, incarnation));
  }

  /** Under another handle: of the one before it is not known how it ended, or only that it did. */
  #askAnew(slot: HeldSlot): void {
    this.#byHandle.delete(slot.handle);
    slot.handle = this.#freshHandle();
    this.#byHandle.set(slot.handle, slot);
    slot.phase = "asking";
    slot.round += 1;
    this.#ask(slot);
  }

  async #askUntilAnswered(slot: HeldSlot, incarnation: Incarnation): Promise<void> {
    const { line, patience, hear, onRefused } = this.#deps;
    const { round, handle } = slot;
    const { key: _, ...wanted } = slot.order;
    for (let failures = 1; ; failures += 1) {
      const answer = await line.ask("acquire", { incarnation, handle, ...wanted }, acquireResponseSchema);
      if (slot.phase !== "asking" || slot.round !== round) return;
      if (answer.kind === "refused") {
        if (isOfTheAgent(answer.refusal)) return onRefused(answer.refusal);
        return this.#refuse(slot, answer.refusal);
      }
      if (answer.kind === "answered" && "answer" in answer.value && hear(answer.value.term)) {
        const { answer: verdict } = answer.value;
        if (!verdict.ok) return this.#refuse(slot, verdict);
        if (verdict.state === "granted") return this.#hold(slot);
        slot.phase = "waiting";
        return;
      }
      await patience.afterFailure(failures);
      if (slot.phase !== "asking" || slot.round !== round) return;
    }
  }

  async #giveBack(slot: HeldSlot): Promise<void> {
    const { line, patience, onRefused } = this.#deps;
    for (let failures = 1; slot.phase === "releasing"; failures += 1) {
      const incarnation = this.#deps.life();
      if (incarnation === undefined) return this.#released(slot);
      const { handle } = slot;
      const answer = await line.ask("release", { incarnation, handle }, releaseResponseSchema);
      if (slot.phase !== "releasing") return;
      if (answer.kind === "refused" && isOfTheAgent(answer.refusal)) return onRefused(answer.refusal);
      // An unknown handle was never acquired: there is nothing to give back.
      if (answer.kind !== "unanswered") return this.#released(slot);
      await patience.afterFailure(failures);
    }
  }

  async #askToRelease(key: SlotKey, handle: string): Promise<void> {
    const { line, patience, notify, onRefused } = this.#deps;
    for (let failures = 1; ; failures += 1) {
      const incarnation = this.#deps.life();
      if (incarnation === undefined) return notify({ type: "slot-released", key });
      const answer = await line.ask("release", { incarnation, handle }, releaseResponseSchema);
      if (answer.kind === "refused" && isOfTheAgent(answer.refusal)) onRefused(answer.refusal);
      else if (answer.kind === "refused")
        return notify({ type: "slot-released", key, error: plain(answer.refusal) });
      if (answer.kind === "answered") return notify({ type: "slot-released", key });
      await patience.afterFailure(failures);
    }
  }

  #hold(slot: HeldSlot): void {
    if (slot.phase !== "asking" && slot.phase !== "waiting") return;
    slot.cancelGivingUp();
    slot.phase = "held";
    slot.isRunning = true;
    slot.confirmedAt = this.#deps.leaseStart();
    this.#deps.notify({ type: "slot-granted", key: slot.order.key, handle: slot.handle });
    this.#deps.onHeld();
  }

  #lose(slot: HeldSlot, reason: AbortReason): void {
    this.#forget(slot);
    this.#deps.notify({ type: "slot-lost", key: slot.order.key, reason });
  }

  #released(slot: HeldSlot): void {
    this.#forget(slot);
    this.#deps.notify({ type: "slot-released", key: slot.order.key });
  }

  #refuse(slot: HeldSlot, error: Omit<CodedError, "ok">): void {
    this.#forget(slot);
    this.#deps.notify({ type: "slot-refused", key: slot.order.key, error: plain(error) });
  }

  /** No leader said in time that the time is up: by then the slot must not be granted any more. */
  #giveUp(slot: HeldSlot): void {
    if (slot.phase !== "asking" && slot.phase !== "waiting") return;
    this.#deps.notify({ type: "slot-refused", key: slot.order.key, error: plain(timedOut) });
    this.release(slot.order.key);
  }

  #forget(slot: HeldSlot): void {
    slot.cancelGivingUp();
    slot.phase = "over";
    slot.isRunning = false;
    this.#byKey.delete(slot.order.key);
    this.#byHandle.delete(slot.handle);
  }

  #freshHandle(): SlotHandle {
    return slotHandle(this.#deps.random.id(HANDLE_LENGTH));
  }

  #attempted(running: Promise<void>): void {
    running.catch((error: unknown) => this.#deps.onFailure(error));
  }
}

const timedOut = {
  code: "WAGGLE_ACQUIRE_TIMED_OUT",
  message: "no slot was free in time: nothing is held",
} as const;

function isOfTheAgent({ code }: CodedError): boolean {
  return code === "WAGGLE_UNKNOWN_AGENT" || code === "WAGGLE_FENCED";
}

/** Codes of a later version pass through as they are. */
function plain({ code, message, field, retryAfterMs }: Omit<CodedError, "ok">) {
  return {
    code: code as WaggleErrorCode,
    message,
    ...(field === undefined ? {} : { field }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}
