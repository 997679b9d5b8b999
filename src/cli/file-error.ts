// The refusal of a file that the user named and that does not serve.

import { messageOf } from "../errors.ts";
import { UsageError } from "./usage-error.ts";

/** `cannot read x.json: why`. @param does what cannot be done with it
 *  @param field the flag that named it */
export function fileError(does: string, file: string, error: unknown, field?: string): UsageError {
  const reason = messageOf(error);
  return new UsageError(`cannot ${does} ${file}: ${reason}`, {
    cause: error,
    ...(field === undefined ? {} : { field }),
  });
}
