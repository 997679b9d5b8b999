// A view that one or more viewers watch: its present data, and what changed since the last message. All viewers of the
// same view share one topic, so that each state is computed and compared once.

import { WaggleError } from "../errors.ts";
import { limits } from "../limits.ts";
import { apiErrorOf } from "./http-answer.ts";
import { patchBetween } from "./merge-patch.ts";
import { frameOf, type Viewer } from "./viewer.ts";
import type { EventRow } from "./wire.ts";

/** What a topic shows. */
export interface TopicSource {
  /** @throws WaggleError: the subject is unknown, or nobody answers */
  compute(): Promise<object>;
  /** The newest batch that the data may contain. */
  idx(): number;
  /** Rows since the last call; for the view of events only. */
  takeRows?(): { readonly rows: readonly EventRow[]; readonly skipped: number };
  /** Rows for a viewer that begins, or comes back after the batch `idx`. */
  rowsSince?(idx: number | undefined): { readonly rows: readonly EventRow[]; readonly skipped: number };
  /** Calls `listener` when the data may have changed. Returns a function that ends the calls. */
  onChange?(listener: () => void): () => void;
  close?(): void;
}

export interface TopicDeps {
  /** Unique per topic. */
  readonly id: string;
  readonly open: () => TopicSource;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly onError: (error: unknown) => void;
}

export class Topic {
  readonly #deps: TopicDeps;
  /** Viewers that receive updates. */
  readonly #viewers = new Set<Viewer>();
  /** Besides, viewers that wait for their first state. */
  readonly #interested = new Set<Viewer>();
  #source: TopicSource | undefined;
  #stopListening: (() => void) | undefined;
  #seq = 0;
  #state: object | undefined;
  #idx = 0;
  #isStale = true;
  #computing: Promise<void> | undefined;
  /** Sent to all viewers: the subject is unknown. */
  #refusal: string | undefined;
  /** Monotonic time at which the last viewer left; undefined while it is watched. */
  leftAt: number | undefined;

  constructor(deps: TopicDeps) {
    this.#deps = deps;
  }

  /** Sends what the viewer needs first. @param last SSE id of the viewer's last message */
  async join(viewer: Viewer, last: string | undefined): Promise<void> {
    this.leftAt = undefined;
    this.#interested.add(viewer);
    this.#source ??= this.#opened();
    const [topic, seq, idx] = last?.split(".") ?? [];
    const isKnown = topic === this.#deps.id && Number(seq) === this.#seq && this.#state !== undefined;
    if (isKnown) this.#viewers.add(viewer); // gets the difference with the others
    this.#isStale = true;
    await this.update();
    if (viewer.isClosed || !this.#interested.has(viewer)) return;
    if (!isKnown) {
      this.#viewers.add(viewer);
      this.#sendWhole(viewer);
    }
    const since = idx === undefined ? undefined : Number(idx);
    const missed = this.#source?.rowsSince?.(Number.isSafeInteger(since) ? since : undefined);
    if (missed !== undefined && missed.rows.length > 0) viewer.send(frameOf("events", missed, this.#place));
  }

  leave(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    this.#interested.delete(viewer);
    if (this.#interested.size > 0 || this.leftAt !== undefined) return;
    this.leftAt = this.#deps.monotonicMs();
    this.#close();
  }

  /** A slow viewer has caught up. */
  catchUp(viewer: Viewer): void {
    if (this.#viewers.has(viewer)) this.#sendWhole(viewer);
  }

  send(frame: string): void {
    for (const viewer of this.#viewers) viewer.send(frame);
  }

  /** The data may have changed. */
  touch(): void {
    this.#isStale = true;
  }

  /** Sends what changed, if anything did. */
  async update(): Promise<void> {
    if (this.#computing !== undefined) return await this.#computing;
    if (!this.#isStale || this.#source === undefined) return;
    this.#isStale = false;
    this.#computing = this.#compute(this.#source).finally(() => {
      this.#computing = undefined;
    });
    await this.#computing;
  }

  /** Sends the rows that came. */
  flushRows(): void {
    const taken = this.#source?.takeRows?.();
    if (taken === undefined || (taken.rows.length === 0 && taken.skipped === 0)) return;
    this.#idx = Math.max(this.#idx, taken.rows.at(-1)?.idx ?? 0);
    this.send(frameOf("events", taken, this.#place));
  }

  end(): void {
    this.#close();
    for (const viewer of this.#interested) viewer.end();
    this.#viewers.clear();
    this.#interested.clear();
  }

  /** Whether a viewer watches it, or may come back to it. */
  isKept(monotonicMs: number): boolean {
    return this.leftAt === undefined || monotonicMs - this.leftAt < limits.dashboardResumeMs;
  }

  #close(): void {
    this.#stopListening?.();
    this.#source?.close?.();
    this.#source = undefined;
  }

  #opened(): TopicSource {
    const source = this.#deps.open();
    this.#stopListening = source.onChange?.(() => this.touch());
    return source;
  }

  async #compute(source: TopicSource): Promise<void> {
    try {
      const next = await source.compute();
      if (source !== this.#source) return;
      this.#idx = Math.max(this.#idx, source.idx());
      const before = this.#state;
      this.#state = next;
      this.#refusal = undefined;
      if (before === undefined) {
        this.#seq += 1;
        for (const viewer of this.#viewers) this.#sendWhole(viewer);
        return;
      }
      const patch = patchBetween(before, next);
      if (patch === undefined) return;
      this.#seq += 1;
      this.send(frameOf("delta", { idx: this.#idx, at: this.#deps.now(), patch }, this.#place));
    } catch (error) {
      if (source === this.#source) this.#failed(error);
    }
  }

  /** Without an answer of the swarm the data stays: `lost` was sent. */
  #failed(error: unknown): void {
    const isUnknown = error instanceof WaggleError && refusingCodes.has(error.code);
    if (!isUnknown) return this.#deps.onError(error);
    const frame = frameOf("refused", apiErrorOf(error));
    this.#refusal = frame;
    for (const viewer of this.#viewers) {
      viewer.send(frame);
      viewer.end();
    }
  }

  #sendWhole(viewer: Viewer): void {
    if (this.#refusal !== undefined) {
      viewer.send(this.#refusal);
      viewer.end();
      return;
    }
    if (this.#state === undefined) return;
    const message = { idx: this.#idx, at: this.#deps.now(), data: this.#state };
    viewer.send(frameOf("state", message, this.#place));
  }

  get #place(): string {
    return `${this.#deps.id}.${this.#seq}.${this.#idx}`;
  }
}

const refusingCodes: ReadonlySet<string> = new Set([
  "WAGGLE_UNKNOWN_TASK",
  "WAGGLE_UNKNOWN_AGENT",
  "WAGGLE_AMBIGUOUS_TASK",
]);
