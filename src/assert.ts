// Broken invariants stop the process: they are bugs, never answers.

import { InvariantError } from "./errors.ts";

/** @throws InvariantError when `claim` does not hold. */
export function assert(claim: unknown, message: string): asserts claim {
  if (!claim) throw new InvariantError(message);
}

/** Ends an exhaustive switch: the compiler proves that no case is left; an unexpected value stops the process. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable case: ${JSON.stringify(value)}`);
}
