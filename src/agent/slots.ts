// Slots in a user's program: acquired, used, released. The agent's part, which waits while the session
// (slot-leases.ts) asks the leader. The leader decides when to grant a slot (scheduling/).

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
  /** Cost of the work under the slot, counted in L(i): from 1 to a task's maximum weight, with three decimals.
   *  Default 1. */
  readonly weight?: number;
  /** Maximum wait, whole ms, at most a month; 0: no wait. Without an answer of a leader, the wait ends 2 s
   *  later, and after 30 s at the latest. Default Infinity. */
  readonly timeoutMs?: number;
  /** Gives up waiting: `acquire` rejects with the signal's reason. Has no effect after the slot was granted. */
  readonly signal?: AbortSignal;
  /** Names the work that holds the slot. A holder that holds slots may acquire only resources later in name
   *  order. Default: the agent as a whole, which may hold several slots of one resource, like a connection
   *  whose calls share a quota. Each handler and each call of `wrap` is a separate holder. Inside a `wrap`
   *  without `holder`, the resources of the `wrap` must come first in name order. */
  readonly holder?: string;
}

/** The held slots of one slot lease, until released. Declare with `await using`, or release in a `finally`. */
export interface Slot extends AsyncDisposable {
  /** For `releaseHandle`, when different code releases the slots. */
  readonly handle: string;
  /** In name order, one mention per slot. */
  readonly resources: readonly string[];
  /** Aborted, with a WaggleError of code `WAGGLE_SLOT_LOST`, when another holder may have the slots: the lease
   *  could not be renewed, the leader revoked the slots, or the agent ended. */
  readonly signal: AbortSignal;
  /** True after a call of `release`. */
  readonly isReleased: boolean;
  /** Releases the slots. Idempotent. Resolves when the release is journaled, and after at most 5 s; without an
   *  answer of a leader, the release continues in the background. Never rejects. */
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
  /** Callers that wait for the answer to a release. */
  readonly #releasesByKey = new Map<SlotKey, (error: PlainError | undefined) => void>();
  readonly #aborts = new Aborts();
  #keysMade = 0;
  #isClosed = false;

  constructor(deps: SlotsDeps) {
    this.#deps = deps;
  }

  /** @param holder default when the options name no holder
   *  @param signals that give up waiting, in addition to the signal of the options
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when the queue of the resource is full
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_ORDER`,
   *    `WAGGLE_ACQUIRE_TIMED_OUT`
   *  @throws NoLeaderError when no leader answered within `limits.askTimeoutMs`, 30 s; after a first answer,
   *    the wait outlasts the absence of a leader
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

  /** Releases a slot by its handle, whoever acquired the slot. Idempotent. Resolves when the release is
   *  journaled, and after at most 5 s; without an answer of a leader, the release continues in the background.
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE` when nothing was ever acquired under the handle */
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

  /** The agent has ended: held slots are lost, and pending requests fail. */
  close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#waitingByKey.values()) reject(ended());
    this.#waitingByKey.clear();
    for (const held of this.#heldByKey.values()) held.lose("stopping");
    for (const heard of this.#releasesByKey.values()) heard(undefined);
  }

  #granted(key: SlotKey, handle: string): void {
    const waiting = this.#waitingByKey.get(key);
    // Given up meanwhile: the session was notified, and releases the slot.
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

  /** Resolves when the leader has answered, or after the time of a request. */
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
  revoked: "the leader does not list it as held",
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

/** Runs before any wait for an agent or a leader. @throws InvalidMessageError naming the field */
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
  return new UnreachableError("The agent has ended and can acquire nothing");
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
