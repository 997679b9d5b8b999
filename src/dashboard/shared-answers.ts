// Answers that several viewers ask for at about the same time: one question to the swarm serves all of them.

import type { Clock } from "../clock.ts";
import { limits } from "../limits.ts";

export class SharedAnswers<Value> {
  readonly #clock: Clock;
  readonly #answerByKey = new Map<string, { readonly askedMs: number; readonly answer: Promise<Value> }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param ageMs maximum age of an earlier answer · failed answers are forgotten at once */
  async get(key: string, ageMs: number, ask: () => Promise<Value>): Promise<Value> {
    const now = this.#clock.monotonicMs();
    const known = this.#answerByKey.get(key);
    if (known !== undefined && now - known.askedMs < ageMs) return await known.answer;
    const asked = { askedMs: now, answer: ask() };
    this.#answerByKey.delete(key);
    this.#answerByKey.set(key, asked);
    const [oldest] = this.#answerByKey.size > limits.dashboardAnswersKept ? this.#answerByKey.keys() : [];
    if (oldest !== undefined) this.#answerByKey.delete(oldest);
    try {
      return await asked.answer;
    } catch (error) {
      if (this.#answerByKey.get(key) === asked) this.#answerByKey.delete(key);
      throw error;
    }
  }

  /** An action changed something. */
  clear(): void {
    this.#answerByKey.clear();
  }
}
