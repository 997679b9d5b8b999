// Slots as a program has them: acquired, used, given back. The part of an agent that waits for what its session
// (slot-leases.ts) asks the leader for. Not here: who is granted a slot when.

import { Aborts } from "../abort.ts";
import { unreachable } from "../assert.ts";
import type { Clock } from "../clock.ts";
import {
  BackpressureError,
  InvalidMessageError,
  NoLeaderError,
  UnreachableError,
  WaggleError,
} from "../errors.ts";
import { limits } from "../limits.ts";
import { acquireRequestSchema } from "../protocol/slot-schemas.ts";
import type { AbortReason, PlainError, SessionOrder, SlotKey, SlotNotice } from "./link.ts";
import {
  abortSignal,
  argument,
  type OptionRules,
  orInfinity,
  readerOf,
  text,
  weightOfModel,
} from "./options.ts";

export interface AcquireOptions {
  /** What the work under the slot costs, counted in L(i): at least 1, at most what a task's may be; three decimals.
   *  Default 1. */
  readonly weight?: number;
  /** Longest it waits, whole ms, at most a month; 0: not at all. Where no leader answers, it gives up 2 s after
   *  that, or after 30 s. Infinity and default: for as long as it takes. */
  readonly timeoutMs?: number;
  /** Gives up waiting, which then rejects with the signal's reason. A slot that was granted it leaves alone. */
  readonly signal?: AbortSignal;
  /** The line of work it is for: whoever holds something may acquire only what comes later in name order, and that
   *  is asked of each line by itself. Default: the agent as a whole, which may hold several slots of one resource,
   *  as a connection does whose calls share a quota. Handlers, and calls of `wrap`, are lines of their own; inside a
   *  `wrap`, unless another holder is named, what it holds must come before what is acquired. */
  readonly holder?: string;
}

/** Slots that are held: all those of one slot lease, until released. Declare it with `await using`, or release it
 *  in a `finally`. */
export interface Slot extends AsyncDisposable {
  /** For `releaseHandle`, when who releases is not who acquired. */
  readonly handle: string;
  /** In name order, one mention for each slot. */
  readonly resources: readonly string[];
  /** Aborted, with a WaggleError of code `WAGGLE_SLOT_LOST`, when the slots may be somebody else's by now: the lease
   *  could not be renewed, the leader took them back, or the agent ended. */
  readonly signal: AbortSignal;
  /** Whether `release` was called. */
  readonly isReleased: boolean;
  /** Gives the slots back. Idempotent. Resolves when that is on the record; where no leader hears of it within 5 s
   *  it resolves all the same, and goes on in the background. Never rejects. */
  release(): Promise<void>;
}

export interface SlotsDeps {
  readonly clock: Clock;
  readonly tell: (order: SessionOrder) => void;
}

interface Waiting {
  readonly resources: readonly string[];
  readonly resolve: (slot: Slot) => void;
  readonly reject: (error: unknown) => void;
}

export class Slots {
  readonly #deps: SlotsDeps;
  readonly #waitingByKey = new Map<SlotKey, Waiting>();
  readonly #heldByKey = new Map<SlotKey, HeldSlot>();
  readonly #heldByHandle = new Map<string, HeldSlot>();
  /** Who waits for a release to be heard. */
  readonly #releasesByKey = new Map<SlotKey, (error: PlainError | undefined) => void>();
  readonly #aborts = new Aborts();
  #keysMade = 0;
  #isClosed = false;

  constructor(deps: SlotsDeps) {
    this.#deps = deps;
  }

  /** @param holder where the options name none @param signals that give up waiting, beside the one of the options
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when as many wait as may
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_ORDER`,
   *    `WAGGLE_ACQUIRE_TIMED_OUT`
   *  @throws NoLeaderError when no leader answered for `limits.askTimeoutMs`, 30 s; a wait that one has answered
   *    outlasts its absence
   *  @throws UnreachableError when the agent has ended
   *  @throws the reason of a signal */
  async acquire(
    resources: string | readonly string[],
    options?: AcquireOptions,
    { holder, signals = [] }: { readonly holder?: string; readonly signals?: readonly AbortSignal[] } = {},
  ): Promise<Slot> {
    const { wanted: asked, signal } = readSlotLease(resources, options);
    const wanted = holder === undefined ? asked : { holder, ...asked };
    const giveUps = signal === undefined ? signals : [signal, ...signals];
    for (const each of giveUps) each.throwIfAborted();
    if (this.#isClosed) throw ended();
    const key = this.#nextKey();
    const givenUp = this.#aborts.linkedTo(...giveUps);
    try {
      return await new Promise<Slot>((resolve, reject) => {
        this.#waitingByKey.set(key, { resources: wanted.resources.toSorted(), resolve, reject });
        this.#aborts.on(givenUp.signal, () => this.#giveUp(key, givenUp.signal.reason));
        this.#deps.tell({ type: "acquire", slotLease: { key, ...wanted } });
      });
    } finally {
      givenUp.abort();
    }
  }

  /** Releases a slot by its handle, whoever acquired it. Idempotent. Resolves when that is on the record; where no
   *  leader hears of it within 5 s it resolves all the same, and goes on in the background.
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE` when nothing was ever acquired under it */
  async releaseHandle(given: string): Promise<void> {
    const handle = argument(["releaseHandle", "handle"], given, text);
    const held = this.#heldByHandle.get(handle);
    if (held !== undefined) return await held.release();
    if (this.#isClosed) throw ended();
    const key = this.#nextKey();
    const error = await this.#heard(key, { type: "release-handle", key, handle });
    if (error !== undefined) throw errorOf(error);
  }

  obey(notice: SlotNotice): void {
    switch (notice.type) {
      case "slot-granted":
        return this.#granted(notice.key, notice.handle);
      case "slot-refused":
        this.#waitingByKey.get(notice.key)?.reject(errorOf(notice.error));
        this.#waitingByKey.delete(notice.key);
        return;
      case "slot-lost":
        return this.#heldByKey.get(notice.key)?.lose(notice.reason);
      case "slot-released":
        this.#releasesByKey.get(notice.key)?.(notice.error);
        return;
      default:
        return unreachable(notice);
    }
  }

  /** The agent has ended: nothing is held, and nothing will be granted. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#waitingByKey.values()) reject(ended());
    this.#waitingByKey.clear();
    for (const held of this.#heldByKey.values()) held.lose("stopping");
    for (const heard of this.#releasesByKey.values()) heard(undefined);
  }

  #granted(key: SlotKey, handle: string): void {
    const waiting = this.#waitingByKey.get(key);
    // Given up in the meantime: the session was told, and gives it back.
    if (waiting === undefined) return;
    this.#waitingByKey.delete(key);
    const slot = new HeldSlot(handle, waiting.resources, async () => {
      this.#heldByKey.delete(key);
      this.#heldByHandle.delete(handle);
      if (!this.#isClosed) await this.#heard(key, { type: "release", key });
    });
    this.#heldByKey.set(key, slot);
    this.#heldByHandle.set(handle, slot);
    waiting.resolve(slot);
  }

  #giveUp(key: SlotKey, reason: unknown): void {
    const waiting = this.#waitingByKey.get(key);
    if (waiting === undefined) return;
    this.#waitingByKey.delete(key);
    waiting.reject(reason);
    this.#deps.tell({ type: "release", key });
  }

  /** Resolves when the leader has answered, or has been given time enough to. */
  async #heard(key: SlotKey, order: SessionOrder): Promise<PlainError | undefined> {
    return await new Promise((resolve) => {
      const heard = (error?: PlainError) => {
        cancel();
        this.#releasesByKey.delete(key);
        resolve(error);
      };
      const cancel = this.#deps.clock.after(limits.requestTimeoutMs, heard, { unref: true });
      this.#releasesByKey.set(key, heard);
      this.#deps.tell(order);
    });
  }

  #nextKey(): SlotKey {
    this.#keysMade += 1;
    return `s${this.#keysMade}`;
  }
}

class HeldSlot implements Slot {
  readonly handle: string;
  readonly resources: readonly string[];
  readonly #giveBack: () => Promise<void>;
  readonly #lost = new AbortController();
  #releasing: Promise<void> | undefined;

  constructor(handle: string, resources: readonly string[], giveBack: () => Promise<void>) {
    this.handle = handle;
    this.resources = resources;
    this.#giveBack = giveBack;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get isReleased(): boolean {
    return this.#releasing !== undefined;
  }

  release(): Promise<void> {
    this.#releasing ??= this.#giveBack();
    return this.#releasing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  lose(reason: AbortReason): void {
    const sentence = `the slot of ${this.resources.join(" and ")} is lost: ${whyLost[reason]}`;
    this.#lost.abort(new WaggleError("WAGGLE_SLOT_LOST", sentence));
  }
}

const whyLost: Readonly<Record<AbortReason, string>> = {
  revoked: "the leader does not know it as held",
  lease: "its lease could not be renewed in time",
  lapsed: "the leader counted the agent as lost",
  fenced: "another process joined under the agent's id",
  stopping: "the agent has ended",
};

const { shape } = acquireRequestSchema;

export const acquireRules = {
  each: {
    weight: shape.weight,
    timeoutMs: orInfinity(shape.timeoutMs),
    signal: abortSignal,
    holder: shape.holder,
  },
  otherwise: { timeout: "timeoutMs", model: weightOfModel },
  example: "{ weight: 2.5 }",
} satisfies OptionRules<AcquireOptions>;

const readAcquireOptions = readerOf<AcquireOptions>(acquireRules);

/** Before anything waits for an agent or a leader. @throws InvalidMessageError naming the field */
export function readSlotLease(resources: unknown, options: unknown) {
  const { signal, timeoutMs, ...rest } = readAcquireOptions("acquire", options);
  return {
    signal,
    wanted: {
      resources: argument(["acquire", "resources"], [resources].flat(), shape.resources),
      ...rest,
      ...(timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY ? {} : { timeoutMs }),
    },
  };
}

function ended(): UnreachableError {
  return new UnreachableError("The agent that acquires has ended: nothing can be acquired by it");
}

function errorOf({ code, message, field, retryAfterMs }: PlainError): WaggleError {
  const options = field === undefined ? {} : { field };
  switch (code) {
    case "WAGGLE_BACKPRESSURE":
      return new BackpressureError(message, retryAfterMs ?? limits.retryAfterMs);
    case "WAGGLE_INVALID_MESSAGE":
      return new InvalidMessageError(message, options);
    case "WAGGLE_NO_LEADER":
      return new NoLeaderError(message, options);
    case "WAGGLE_UNREACHABLE":
      return new UnreachableError(message, options);
    default:
      return new WaggleError(code, message, options);
  }
}
