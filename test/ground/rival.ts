// A writer unaware of a rival: keeps two appends in flight until stopped.

import { setTimeout as delay } from "node:timers/promises";
import type { StreamProbe } from "./stream-probe.ts";

interface Acknowledged {
  readonly seq: number;
  readonly text: string;
  readonly atMs: number;
}

export class Rival {
  /** In order of sequence. */
  readonly acknowledged: Acknowledged[] = [];
  /** When an append was first refused because the stream is sealed, as of `performance.now()`. */
  sealedAtMs: number | undefined;
  /** Appends acknowledged after a refusal as sealed. */
  passed = 0;
  readonly #probe: StreamProbe;
  readonly #name: string;
  readonly #ended: Promise<void>;
  #isStopped = false;
  #count = 0;

  constructor(probe: StreamProbe, name: string) {
    this.#probe = probe;
    this.#name = name;
    this.#ended = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
  }

  /** Resolves when `count` appends are acknowledged. */
  async reaches(count: number): Promise<void> {
    while (this.acknowledged.length < count) await delay(5);
  }

  async #run(): Promise<void> {
    let last = 0;
    while (!this.#isStopped) {
      const seqs = await Promise.all([this.#append(last), this.#append(last + 1)]);
      last = seqs.findLast((seq) => seq !== undefined) ?? (await this.#end()) ?? last;
    }
  }

  /** @returns the sequence of an acknowledged append */
  async #append(expected: number): Promise<number | undefined> {
    this.#count += 1;
    const text = `${this.#name} ${this.#count}`;
    const said = await this.#probe.append(text, expected);
    if (said.kind === "refused" && said.code === 10109) this.sealedAtMs ??= performance.now();
    if (said.kind !== "done") return undefined;
    if (this.sealedAtMs !== undefined) this.passed += 1;
    this.acknowledged.push({ seq: said.seq, text, atMs: performance.now() });
    return said.seq;
  }

  async #end(): Promise<number | undefined> {
    await delay(5);
    const said = await this.#probe.info();
    return said.kind === "done" ? said.body.state?.last_seq : undefined;
  }
}
