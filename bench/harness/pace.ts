// How far a run is, how much time it still takes, and how long it may wait for a calm machine: all of it within the
// run's limit. A plan has the expected seconds of each step; the estimate follows the time that steps really take.

import { waitForCalm } from "./machine.ts";

export interface PlannedStep {
  readonly name: string;
  readonly seconds: number;
}

export interface PaceOptions {
  /** In the order of the run. */
  readonly plan: readonly PlannedStep[];
  /** Maximum wait before a window. */
  readonly calmMs: number;
  /** Maximum duration of the whole run. Waits for calm take what the plan leaves. Default: no limit. */
  readonly limitMs?: number;
  readonly say?: (line: string) => void;
  readonly monotonicMs?: () => number;
}

/** One wait takes at most this share of the time that the run has left for waits. */
const WAIT_SHARE_MAX = 1 / 4;
/** Before so much of the plan is done, its own numbers say more than the time taken. */
const KNOWN_MS_MIN = 30_000;
const SLOWNESS_MAX = 5;

export class Pace {
  readonly #plan: readonly PlannedStep[];
  readonly #calmMs: number;
  readonly #limitMs: number;
  readonly #say: (line: string) => void;
  readonly #monotonicMs: () => number;
  readonly #startedMs: number;
  #at = -1;
  #share = 0;
  #waitedMs = 0;

  constructor({ plan, calmMs, limitMs, say, monotonicMs = () => performance.now() }: PaceOptions) {
    this.#plan = plan;
    this.#calmMs = calmMs;
    this.#limitMs = limitMs ?? Number.POSITIVE_INFINITY;
    this.#say = say ?? (() => undefined);
    this.#monotonicMs = monotonicMs;
    this.#startedMs = monotonicMs();
  }

  /** A step of the plan begins: the earlier steps are over. */
  begin(name: string): void {
    this.#at = this.#plan.findIndex((step) => step.name === name);
    this.#share = 0;
    this.#report(name);
  }

  /** A round of the present step has ended. */
  ended(round: number, rounds: number): void {
    this.#share = round / rounds;
    const step = this.#plan[this.#at];
    if (step !== undefined) this.#report(`${step.name}: round ${round} of ${rounds}`);
  }

  /** Estimate of the time that the run still takes, without waits for calm. */
  get leftMs(): number {
    const { doneMs, plannedMs } = this.#planned();
    const workedMs = this.#elapsedMs - this.#waitedMs;
    const slowness = doneMs < KNOWN_MS_MIN ? 1 : Math.min(SLOWNESS_MAX, workedMs / doneMs);
    return (plannedMs - doneMs) * slowness;
  }

  /** Waits until the machine is calm, as long as the run may. With a maximum of 0 it does not look, and
   *  with no time left it looks once. */
  async calm(wait: (waitMs: number) => Promise<unknown> = waitForCalm): Promise<void> {
    if (this.#calmMs === 0) return;
    const restMs = Math.max(0, this.#limitMs - this.#elapsedMs - this.leftMs);
    const fromMs = this.#monotonicMs();
    await wait(Math.min(this.#calmMs, restMs * WAIT_SHARE_MAX));
    this.#waitedMs += this.#monotonicMs() - fromMs;
  }

  get #elapsedMs(): number {
    return this.#monotonicMs() - this.#startedMs;
  }

  #planned(): { readonly doneMs: number; readonly plannedMs: number } {
    const msOf = (steps: readonly PlannedStep[]) =>
      1_000 * steps.reduce((sum, step) => sum + step.seconds, 0);
    const presentMs = 1_000 * (this.#plan[this.#at]?.seconds ?? 0);
    const doneMs = msOf(this.#plan.slice(0, Math.max(0, this.#at))) + presentMs * this.#share;
    return { doneMs, plannedMs: msOf(this.#plan) };
  }

  #report(what: string): void {
    const minutes = this.leftMs / 60_000;
    const left = minutes < 1 ? "less than a minute" : `about ${Math.round(minutes)} min`;
    this.#say(`${what}; ${left} left`);
  }
}
