// Every error that a caller can get: a class, a stable code, and a sentence with the remedy. Not here: expected
// outcomes of a decision (members of unions in core/).

/** The stable codes. A code is never reused for another meaning. */
export type WaggleErrorCode =
  | "WAGGLE_INVALID_MESSAGE"
  | "WAGGLE_INVALID_CONFIG"
  | "WAGGLE_INVALID_VALUE"
  | "WAGGLE_USAGE"
  | "WAGGLE_UNKNOWN_TASK"
  | "WAGGLE_AMBIGUOUS_TASK"
  | "WAGGLE_UNKNOWN_AGENT"
  | "WAGGLE_UNKNOWN_PROJECT"
  | "WAGGLE_OVER_BUDGET"
  | "WAGGLE_BUDGET_EXCEEDED"
  | "WAGGLE_CONFLICT"
  | "WAGGLE_UNKNOWN_RESOURCE"
  | "WAGGLE_ABOVE_CAPACITY"
  | "WAGGLE_ACQUIRE_ORDER"
  | "WAGGLE_ACQUIRE_TIMED_OUT"
  | "WAGGLE_ON_HOLD"
  | "WAGGLE_UNKNOWN_HANDLE"
  | "WAGGLE_HANDLE_ENDED"
  | "WAGGLE_SLOT_LOST"
  | "WAGGLE_BACKPRESSURE"
  | "WAGGLE_NO_CAPABLE_AGENT"
  | "WAGGLE_NO_AGENTS_AVAILABLE"
  | "WAGGLE_NO_LEADER"
  | "WAGGLE_NO_STANDBY"
  | "WAGGLE_UNREACHABLE"
  | "WAGGLE_OUTCOME_UNKNOWN"
  | "WAGGLE_STALE_TOKEN"
  | "WAGGLE_FORBIDDEN"
  | "WAGGLE_UNAUTHORIZED"
  | "WAGGLE_FENCED"
  | "WAGGLE_GONE"
  | "WAGGLE_AUDIT_TRIMMED"
  | "WAGGLE_TASK_FAILED"
  | "WAGGLE_TASK_CANCELLED"
  | "WAGGLE_TASK_EXPIRED"
  | "WAGGLE_WAIT_TIMED_OUT"
  | "WAGGLE_JOURNAL_DAMAGED"
  | "WAGGLE_JOURNAL_LOCKED"
  | "WAGGLE_JOURNAL_SETTINGS"
  | "WAGGLE_JOURNAL_FULL"
  | "WAGGLE_BROKER"
  | "WAGGLE_MISSING_PACKAGE"
  | "WAGGLE_INVARIANT";

export interface WaggleErrorOptions {
  readonly cause?: unknown;
  /** Path of the wrong field in the message or configuration: `tasks[3].weight`. */
  readonly field?: string;
}

/** The root of all errors of this package. `code` is stable, `message` says what to do. */
export class WaggleError extends Error {
  readonly code: WaggleErrorCode;
  readonly field: string | undefined;

  constructor(code: WaggleErrorCode, message: string, options: WaggleErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.field = options.field;
  }
}

/** A message that cannot be parsed, or breaks a limit. Nothing was changed. */
export class InvalidMessageError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_INVALID_MESSAGE", message, options);
  }
}

/** `waggle.config.json`, an environment variable or a flag is wrong. */
export class InvalidConfigError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_INVALID_CONFIG", message, options);
  }
}

/** A value that a scheduling rule cannot use: α above 1, a weight that is no number. Nothing was changed. */
export class InvalidValueError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_INVALID_VALUE", message, options);
  }
}

/** Nobody is online to take a task: VAPORA's NoAgentsAvailable. In a live swarm the task waits instead. */
export class NoAgentsAvailableError extends WaggleError {
  constructor(message: string) {
    super("WAGGLE_NO_AGENTS_AVAILABLE", message);
  }
}

/** A queue is full or the journal is short of room: try again after `retryAfterMs`. */
export class BackpressureError extends WaggleError {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super("WAGGLE_BACKPRESSURE", message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** A resource is on hold for longer than a request for its slots may wait: nothing is held. A handler may have another
 *  way. Where it lets the error pass, the attempt ends as refused, counts towards no limit, and the task waits for the
 *  hold or goes elsewhere. */
export class OnHoldError extends WaggleError {
  readonly resource: string;
  /** End of the hold, unless it is renewed or ended before. */
  readonly until: Date;

  constructor(
    message: string,
    options: WaggleErrorOptions & { readonly resource: string; readonly until: Date },
  ) {
    super("WAGGLE_ON_HOLD", message, options);
    this.resource = options.resource;
    this.until = options.until;
  }
}

/** A budget that refused a task; tokens. */
export interface ExceededBudget {
  /** Absent: the swarm's budget. */
  readonly project?: string | undefined;
  /** The limit. */
  readonly tokens: number;
  readonly windowMs: number;
  /** Used within the window. */
  readonly spent: number;
  /** Estimates of running attempts, reserved until they end. */
  readonly reserved: number;
  /** Estimate of the refused task. */
  readonly needed: number;
}

/** A budget in mode `reject` has too little left: the task was not accepted. `submit` and `submitMany` do not try again
 *  by themselves, also with `retry`: room may take as long as the window. */
export class BudgetExceededError extends WaggleError {
  /** When the task fits, if nothing else is spent; 5,000 where only the end of running attempts makes room. ms. */
  readonly retryAfterMs: number;
  readonly budget: ExceededBudget;

  constructor(message: string, refusal: { readonly retryAfterMs: number; readonly budget: ExceededBudget }) {
    super("WAGGLE_BUDGET_EXCEEDED", message);
    this.retryAfterMs = refusal.retryAfterMs;
    this.budget = refusal.budget;
  }
}

/** The requested batches are older than the first batch that is kept: read from `firstIdx` on. */
export class AuditTrimmedError extends WaggleError {
  /** First batch that the journal still has. */
  readonly firstIdx: number;

  constructor(message: string, options: WaggleErrorOptions & { readonly firstIdx: number }) {
    super("WAGGLE_AUDIT_TRIMMED", message, options);
    this.firstIdx = options.firstIdx;
  }
}

/** The server, or a leader on it, could not be reached. */
export class UnreachableError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_UNREACHABLE", message, options);
  }
}

/** An answer that breaks the protocol: from a coordinator of another version, or from a different program. Repeating
 *  the request does not help. */
export class UnreadableAnswerError extends UnreachableError {}

/** No broker answers for a data folder. `waggle up` starts one. */
export class NoBrokerError extends UnreachableError {}

/** The server does not permit this user an operation that the journal needs. Repeating the operation does not help. */
export class ForbiddenError extends UnreachableError {
  override readonly code = "WAGGLE_FORBIDDEN";
}

/** The server refuses formerly accepted credentials: they were revoked, or have expired. */
export class UnauthorizedError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_UNAUTHORIZED", message, options);
  }
}

/** True for an error of a server that may answer later. A missing permission stays missing. */
export function mayAnswerLater(error: unknown): error is UnreachableError {
  return error instanceof UnreachableError && !(error instanceof ForbiddenError);
}

/** A broker could not be started, or is not the broker that this data folder needs. */
export class BrokerError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_BROKER", message, options);
  }
}

/** A required optional package is not installed. The message names the command that installs it. */
export class MissingPackageError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_MISSING_PACKAGE", message, options);
  }
}

/** The subject of a request has no subscriber: there is no leader at the moment. */
export class NoLeaderError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_NO_LEADER", message, options);
  }
}

/** The request may or may not have been carried out. Repeat it with the same ids. */
export class OutcomeUnknownError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_OUTCOME_UNKNOWN", message, options);
  }
}

/** The journal holds an invalid record: a broken hash, a gap, a fork. */
export class JournalDamagedError extends WaggleError {
  constructor(message: string, options: WaggleErrorOptions = {}) {
    super("WAGGLE_JOURNAL_DAMAGED", message, options);
  }
}

/** Records of a journal, or their replacements, are not found. They are lost, or the server does not know them yet, as
 *  during a fail-over. */
export class MissingRecordsError extends JournalDamagedError {}

/** A record changed since it was read: the journal lost records at its end and continued differently. A second read
 *  may still succeed. */
export class RewrittenError extends JournalDamagedError {}

/** A bug: an invariant does not hold. Never caught except to stop. */
export class InvariantError extends WaggleError {
  constructor(message: string) {
    super("WAGGLE_INVARIANT", `invariant broken: ${message}`);
  }
}

/** The message of any thrown value. Never throws, although reading a foreign value may. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown);
  } catch {
    return "the thrown value cannot be read"; // a getter, a Proxy or a toString threw: no better words exist
  }
}
