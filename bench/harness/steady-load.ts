// A load of tasks at a fixed rate, whatever comes back.

import { setTimeout as delay } from "node:timers/promises";
import type { Swarm } from "waggledance";

const STEP_MS = 10;

/** Keeps submitting at the rate, and counts the ends. */
export class SteadyLoad {
  ended = 0;
  #isOver = false;
  readonly #done: Promise<void>;

  /** @param rate tasks per second */
  constructor(swarm: Swarm, rate: number) {
    this.#done = this.#run(swarm, rate);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #run(swarm: Swarm, rate: number): Promise<void> {
    const open = new Set<Promise<void>>();
    const startedMs = performance.now();
    for (let sent = 0; !this.#isOver; await delay(STEP_MS))
      for (; sent < ((performance.now() - startedMs) / 1_000) * rate; sent += 1) {
        const one = this.#submit(swarm).finally(() => open.delete(one));
        open.add(one);
      }
    await Promise.all(open);
  }

  async #submit(swarm: Swarm): Promise<void> {
    const handle = await swarm.submit({ kind: "noop", payload: "x" });
    await handle.result();
    this.ended += 1;
  }
}
