// Failed calls of models that a framework hides from the handler. The AI SDK hands the error of a stream to `onError`
// alone, and ends the stream. An empty or short result then looks like a success.
//
// The rule: a result fails when all of its text came from the stream that failed, or from streams that ended before it.
// Any other result stands, because the handler took another way. So does a result after a later call that succeeded.

import { limits } from "../limits.ts";
import { classAndCodeOf } from "./words.ts";

interface HiddenFailure {
  readonly error: unknown;
  /** Text of the failed stream, and of the streams that ended before its call. */
  readonly text: string;
  /** Name of the error that the framework throws instead. */
  readonly standIn: string;
}

/** One call of a model. Each call ends with `succeeded`, `failed` or neither. */
export interface CallRecord {
  /** A stream has given text to the framework. */
  readonly delivered: (text: string) => void;
  readonly succeeded: () => void;
  /** Notes an error that the framework hides. @param standIn name of the error that the framework may throw instead */
  readonly failed: (error: unknown, standIn: string) => void;
}

/** The hidden failures of one attempt. */
export class HiddenFailures {
  /** Text of the streams that ended. */
  #text = "";
  #last: HiddenFailure | undefined;

  begin(): CallRecord {
    const failedBefore = this.#last;
    const textBefore = this.#text;
    let own = "";
    return {
      delivered: (text) => {
        // No result is longer.
        if (own.length < limits.payloadBytesMax) own += text;
      },
      succeeded: () => {
        if (this.#last === failedBefore) this.#last = undefined;
        if (this.#text.length < limits.payloadBytesMax) this.#text += own;
      },
      failed: (error, standIn) => {
        this.#last = { error, standIn, text: textBefore + own };
      },
    };
  }

  /** @throws the hidden error, when nothing in the result is the handler's own */
  check(result: unknown): void {
    if (this.#last !== undefined && isPartOf(this.#last.text, result)) throw this.#last.error;
  }

  /** The hidden error where the framework threw its stand-in, else what was thrown. */
  behind(thrown: unknown): unknown {
    return this.#last !== undefined && classAndCodeOf(thrown) === this.#last.standIn
      ? this.#last.error
      : thrown;
  }
}

/** Whether a value has no content but text that `text` contains. Never throws. */
function isPartOf(text: string, value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value === "string") return text.includes(value.trim());
  if (typeof value !== "object") return false;
  try {
    if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return false;
    return Object.values(value).every((each) => isPartOf(text, each));
  } catch {
    return false; // a Proxy or a getter threw, or the value contains itself
  }
}
