// The error for a file of the command line that cannot be used.

import { messageOf } from "../errors.ts";
import { UsageError } from "./usage-error.ts";

/** `cannot read x.json: why`.
 *  @param does the failed operation
 *  @param field the flag that named the file */
export function fileError(does: string, file: string, error: unknown, field?: string): UsageError {
  const reason = messageOf(error);
  return new UsageError(`cannot ${does} ${file}: ${reason}`, {
    cause: error,
    ...(field === undefined ? {} : { field }),
  });
}
