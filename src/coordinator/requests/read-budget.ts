// How much of the journal is read for one project, and for all of them together: a token bucket each, in bytes. A
// record costs its bytes and what the server and the coordinator spend on any record, so that a page of many small
// records costs more than a page of one large record. A small page still fits where a whole one does not: a follower of
// the journal's end is served while a flood of whole pages is held back.

import type { Clock } from "../../clock.ts";
import { BackpressureError } from "../../errors.ts";
import { limits } from "../../limits.ts";

interface Bucket {
  /** Below 0 where a page cost more than was expected. */
  left: number;
  filledMonotonicMs: number;
}

/** Of all projects together; no project is named so. */
const EVERYBODY = "*";

export class ReadBudget {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** By project; the one asked for longest ago first. */
  readonly #bucketByProject = new Map<string, Bucket>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Takes the cost of a read, at least `limits.pageCostMin`. @throws BackpressureError when too little is left */
  take(project: string, cost: number): void {
    const taken = Math.max(cost, limits.pageCostMin);
    const { pageBytesPerSecond: ofProject, pageBytesPerSecondOfAll: ofAll } = limits;
    const buckets = [
      { bucket: this.#filled(EVERYBODY, ofAll), perSecond: ofAll },
      { bucket: this.#filled(project, ofProject), perSecond: ofProject },
    ];
    const waitMs = Math.max(
      ...buckets.map(({ bucket, perSecond }) => ((taken - bucket.left) / perSecond) * 1_000),
    );
    if (waitMs > 0)
      throw new BackpressureError(
        "more of the journal is asked for than is read for a project in a second: try again later",
        Math.max(limits.pageRetryMsMin, Math.ceil(waitMs)),
      );
    for (const { bucket } of buckets) bucket.left -= taken;
  }

  /** Gives back what a read did not cost; takes what it cost more. */
  settle(project: string, { taken, cost }: { readonly taken: number; readonly cost: number }): void {
    const back = Math.max(taken, limits.pageCostMin) - Math.max(cost, limits.pageCostMin);
    this.#filled(EVERYBODY, limits.pageBytesPerSecondOfAll).left += back;
    this.#filled(project, limits.pageBytesPerSecond).left += back;
  }

  /** A bucket holds what comes in `limits.pageBurstMs`. */
  #filled(key: string, perSecond: number): Bucket {
    const now = this.#clock.monotonicMs();
    const most = (perSecond * limits.pageBurstMs) / 1_000;
    const bucket = this.#bucketByProject.get(key) ?? { left: most, filledMonotonicMs: now };
    bucket.left = Math.min(most, bucket.left + (perSecond * (now - bucket.filledMonotonicMs)) / 1_000);
    bucket.filledMonotonicMs = now;
    this.#bucketByProject.delete(key);
    this.#bucketByProject.set(key, bucket);
    const [oldest] = this.#bucketByProject.keys();
    if (this.#bucketByProject.size > limits.readBudgetsMax && oldest !== undefined)
      this.#bucketByProject.delete(oldest);
    return bucket;
  }
}

/** What a page costs. */
export function costOf(records: readonly Uint8Array[]): number {
  return records.reduce((sum, { length }) => sum + length, records.length * limits.recordCost);
}
