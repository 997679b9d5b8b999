// Time and chance as dependencies: production passes the system's, the simulator passes virtual ones. `core` and
// `scheduling` see neither; the coordinator stamps them onto its decisions.

import { randomBytes } from "node:crypto";
import { limits } from "./limits.ts";

export interface Clock {
  /** Wall clock, ms since the Unix epoch; may jump. */
  now(): number;
  /** Monotonic, ms from an arbitrary start, with fractions. */
  monotonicMs(): number;
  /** Calls `run` once after `ms`, which may be longer than a timer of the system allows; never after Infinity. Returns
   *  a function that cancels the call. With `unref` the timer does not keep the process alive. */
  after(ms: number, run: () => void, options?: { readonly unref?: boolean }): () => void;
  /** Calls `run` after the events that already wait (a macrotask). */
  soon(run: () => void): void;
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** `length` characters of `[a-z0-9]`, for ids. */
  id(length: number): string;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(ms, run, options) {
    let timer: NodeJS.Timeout;
    const wait = (leftMs: number): void => {
      const nextMs = Math.min(leftMs, limits.timerMsMax);
      timer = setTimeout(() => (leftMs > nextMs ? wait(leftMs - nextMs) : run()), nextMs);
      if (options?.unref === true) timer.unref();
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
  soon: (run) => {
    setImmediate(run);
  },
};

const ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

export const systemRandom: Random = {
  next: () => Math.random(),
  id: (length) => Array.from(randomBytes(length), (byte) => ID_ALPHABET[byte % ID_ALPHABET.length]).join(""),
};
