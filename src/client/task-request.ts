// A task as people write it, made ready for the wire: with an id, a project, and its JSON made once.
// Not here: whether the coordinator will take it (protocol/schemas.ts, checked there for every submitter).

import { isObject, unknownOption, weightOfModel } from "../agent/option-names.ts";
import { InvalidMessageError } from "../errors.ts";
import { NO_PROJECT, SUBJECT_TOKEN_PATTERN, type TaskId, taskId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TaskInput } from "../protocol/schemas.ts";
import { shown } from "../protocol/sentence.ts";

/** What to do, and on what terms. Everything but `kind` has a default. */
export interface TaskRequest {
  /** What an agent must be able to do, 1–128 printable characters without spaces. */
  readonly kind: string;
  /** A string goes as it is, a `Uint8Array` as base64, any other value as its JSON.
   *  At most 256 KiB as sent. */
  readonly payload?: unknown;
  /** Makes submitting idempotent across processes: the same id and content is the same task. */
  readonly id?: string;
  /** Default: the connection's. */
  readonly project?: string;
  /** Default: the connection's. */
  readonly user?: string;
  /** Only agents of this role may run it. */
  readonly role?: string;
  /** Cost, ≥ 1; default 1. */
  readonly weight?: number;
  /** Lower goes first; default 100. */
  readonly priority?: number;
  /** Estimate of the tokens that an attempt takes: budgets hold it back while the attempt runs. Default: the mean that
   *  attempts of the kind reported so far; before the first, the policy's `tokensDefault`, which is 1,000 unless an
   *  operator set it. */
  readonly tokens?: number;
  /** Ends `expired` if it has not ended by then; a number is ms since the Unix epoch. */
  readonly deadline?: Date | number;
  /** Waits until then. */
  readonly notBefore?: Date | number;
  /** Attempts that may begin, 1–100; default 3. Not counted are those whose handler says that infrastructure refused
   *  them. */
  readonly maxAttempts?: number;
  /** Longest one attempt may run, ms; default an hour. */
  readonly timeoutMs?: number;
  /** Longest an attempt may go without reporting progress, ms; default for ever. */
  readonly stallMs?: number;
}

/** A task ready to be sent, any number of times: the same bytes are the same task. */
export interface PreparedTask {
  readonly id: TaskId;
  readonly project: string;
  /** A `TaskInput`. */
  readonly json: string;
  /** Of `json` in UTF-8. */
  readonly bytes: number;
}

export interface TaskDefaults {
  readonly project: string;
  readonly user: string | undefined;
  nextId(): string;
}

/** @throws InvalidMessageError naming the field */
export function prepareTask(request: TaskRequest, defaults: TaskDefaults): PreparedTask {
  checkShape(request);
  const { project = defaults.project, payload, deadline, notBefore, user = defaults.user, ...rest } = request;
  const id = request.id ?? defaults.nextId();
  const json = jsonOf({
    ...rest,
    id,
    ...(user === undefined ? {} : { user }),
    ...encodePayload(payload),
    ...(deadline === undefined ? {} : { deadline: instantOf(deadline, "deadline") }),
    ...(notBefore === undefined ? {} : { notBefore: instantOf(notBefore, "notBefore") }),
  });
  return { id: taskId(id), project: checkProject(project), json, bytes: Buffer.byteLength(json) };
}

const fieldNames = {
  known: [
    "kind",
    "payload",
    "id",
    "project",
    "user",
    "role",
    "weight",
    "priority",
    "tokens",
    "deadline",
    "notBefore",
    "maxAttempts",
    "timeoutMs",
    "stallMs",
  ] satisfies (keyof TaskRequest)[],
  otherwise: { retries: "maxAttempts", type: "kind", data: "payload", model: weightOfModel },
};

const numberNames = ["weight", "priority", "tokens", "maxAttempts", "timeoutMs", "stallMs"] as const;

/** What types say and plain JavaScript does not. @throws InvalidMessageError naming the field */
function checkShape(request: TaskRequest): void {
  if (!isObject(request)) throw new InvalidMessageError('the task: must be an object, as { kind: "count" }');
  const unknown = unknownOption(request, fieldNames);
  if (unknown !== undefined) throw new InvalidMessageError(unknown.message, { field: unknown.name });
  if (request.kind === undefined) throw new InvalidMessageError("kind: is missing", { field: "kind" });
  for (const field of numberNames) checkNumber(request[field], field);
}

/** JSON has no NaN and no infinity: the coordinator would read null. @throws InvalidMessageError naming the field */
function checkNumber(value: number | undefined, field: string): void {
  if (value === undefined || Number.isFinite(value)) return;
  throw new InvalidMessageError(`${field}: must be a number, not ${shown(value)}`, { field });
}

/** A project is a token of the subject: what breaks the subject must not reach it. @throws InvalidMessageError */
export function checkProject(project: string): string {
  if (SUBJECT_TOKEN_PATTERN.test(project) && project !== NO_PROJECT) return project;
  throw new InvalidMessageError("project: must be 1–64 characters of A–Z a–z 0–9 _ -, and not _ alone", {
    field: "project",
  });
}

function encodePayload(payload: unknown): Pick<TaskInput, "payload" | "encoding"> {
  if (payload === undefined) return {};
  if (payload instanceof Uint8Array) {
    const base64 = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("base64");
    checkPayloadSize(base64.length);
    return { payload: base64, encoding: "base64" };
  }
  const text = typeof payload === "string" ? payload : jsonOf(payload, "payload");
  if (text.length * 3 > limits.payloadBytesMax) checkPayloadSize(Buffer.byteLength(text));
  return { payload: text };
}

function checkPayloadSize(bytes: number): void {
  if (bytes <= limits.payloadBytesMax) return;
  throw new InvalidMessageError(
    `payload: must be at most ${limits.payloadBytesMax / 1024} KiB (bytes as base64) and has ` +
      `${Math.ceil(bytes / 1024)} KiB; store it elsewhere and submit a reference`,
    { field: "payload" },
  );
}

function jsonOf(value: unknown, field?: string): string {
  let cause: unknown;
  try {
    const json: string | undefined = JSON.stringify(value);
    if (json !== undefined) return json;
  } catch (error) {
    cause = error;
  }
  const options = { cause, ...(field === undefined ? {} : { field }) };
  throw new InvalidMessageError(`${field ?? "the task"}: cannot be written as JSON`, options);
}

/** @throws InvalidMessageError naming the field */
export function instantOf(time: Date | number, field: string): number {
  const instant = Number(time);
  if (Number.isFinite(instant)) return Math.trunc(instant);
  throw new InvalidMessageError(`${field}: is no time`, { field });
}
