// Log text of handlers on the way to the session. Small amounts pass at once, so a handler cannot hide text by blocking
// the thread afterwards. Floods are batched.

import { Buffer } from "node:buffer";
import type { Clock } from "../clock.ts";
import { tailOf } from "../cut-text.ts";
import { limits } from "../limits.ts";
import type { AttemptKey, WrittenText } from "./link.ts";

export class LogBuffer {
  readonly #clock: Clock;
  readonly #pass: (written: WrittenText) => void;
  readonly #waiting = new Map<AttemptKey, { text: string; droppedBytes: number }>();
  /** Start of the interval counted by `#passed`, monotonic ms. */
  #countedSince = Number.NEGATIVE_INFINITY;
  #passed = 0;
  #isTimed = false;

  constructor(clock: Clock, pass: (written: WrittenText) => void) {
    this.#clock = clock;
    this.#pass = pass;
  }

  write(key: AttemptKey, text: string): void {
    if (text === "") return;
    const waiting = this.#waiting.get(key) ?? { text: "", droppedBytes: 0 };
    this.#waiting.set(key, waiting);
    waiting.text += text;
    // Each character takes at least one byte, so earlier text is never shown.
    if (waiting.text.length > 2 * limits.attemptLogBytes) shorten(waiting);
    if (this.#mayPass()) this.flush(key);
    else this.#flushLater();
  }

  /** Passes on the text of an attempt. */
  flush(key: AttemptKey): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    this.#passed += 1;
    shorten(waiting);
    const { text, droppedBytes } = waiting;
    this.#pass({ key, text, ...(droppedBytes === 0 ? {} : { droppedBytes }) });
  }

  #mayPass(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#countedSince >= limits.logFlushMs) {
      this.#countedSince = nowMs;
      this.#passed = 0;
    }
    return this.#passed < limits.logMessagesPerFlush;
  }

  #flushLater(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    const flushAll = () => {
      this.#isTimed = false;
      for (const key of [...this.#waiting.keys()]) this.flush(key);
    };
    this.#clock.after(limits.logFlushMs, flushAll, { unref: true });
  }
}

function shorten(waiting: { text: string; droppedBytes: number }): void {
  const { text } = waiting;
  waiting.text = tailOf(text, limits.attemptLogBytes);
  if (waiting.text !== text)
    waiting.droppedBytes += Buffer.byteLength(text) - Buffer.byteLength(waiting.text);
}
