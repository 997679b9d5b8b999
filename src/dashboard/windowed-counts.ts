// Sums by name over a sliding window, in steps: exact to one step, in constant time per addition.

import { limits } from "../limits.ts";

interface Step {
  readonly beganAt: number;
  readonly sumByName: Map<string, number>;
}

export class WindowedCounts {
  /** Oldest first. */
  readonly #steps: Step[] = [];
  readonly #totalByName = new Map<string, number>();

  /** @param at journal time; never much earlier than the last addition */
  add(name: string, at: number, amount = 1): void {
    const step = this.#stepAt(at);
    step.sumByName.set(name, (step.sumByName.get(name) ?? 0) + amount);
    this.#totalByName.set(name, (this.#totalByName.get(name) ?? 0) + amount);
  }

  /** Forgets steps that are out of the window. */
  forget(now: number): void {
    for (let oldest = this.#steps[0]; oldest !== undefined; oldest = this.#steps[0]) {
      if (oldest.beganAt > now - limits.dashboardWindowMs) return;
      this.#steps.shift();
      for (const [name, sum] of oldest.sumByName) {
        const left = (this.#totalByName.get(name) ?? 0) - sum;
        if (left > 1e-9) this.#totalByName.set(name, left);
        else this.#totalByName.delete(name);
      }
    }
  }

  sumOf(name: string): number {
    return this.#totalByName.get(name) ?? 0;
  }

  get total(): number {
    let total = 0;
    for (const sum of this.#totalByName.values()) total += sum;
    return total;
  }

  get names(): readonly string[] {
    return [...this.#totalByName.keys()];
  }

  /** Steps with at least one addition, oldest first. */
  get steps(): readonly { readonly beganAt: number; readonly sumByName: ReadonlyMap<string, number> }[] {
    return this.#steps;
  }

  clear(): void {
    this.#steps.length = 0;
    this.#totalByName.clear();
  }

  #stepAt(at: number): Step {
    const beganAt = Math.floor(at / limits.dashboardStepMs) * limits.dashboardStepMs;
    const last = this.#steps.at(-1);
    if (last !== undefined && last.beganAt >= beganAt) return last;
    const step = { beganAt, sumByName: new Map<string, number>() };
    this.#steps.push(step);
    return step;
  }
}
