// Slots in a user's program: acquired, used, released. The agent's part, which waits while the session
// (slot-leases.ts) asks the leader. The leader decides when to grant a slot (scheduling/).

import { Aborts } from "../abort.ts";
import { unreachable } from "../assert.ts";
import type { Clock } from "../clock.ts";
import {
  BackpressureError,
  BudgetExceededError,
  InvalidMessageError,
  NoLeaderError,
  OnHoldError,
  UnreachableError,
  WaggleError,
} from "../errors.ts";
import type { ResourceName } from "../ids.ts";
import { limits } from "../limits.ts";
import { shown } from "../protocol/sentence.ts";
import { acquireRequestSchema, type SlotRefusalClaim, type SlotUsage } from "../protocol/slot-schemas.ts";
import type { AcquireOrder, PlainError, SessionOrder, SlotKey, SlotLossReason, SlotNotice } from "./link.ts";
import {
  abortSignal,
  argument,
  judged,
  type OptionRules,
  orInfinity,
  readerOf,
  weightOfModel,
} from "./options.ts";
import { type ReleaseClaim, type ReleaseOptions, readRelease } from "./slot-refusal.ts";
import { addReport, type SlotReport } from "./slot-usage.ts";

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
   *  order. Default: each acquire is a holder of its own, and each handler is one. Inside a `wrap` without
   *  `holder`, the resources of the `wrap` must come first in name order. */
  readonly holder?: string;
  /** Expected tokens, a whole number from 0 to 40,000,000. Budgets, and rates of the agent's type and of types named as
   *  the resources, reserve the tokens while the slot is held. Without room for them, the request waits as a task
   *  does. Charged at the release unless `report` names the use. Default: none. */
  readonly tokens?: number;
  /** Whose budget is charged, beside the swarm's. Default: the connection's project where `tokens` is given. In a
   *  handler: the task's, and no other may be named. */
  readonly project?: string;
  /** For whom, shown in `status`. Default: the connection's user; the task's in a handler. */
  readonly user?: string;
  /** What for, shown in `status`: at most 128 characters. */
  readonly label?: string;
  /** A queue of its own within the agent: waiting time and backlog count per name, as for separate agents.
   *  1–128 printable characters without spaces. Default: the agent's queue. */
  readonly as?: string;
  /** Maximum time without `slot.touch()`, ms, from 1,000 to 86,400,000 (a day). Then the leader takes the slot back,
   *  and `slot.signal` is aborted. Default: none. */
  readonly idleTimeoutMs?: number;
}

/** The attempt that slots serve. */
export interface ServedTask {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
}

/** Names a slot lease as plain data, for code that releases in another place. */
export interface SlotTicket {
  readonly handle: string;
  /** In name order, one mention per slot. */
  readonly resources: readonly string[];
  /** The agent that holds the slots. */
  readonly agent: string;
  /** The queue of the agent, as acquired. */
  readonly as?: string;
  /** The task whose handler acquired the slots. */
  readonly task?: ServedTask;
}

/** The held slots of one slot lease, until released. Declare with `await using`, or release in a `finally`. */
export interface Slot extends SlotTicket, AsyncDisposable {
  /** Aborted, with a WaggleError of code `WAGGLE_SLOT_LOST`, when another holder may have the slots. The lease
   *  could not be renewed, the idle time ended, the leader revoked the slots, or the agent ended. With the code
   *  `WAGGLE_HANDLE_ENDED` when the handler that acquired the slots has ended. */
  readonly signal: AbortSignal;
  /** True after a call of `release`. */
  readonly isReleased: boolean;
  /** Adds tokens used under the slots. The sum is charged at the release, also after `signal` was aborted. In a
   *  handler it adds to the attempt's tokens, as `context.reportTokens` does.
   *  @throws InvalidMessageError naming the field
   *  @throws WaggleError `WAGGLE_HANDLE_ENDED` after a call of `release` */
  report(usage: SlotReport): void;
  /** Starts the idle time anew. Cheap: may be called for each chunk of a stream.
   *  @returns false once the slots are released or lost */
  touch(): boolean;
  /** Releases the slots. Idempotent. Resolves when the release is journaled, and after at most 5 s; without an
   *  answer of a leader, the release continues in the background. A refusal counts also after the release, or after the
   *  slots were lost.
   *  @throws InvalidMessageError for a wrong option, naming it: then nothing is released */
  release(options?: ReleaseOptions): Promise<void>;
}

/** A slot as its agent has it. */
export interface AbandonableSlot extends Slot {
  /** Releases the slot of a handler that has ended, and aborts what goes on under it. */
  abandon(options?: ReleaseOptions): void;
}

export interface SlotsDeps {
  /** Id of the agent. */
  readonly agent: string;
  readonly clock: Clock;
  readonly send: (order: SessionOrder) => void;
}

/** An attempt that acquires. */
export interface AcquiringAttempt {
  readonly holder: string;
  /** Give up waiting. */
  readonly signals: readonly AbortSignal[];
  readonly task: ServedTask;
  /** Takes the tokens of its slots: the attempt's own reservation covers them. */
  readonly charge: (tokens: number) => void;
}

interface Waiting {
  readonly resources: readonly string[];
  readonly order: AcquireOrder;
  readonly attempt: AcquiringAttempt | undefined;
  /** Charged to the attempt without a report. */
  readonly tokens: number | undefined;
  readonly resolve: (slot: AbandonableSlot) => void;
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

  /** @param attempt that acquires, if any
   *  @throws InvalidMessageError naming the field
   *  @throws BackpressureError when the queue of the resource is full
   *  @throws BudgetExceededError when a budget in mode `reject` has too little left
   *  @throws OnHoldError when a resource is on hold for longer than the request may wait
   *  @throws WaggleError `WAGGLE_UNKNOWN_RESOURCE`, `WAGGLE_ABOVE_CAPACITY`, `WAGGLE_ACQUIRE_ORDER`,
   *    `WAGGLE_ACQUIRE_TIMED_OUT`, `WAGGLE_UNKNOWN_PROJECT`, `WAGGLE_OVER_BUDGET`
   *  @throws NoLeaderError when no leader answered within `limits.askTimeoutMs`, 30 s; after a first answer,
   *    the wait outlasts the absence of a leader
   *  @throws UnreachableError when the agent has ended
   *  @throws the reason of a signal */
  async acquire(
    resources: string | readonly string[],
    options?: AcquireOptions,
    attempt?: AcquiringAttempt,
  ): Promise<AbandonableSlot> {
    const { wanted: asked, signal } = readSlotLease(resources, options);
    const signals = attempt?.signals ?? [];
    const giveUps = signal === undefined ? signals : [signal, ...signals];
    for (const each of giveUps) each.throwIfAborted();
    if (this.#isClosed) throw ended();
    const key = this.#nextKey();
    const order: AcquireOrder =
      attempt === undefined
        ? { holder: `acquire-${key}`, ...asked, key }
        : { ...withoutAccount(asked, attempt.task), holder: holderWithin(attempt.holder, asked.holder), key };
    const givenUp = this.#aborts.linkedTo(...giveUps);
    try {
      return await new Promise<AbandonableSlot>((resolve, reject) => {
        const { resources: wanted, tokens } = asked;
        this.#waitingByKey.set(key, {
          resources: wanted.toSorted(),
          order,
          attempt,
          tokens,
          resolve,
          reject,
        });
        this.#aborts.on(givenUp.signal, () => this.#giveUp(key, givenUp.signal.reason));
        this.#deps.send({ type: "acquire", slotLease: order });
      });
    } finally {
      givenUp.abort();
    }
  }

  /** Releases a slot by its handle, whoever acquired the slot. Idempotent. Resolves when the release is
   *  journaled, and after at most 5 s; without an answer of a leader, the release continues in the background.
   *  @throws WaggleError `WAGGLE_UNKNOWN_HANDLE` when nothing was ever acquired under the handle */
  async releaseHandle(
    given: string | SlotTicket,
    report?: SlotReport,
    options?: ReleaseOptions,
  ): Promise<void> {
    const { handle, resources } = ticketIn(given);
    const usage = report === undefined ? undefined : addReport(undefined, report);
    const claim = readRelease(options, resources);
    const held = this.#heldByHandle.get(handle);
    if (held !== undefined) {
      if (report !== undefined && !held.isReleased) held.report(report);
      return await held.release(options);
    }
    if (this.#isClosed) throw ended();
    const key = this.#nextKey();
    const order = {
      ...({ type: "release-handle", key, handle } as const),
      ...(usage === undefined ? {} : { usage }),
      ...claim,
    };
    const error = await this.#heard(key, order);
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
    const { resources, order, attempt, tokens } = waiting;
    const ticket = {
      handle,
      resources,
      agent: this.#deps.agent,
      ...(order.as === undefined ? {} : { as: order.as }),
      ...(attempt === undefined ? {} : { task: attempt.task }),
    };
    const giveBack = async (usage: SlotUsage | undefined, claim: ReleaseClaim) => {
      this.#heldByKey.delete(key);
      this.#heldByHandle.delete(handle);
      const used = usage?.tokens ?? tokens;
      if (used !== undefined) attempt?.charge(used);
      if (this.#isClosed) return;
      const isOwn = usage !== undefined && attempt === undefined;
      const report = { handle, ...(isOwn ? { usage } : {}), ...claim };
      await this.#heard(key, { type: "release", key, report });
    };
    const refuse = async (refused: SlotRefusalClaim) => {
      const later = this.#nextKey();
      // The end of the slots has settled their tokens.
      const report = { handle, usage: { tokens: 0 }, refused };
      if (!this.#isClosed) await this.#heard(later, { type: "release-handle", key: later, ...report });
    };
    const { idleTimeoutMs } = order;
    const touches =
      idleTimeoutMs === undefined
        ? undefined
        : new Touches(this.#deps.clock, idleTimeoutMs, () => this.#deps.send({ type: "touch", key }));
    const slot = new HeldSlot(ticket, { giveBack, refuse }, touches);
    this.#heldByKey.set(key, slot);
    this.#heldByHandle.set(handle, slot);
    waiting.resolve(slot);
  }

  #giveUp(key: SlotKey, reason: unknown): void {
    const waiting = this.#waitingByKey.get(key);
    if (waiting === undefined) return;
    this.#waitingByKey.delete(key);
    waiting.reject(reason);
    this.#deps.send({ type: "release", key });
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
      this.#deps.send(order);
    });
  }

  #nextKey(): SlotKey {
    this.#keysMade += 1;
    return `s${this.#keysMade}`;
  }
}

/** The leader reads the attempt from the beginning: it judges holds, and names the task, by the attempt. */
function holderWithin(attempt: string, own: string | undefined): string {
  return own === undefined ? attempt : `${attempt}/${own}`;
}

/** What a slot tells the session. */
interface SlotEnds {
  readonly giveBack: (usage: SlotUsage | undefined, claim: ReleaseClaim) => Promise<void>;
  /** After the end of the slot. @param refused names its resource */
  readonly refuse: (refused: SlotRefusalClaim) => Promise<void>;
}

class HeldSlot implements AbandonableSlot {
  readonly handle: string;
  readonly resources: readonly string[];
  readonly agent: string;
  readonly as?: string;
  readonly task?: ServedTask;
  readonly #ends: SlotEnds;
  readonly #touches: Touches | undefined;
  readonly #lost = new AbortController();
  #usage: SlotUsage | undefined;
  #releasing: Promise<void> | undefined;

  /** @param touches undefined without an idle time */
  constructor(ticket: SlotTicket, ends: SlotEnds, touches: Touches | undefined) {
    this.handle = ticket.handle;
    this.resources = ticket.resources;
    this.agent = ticket.agent;
    if (ticket.as !== undefined) this.as = ticket.as;
    if (ticket.task !== undefined) this.task = ticket.task;
    this.#ends = ends;
    this.#touches = touches;
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  get isReleased(): boolean {
    return this.#releasing !== undefined;
  }

  report(usage: SlotReport): void {
    const sum = addReport(this.#usage, usage);
    if (this.isReleased)
      throw new WaggleError(
        "WAGGLE_HANDLE_ENDED",
        `report: the slot of ${this.resources.join(" and ")} was released: report before the release`,
      );
    this.#usage = sum;
  }

  touch(): boolean {
    if (this.isReleased || this.#lost.signal.aborted) return false;
    this.#touches?.note();
    return true;
  }

  async release(options?: ReleaseOptions): Promise<void> {
    const claim = readRelease(options, this.resources);
    const { refused } = claim;
    const isLate = refused !== undefined && (this.isReleased || this.#lost.signal.aborted);
    if (this.#releasing === undefined) {
      this.#touches?.stop();
      this.#releasing = this.#ends.giveBack(this.#usage, isLate ? {} : claim);
    }
    if (isLate) this.#releasing = this.#refuseLate(this.#releasing, refused);
    return await this.#releasing;
  }

  /** The leader has forgotten the resources of a slot that ended, so each is named. */
  async #refuseLate(before: Promise<void>, refused: SlotRefusalClaim): Promise<void> {
    await before;
    const resources = refused.resource === undefined ? this.resources : [refused.resource];
    const each = [...new Set(resources)].map((resource) => ({
      ...refused,
      resource: resource as ResourceName,
    }));
    await Promise.all(each.map(this.#ends.refuse));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  abandon(options?: ReleaseOptions): void {
    void this.release(options);
    const sentence = `the slot of ${this.resources.join(" and ")} was released: its handler has ended`;
    this.#lost.abort(new WaggleError("WAGGLE_HANDLE_ENDED", sentence));
  }

  lose(reason: SlotLossReason): void {
    this.#touches?.stop();
    const sentence = `the slot of ${this.resources.join(" and ")} is lost: ${whyLost[reason]}`;
    this.#lost.abort(new WaggleError("WAGGLE_SLOT_LOST", sentence));
  }
}

/** Sends the touches of a slot, a few per idle time. The newest touch is always sent. */
class Touches {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  readonly #send: () => void;
  #cancelPause: (() => void) | undefined;
  #isDue = false;
  #isOver = false;

  constructor(clock: Clock, idleTimeoutMs: number, send: () => void) {
    this.#clock = clock;
    this.#pauseMs = idleTimeoutMs / limits.slotTouchesPerIdleTime;
    this.#send = send;
  }

  note(): void {
    if (this.#isOver) return;
    if (this.#cancelPause === undefined) return this.#sendNow();
    this.#isDue = true;
  }

  stop(): void {
    this.#isOver = true;
    this.#cancelPause?.();
  }

  #sendNow(): void {
    this.#isDue = false;
    this.#send();
    this.#cancelPause = this.#clock.after(
      this.#pauseMs,
      () => {
        this.#cancelPause = undefined;
        if (this.#isDue) this.#sendNow();
      },
      { unref: true },
    );
  }
}

const whyLost: Readonly<Record<SlotLossReason, string>> = {
  revoked: "the leader does not list it as held",
  lease: "its lease could not be renewed in time",
  lapsed: "the leader counted the agent as lost",
  fenced: "another process joined under the agent's id",
  stopping: "the agent has ended",
  idle: "it was not touched within its idle time",
};

const { shape } = acquireRequestSchema;

export const acquireRules = {
  each: {
    weight: shape.weight,
    timeoutMs: orInfinity(shape.timeoutMs),
    signal: abortSignal,
    holder: shape.holder,
    tokens: shape.tokens,
    project: shape.project,
    user: shape.user,
    label: shape.label,
    as: shape.as,
    idleTimeoutMs: shape.idleTimeoutMs,
  },
  otherwise: {
    timeout: "timeoutMs",
    idleTimeout: "idleTimeoutMs",
    holdMs: "idleTimeoutMs",
    model: weightOfModel,
  },
  example: "{ weight: 2.5 }",
} satisfies OptionRules<AcquireOptions>;

const readAcquireOptions = readerOf<AcquireOptions>(acquireRules);

/** Runs before any wait for an agent or a leader. @throws InvalidMessageError naming the field */
export function readSlotLease(resources: unknown, options: unknown) {
  const { signal, timeoutMs, ...rest } = readAcquireOptions("acquire", options);
  return {
    signal,
    wanted: {
      resources: readResources(resources),
      ...rest,
      ...(timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY ? {} : { timeoutMs }),
    },
  };
}

/** @throws InvalidMessageError */
function readResources(given: unknown): ResourceName[] {
  const name = ["acquire", "resources"] as const;
  if (Array.isArray(given)) return argument(name, given, shape.resources);
  return [argument(name, argument(name, given, oneResource), shape.resources.element)];
}

const oneResource = judged<string>((input) =>
  typeof input === "string"
    ? undefined
    : `must be the name of a resource, such as "gpt-4o", or a list of names, not ${shown(input)}`,
);

/** The plain data of a slot. */
export function ticketOf({ handle, resources, agent, as, task }: Slot): SlotTicket {
  return {
    handle,
    resources,
    agent,
    ...(as === undefined ? {} : { as }),
    ...(task === undefined ? {} : { task }),
  };
}

type WantedSlots = ReturnType<typeof readSlotLease>["wanted"];

/** The attempt's own reservation covers the tokens, and the task's project is charged.
 *  @throws InvalidMessageError naming another project than the task's */
function withoutAccount({ tokens: _, project, user: __, ...wanted }: WantedSlots, task: ServedTask) {
  if (project === undefined || project === task.project) return wanted;
  const sentence = `acquire: project: must be the task's, '${task.project}', or left out in a handler; not '${project}'`;
  throw new InvalidMessageError(sentence, { field: "project" });
}

const ticketOrHandle = judged<string | SlotTicket>((input) => {
  const handle = typeof input === "object" && input !== null ? Reflect.get(input, "handle") : input;
  return typeof handle === "string" ? undefined : `must be a handle, not ${shown(input)}`;
});

/** A bare handle does not say its resources. @throws InvalidMessageError */
export function ticketIn(given: string | SlotTicket): {
  readonly handle: string;
  readonly resources: readonly string[] | undefined;
} {
  const read = argument(["releaseHandle", "handle"], given, ticketOrHandle);
  return typeof read === "string" ? { handle: read, resources: undefined } : read;
}

function ended(): UnreachableError {
  return new UnreachableError("The agent has ended and can acquire nothing");
}

function errorOf({ code, message, field, retryAfterMs, budget, hold }: PlainError): WaggleError {
  const options = field === undefined ? {} : { field };
  switch (code) {
    case "WAGGLE_BACKPRESSURE":
      return new BackpressureError(message, retryAfterMs ?? limits.retryAfterMs);
    case "WAGGLE_BUDGET_EXCEEDED":
      return budget === undefined
        ? new WaggleError(code, message, options)
        : new BudgetExceededError(message, { retryAfterMs: retryAfterMs ?? limits.budgetRetryMs, budget });
    case "WAGGLE_ON_HOLD":
      return hold === undefined
        ? new WaggleError(code, message, options)
        : new OnHoldError(message, { ...options, resource: hold.resource, until: new Date(hold.until) });
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
