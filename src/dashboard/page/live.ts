// The live view: a stream of Server-Sent Events for the visible page. Messages are collected and applied at most four
// times a second. A hidden page closes the stream, and resumes from the last message when visible again.

import { batch, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { patched } from "../merge-patch.ts";
import type { ApiError, EventRow, HistoryPoint, LiveMessages, LiveView, LiveViews } from "../wire.ts";
import { ApiFailure, messageOf, readSession, refusalOf } from "./api.ts";
import { RECONNECT_MS, RECONNECT_MS_MAX, UPDATE_MS } from "./bounds.ts";
import { type Filters, href } from "./router.ts";

export interface Lost {
  /** `session`: the dashboard was started with another token. */
  readonly what: "leader" | "server" | "dashboard" | "session";
  readonly sinceAt: number;
  readonly message: string;
  readonly next: string;
}

export type Connection = "connecting" | "live" | "hidden" | "lost";

/** State of a view. Undefined before the first message. */
export interface LiveState<View extends LiveView> {
  readonly data: ReadonlySignal<LiveViews[View] | undefined>;
  /** Reason why the server has no such view. */
  readonly refused: ReadonlySignal<ApiError["error"] | undefined>;
}

export interface LiveListener {
  /** Oldest first. */
  events?(rows: readonly EventRow[], skipped: number): void;
  points?(points: readonly HistoryPoint[]): void;
}

type Message = {
  [Name in keyof LiveMessages]: { readonly name: Name; readonly body: LiveMessages[Name] };
}[keyof LiveMessages];

interface Followed {
  readonly address: string;
  readonly listener: LiveListener;
  readonly data: Signal<unknown>;
  readonly refused: Signal<ApiError["error"] | undefined>;
}

const names = ["state", "delta", "events", "point", "lost", "back", "refused"] as const;

export class Live {
  readonly #connection = signal<Connection>("connecting");
  readonly #lost = signal<Lost | undefined>(undefined);
  readonly #idx = signal(0);
  #wanted: Followed | undefined;
  #source: EventSource | undefined;
  #lastId = "";
  #waiting: Message[] = [];
  #flushTimer: ReturnType<typeof setTimeout> | undefined;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #pauseMs = RECONNECT_MS;
  /** No message of the present stream was applied yet. */
  #isFresh = true;

  constructor() {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#pause();
      else this.#open();
    });
    addEventListener("online", () => this.#open());
  }

  get connection(): ReadonlySignal<Connection> {
    return this.#connection;
  }

  /** The leader or the server is gone; undefined while both answer. */
  get lost(): ReadonlySignal<Lost | undefined> {
    return this.#lost;
  }

  /** The newest batch in the view's messages. */
  get idx(): ReadonlySignal<number> {
    return this.#idx;
  }

  /** Follows a view, and ends the stream of the view before. @returns `stop` ends the stream */
  follow<View extends LiveView>(
    view: View,
    query: Filters,
    listener: LiveListener = {},
  ): { readonly state: LiveState<View>; readonly stop: () => void } {
    this.#close();
    const address = href(["api", "live"], { view, ...query });
    const wanted: Followed = { address, listener, data: signal(undefined), refused: signal(undefined) };
    this.#wanted = wanted;
    this.#lastId = "";
    this.#waiting = [];
    this.#open();
    const stop = () => {
      if (this.#wanted !== wanted) return;
      this.#wanted = undefined;
      this.#close();
    };
    return { state: wanted as unknown as LiveState<View>, stop };
  }

  /** Opens the stream at once, instead of after the pause. */
  retryNow(): void {
    this.#open();
  }

  #open(): void {
    if (this.#wanted === undefined || document.hidden) return;
    this.#close();
    const { address } = this.#wanted;
    const last = this.#lastId === "" ? "" : `&last=${encodeURIComponent(this.#lastId)}`;
    const source = new EventSource(`${address}${last}`);
    this.#source = source;
    this.#isFresh = true;
    if (this.#connection.peek() !== "lost") this.#connection.value = "connecting";
    for (const name of names)
      source.addEventListener(name, (event) => {
        if (source !== this.#source) return;
        const { data, lastEventId } = event as MessageEvent<string>;
        if (lastEventId !== "") this.#lastId = lastEventId;
        this.#take({ name, body: JSON.parse(data) } as Message);
      });
    source.onerror = () => {
      if (source === this.#source) void this.#fail();
    };
  }

  #take(message: Message): void {
    this.#waiting.push(message);
    this.#flushTimer ??= setTimeout(() => this.#flush(), message.name === "state" ? 0 : UPDATE_MS);
  }

  #flush(): void {
    this.#flushTimer = undefined;
    const messages = this.#waiting;
    this.#waiting = [];
    const wanted = this.#wanted;
    if (wanted === undefined) return;
    batch(() => {
      const points: HistoryPoint[] = [];
      for (const message of messages) this.#apply(message, wanted, points);
      if (points.length > 0) wanted.listener.points?.(points);
    });
  }

  #apply(message: Message, { data, refused, listener }: Followed, points: HistoryPoint[]): void {
    this.#answered();
    switch (message.name) {
      case "state":
        data.value = message.body.data;
        this.#idx.value = message.body.idx;
        return;
      case "delta":
        data.value = patched(data.peek(), message.body.patch);
        this.#idx.value = message.body.idx;
        return;
      case "events":
        listener.events?.(message.body.rows, message.body.skipped);
        return;
      case "point":
        points.push(message.body);
        return;
      case "lost":
        this.#lost.value = message.body;
        return;
      case "back":
        this.#lost.value = undefined;
        return;
      case "refused":
        refused.value = message.body.error;
        this.#close();
    }
  }

  /** The dashboard's own server answers. During a loss `lost` is the first message of a stream, so that any other first
   *  message ends a loss reported before: the page may have been hidden when it ended. */
  #answered(): void {
    this.#pauseMs = RECONNECT_MS;
    this.#connection.value = "live";
    if (this.#isFresh) this.#lost.value = undefined;
    this.#isFresh = false;
  }

  /** Not sent by the server: the server does not answer, or not to this browser. */
  #isOwnLoss(): boolean {
    const what = this.#lost.peek()?.what;
    return what === "dashboard" || what === "session";
  }

  /** The stream broke, and the browser gives no reason. A question to the server finds the reason. */
  async #fail(): Promise<void> {
    this.#close(); // takes what came before the end: the view may be refused
    const wanted = this.#wanted;
    if (wanted === undefined || wanted.refused.peek() !== undefined) return;
    this.#connection.value = "lost";
    const reason = await readSession().then(
      () => refusalOf(wanted.address),
      (error: unknown) => ({ what: whatOf(error), message: messageOf(error) }),
    );
    if (this.#source !== undefined || this.#wanted !== wanted) return;
    const isWrong = reason !== undefined && "status" in reason && reason.status === BAD_REQUEST;
    if (isWrong) {
      wanted.refused.value = reason.error;
      this.#answered();
      return;
    }
    const { what, message } =
      reason === undefined
        ? ended
        : "status" in reason
          ? { what: "dashboard" as const, message: reason.error.message }
          : reason;
    if (this.#lost.peek()?.what !== what) {
      const sinceAt = this.#isOwnLoss() ? (this.#lost.peek()?.sinceAt ?? Date.now()) : Date.now();
      this.#lost.value = { what, sinceAt, message, next: "waggle up" };
    }
    this.#retryTimer = setTimeout(() => this.#open(), this.#pauseMs);
    this.#pauseMs = Math.min(RECONNECT_MS_MAX, this.#pauseMs * 2);
  }

  #pause(): void {
    this.#close();
    this.#connection.value = "hidden";
  }

  #close(): void {
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    if (this.#waiting.length > 0) this.#flush();
    this.#source?.close();
    this.#source = undefined;
  }
}

/** The address of the view is wrong: no later try succeeds. */
const BAD_REQUEST = 400;
const ended = { what: "dashboard", message: "The live view ended" } as const;

function whatOf(error: unknown): "dashboard" | "session" {
  return error instanceof ApiFailure && error.code === "WAGGLE_FORBIDDEN" ? "session" : "dashboard";
}
