// A task as people write it, made ready for the wire: with an id, a project, and its JSON made once.
// Not here: whether the coordinator will take it (protocol/schemas.ts, checked there for every submitter).

import { z } from "zod";
import { instant, readerOf, weightOfModel } from "../agent/options.ts";
import { isTypedKind, type PayloadOf, type TypedKind } from "../agent/typed-kind.ts";
import { isA, wordsOf } from "../agent/words.ts";
import { InvalidMessageError } from "../errors.ts";
import { NO_PROJECT, SUBJECT_TOKEN_PATTERN, type TaskId, taskId } from "../ids.ts";
import { limits } from "../limits.ts";
import {
  kindSchema,
  name as nameSchema,
  type TaskInput,
  taskIdSchema,
  taskInputSchema,
  userIdSchema,
} from "../protocol/schemas.ts";
import { sentenceOf } from "../protocol/sentence.ts";
import { projectIn, type Scope } from "./scope.ts";
import { type TaskWarning, timeWarnings } from "./task-warnings.ts";

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

/** A task of a kind that `defineKind` made: its payload is typed, checked and sent as JSON. */
export interface TypedTaskRequest<Kind extends TypedKind> extends Omit<TaskRequest, "kind" | "payload"> {
  readonly kind: Kind;
  readonly payload: PayloadOf<Kind>;
}

/** A task ready to be sent, any number of times: the same bytes are the same task. */
export interface PreparedTask {
  readonly id: TaskId;
  readonly project: string;
  /** A `TaskInput`. */
  readonly json: string;
  /** Of `json` in UTF-8. */
  readonly bytes: number;
  readonly kind: string;
  /** What its payload is to be checked against before it is sent; undefined: nothing. */
  readonly typed: { readonly kind: TypedKind; readonly payload: string } | undefined;
  /** What this machine's clock says of its times. */
  readonly warnings: readonly TaskWarning[];
}

export interface TaskDefaults {
  readonly scope: Scope;
  readonly user: string | undefined;
  /** The wall clock. */
  readonly now: number;
  nextId(): string;
}

/** @throws InvalidMessageError naming the field */
export function prepareTask(request: AnyTaskRequest, defaults: TaskDefaults): PreparedTask {
  const task = readTask("", request);
  const { kind, project: named, payload, user = defaults.user, id = defaults.nextId(), ...rest } = task;
  const project = projectIn(defaults.scope, named);
  const name = typeof kind === "string" ? kind : kind.name;
  const typed = typeof kind === "string" ? undefined : { kind, payload: jsonOfPayload(payload) };
  const json = JSON.stringify({
    kind: name,
    ...rest,
    id,
    ...(user === undefined ? {} : { user }),
    ...encodePayload(typed === undefined ? payload : typed.payload),
  });
  const warnings = timeWarnings(rest, defaults.now);
  return { id: taskId(id), project, json, bytes: Buffer.byteLength(json), kind: name, typed, warnings };
}

/** A project is a token of a subject. */
export const projectName: z.ZodType<string> = z
  .string()
  .refine(
    (project) => SUBJECT_TOKEN_PATTERN.test(project) && project !== NO_PROJECT,
    "must be 1–64 characters of A–Z a–z 0–9 _ -, and not _ alone",
  );

const { shape } = taskInputSchema;

export type AnyTaskRequest = TaskRequest | TypedTaskRequest<TypedKind>;

/** A name, or what `defineKind` made. */
const nameOrKind: z.ZodType<string | TypedKind> = z.unknown().transform((given, { issues }) => {
  if (isTypedKind(given)) return given;
  if (kindSchema.safeParse(given).success) return given as string;
  const read = kindSchema.safeParse(given, { error: sentenceOf });
  if (read.success) return read.data;
  issues.push({ code: "custom", input: given, message: read.error.issues[0]?.message ?? "is not valid" });
  return z.NEVER;
});

const readTask = readerOf<Omit<TaskRequest, "kind"> & { readonly kind: string | TypedKind }>({
  each: {
    kind: nameOrKind,
    payload: z.unknown(),
    id: taskIdSchema,
    project: projectName,
    user: userIdSchema,
    role: nameSchema,
    weight: shape.weight,
    priority: shape.priority,
    tokens: shape.tokens,
    deadline: instant,
    notBefore: instant,
    maxAttempts: shape.maxAttempts,
    timeoutMs: shape.timeoutMs,
    stallMs: shape.stallMs,
  },
  required: ["kind"],
  otherwise: { retries: "maxAttempts", type: "kind", data: "payload", model: weightOfModel },
  example: '{ kind: "count" }',
  subject: "the task:",
});

function encodePayload(payload: unknown): Pick<TaskInput, "payload" | "encoding"> {
  if (payload === undefined) return {};
  if (isA(payload, Uint8Array)) {
    const base64 = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength).toString("base64");
    checkPayloadSize(base64.length);
    return { payload: base64, encoding: "base64" };
  }
  const text = typeof payload === "string" ? payload : jsonOfPayload(payload);
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

/** @throws InvalidMessageError for what JSON does not hold: it would become `{}`, or nothing */
export function jsonOfPayload(payload: unknown): string {
  let why = "JSON has no such value";
  try {
    const json: string | undefined = isBeyondJson(payload) ? undefined : JSON.stringify(payload);
    if (json !== undefined) return json;
  } catch (error) {
    why = wordsOf(error); // a cycle, a BigInt, or a getter, toJSON or Proxy of the caller that throws
  }
  const sentence = "payload: must be text, a Uint8Array or what JSON can hold";
  throw new InvalidMessageError(`${sentence}: ${why}`, { field: "payload" });
}

function isBeyondJson(payload: unknown): boolean {
  const classes = [ArrayBuffer, Map, Set, Promise];
  return ArrayBuffer.isView(payload) || classes.some((each) => payload instanceof each);
}
