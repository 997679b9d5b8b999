// An invalid command line: exit code 2, and nothing was done.

import { WaggleError, type WaggleErrorOptions } from "../errors.ts";

export class UsageError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_USAGE", message, options);
  }
}
