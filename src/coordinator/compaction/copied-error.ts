// Errors on their way from one thread to another: a thread copies plain values, and an error would lose its class with
// it, by which whoever gets it decides what to do. Made again on the other side, with its sentence, and without its
// cause.

import {
  JournalDamagedError,
  MissingRecordsError,
  messageOf,
  UnreachableError,
  WaggleError,
  type WaggleErrorCode,
} from "../../errors.ts";
import { RestartLostError, SnapshotsLostError } from "../../journal/snapshot/losses.ts";

/** From the narrowest to the widest. */
const classes = {
  SnapshotsLostError,
  RestartLostError,
  MissingRecordsError,
  JournalDamagedError,
  UnreachableError,
} as const;

export interface CopiedError {
  /** The narrowest that it is of; absent where none of them. */
  readonly className?: keyof typeof classes;
  readonly code: WaggleErrorCode;
  readonly message: string;
}

export function copyOf(error: unknown): CopiedError {
  const message = messageOf(error);
  if (!(error instanceof WaggleError)) return { code: "WAGGLE_INVARIANT", message };
  const names = Object.keys(classes) as (keyof typeof classes)[];
  const className = names.find((name) => error instanceof classes[name]);
  return { ...(className === undefined ? {} : { className }), code: error.code, message };
}

export function errorOf({ className, code, message }: CopiedError): WaggleError {
  return className === undefined ? new WaggleError(code, message) : new classes[className](message);
}
