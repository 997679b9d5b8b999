// A provider of models for tests: each call takes a plan, streams three words at a gate's pace, and counts 12 tokens
// in and 3 out. Fake models of the frameworks, and wire-server.ts, answer with it.

import { Gate } from "../../support/gate.ts";

export interface Plan {
  /** Refuses the call. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The stream breaks after the first word. */
  readonly breaks?: boolean;
  /** The second word waits for the gate. A call with one answer waits as well. */
  readonly gate?: Gate;
}

export const words = ["one ", "two ", "three"] as const;
export const wholeText = words.join("");
export const usage = { inputTokens: 12, outputTokens: 3 } as const;

export class RefusedError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, headers: Readonly<Record<string, string>>) {
    super(`refused with ${status}`);
    this.status = status;
    this.headers = headers;
  }
}

export class FakeProvider {
  /** Of the next calls; later calls are answered at once. */
  plans: Plan[] = [];
  calls = 0;
  /** Calls that stream or wait. */
  running = 0;
  runningMax = 0;
  readonly #gates: Gate[] = [];

  /** A plan whose gate the test opens. */
  gated(): { readonly gate: Gate } {
    const gate = new Gate();
    this.#gates.push(gate);
    const plan = { gate };
    this.plans.push(plan);
    return plan;
  }

  openAll(): void {
    for (const gate of this.#gates) gate.open();
  }

  /** @throws RefusedError */
  begin(): Plan {
    this.calls += 1;
    const plan = this.plans.shift() ?? {};
    if (plan.status !== undefined) throw new RefusedError(plan.status, plan.headers ?? {});
    return plan;
  }

  /** Whatever becomes of the reader, the provider goes on to its end when it is pulled. */
  async *stream(plan: Plan): AsyncGenerator<string> {
    this.running += 1;
    this.runningMax = Math.max(this.runningMax, this.running);
    try {
      for (const [at, word] of words.entries()) {
        if (at === 1) {
          await plan.gate?.opened;
          if (plan.breaks === true) throw new Error("the provider hung up");
        }
        await new Promise((resolve) => setImmediate(resolve));
        yield word;
      }
    } finally {
      this.running -= 1;
    }
  }

  async answer(plan: Plan): Promise<string> {
    let text = "";
    for await (const word of this.stream(plan)) text += word;
    return text;
  }
}
