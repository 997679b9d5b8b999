// A task as users write it, prepared for the wire: with an id, a project, and a payload that is encoded once.
// Coordinators check the task again (protocol/schemas.ts).

import * as z from "zod";
import { instant, readerOf, weightOfModel } from "../agent/options.ts";
import { type PayloadCodec, sealed } from "../agent/payload-codec.ts";
import { isTypedKind, type PayloadOf, type TypedKind } from "../agent/typed-kind.ts";
import { isA, wordsOf } from "../agent/words.ts";
import type { Clock } from "../clock.ts";
import { InvalidMessageError } from "../errors.ts";
import { NAME_PATTERN, NO_PROJECT, SUBJECT_TOKEN_PATTERN, type TaskId, taskId } from "../ids.ts";
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
import type { TraceContext } from "../tracing/tracing.ts";
import { projectIn, type Scope } from "./scope.ts";
import { type TaskWarning, timeWarnings } from "./task-warnings.ts";

/** A task to submit. Only `kind` is required. */
export interface TaskRequest {
  /** The capability that an agent needs, 1–128 printable characters without spaces. */
  readonly kind: string;
  /** A string is sent as is, a `Uint8Array` as base64, any other value as JSON. At most 256 KiB as sent. */
  readonly payload?: unknown;
  /** Makes submission idempotent across processes: the same id and content is the same task. Default: a new id. */
  readonly id?: string;
  /** Default: the connection's project. */
  readonly project?: string;
  /** Default: the connection's user. */
  readonly user?: string;
  /** Only agents of this role may run the task. */
  readonly role?: string;
  /** Only agents with these labels may run the task: by label the accepted value, or several. For example
   *  `{ gpu: "a100", region: ["eu", "us"] }`. At most 16 labels, 16 values each, and 2 KiB as JSON. */
  readonly needs?: Readonly<Record<string, string | readonly string[]>>;
  /** A key of the project, like `session-42`. The agent that ran the last task with the key is preferred while it has
   *  free capacity; the task never waits for that agent. Forgotten after an hour without use. 1–128 printable
   *  characters without spaces. */
  readonly affinity?: string;
  /** Values of your own by name. Handlers, events and lists show them, and lists find tasks by equal values. At most
   *  4 KiB as JSON. Names: 1–64 characters of A–Z a–z 0–9 _ . / -. */
  readonly attributes?: Readonly<Record<string, string>>;
  /** Cost, at least 1. Default 1. */
  readonly weight?: number;
  /** Lower runs first. Default 100. */
  readonly priority?: number;
  /** Estimated tokens per attempt. Budgets reserve the estimate while an attempt runs. Default: the mean of the
   *  tokens that attempts of the kind reported. Before the first report: the policy's `tokensDefault`, 1,000
   *  unless an operator changed it. */
  readonly tokens?: number;
  /** The task ends `expired` unless it ends earlier. A number is ms since the Unix epoch. Default: none. */
  readonly deadline?: Date | number;
  /** Earliest start. A number is ms since the Unix epoch. Default: at once. */
  readonly notBefore?: Date | number;
  /** Maximum number of attempts, 1–100. Default 3. Attempts that end with InfrastructureError do not count. */
  readonly maxAttempts?: number;
  /** Maximum duration of an attempt, ms. Default 1 hour. */
  readonly timeoutMs?: number;
  /** Maximum time without a progress report of an attempt, ms. Default: no limit. */
  readonly stallMs?: number;
  /** Have the agent send chunks of the result while it runs, for `TaskHandle.chunks()`. Default false. */
  readonly stream?: boolean;
  /** W3C Trace Context of the caller: `00-<trace id>-<span id>-<flags>`. Default: the active span of OpenTelemetry,
   *  if a tracer is registered. */
  readonly traceparent?: string;
  readonly tracestate?: string;
}

/** A task of a kind made by `defineKind`: its payload is typed, checked and sent as JSON. */
export interface TypedTaskRequest<Kind extends TypedKind> extends Omit<TaskRequest, "kind" | "payload"> {
  readonly kind: Kind;
  readonly payload: PayloadOf<Kind>;
}

/** A task ready to send. Repeats send the same bytes, which coordinators recognise as the same task. */
export interface PreparedTask {
  readonly id: TaskId;
  readonly project: string;
  /** A `TaskInput`. All tasks of a message are written at once, which costs half of writing each. */
  readonly input: object;
  /** Lower bound of the bytes of `input` as JSON. */
  readonly leastBytes: number;
  readonly kind: string;
  /** The submitter wants chunks of the result. */
  readonly isStreamed: boolean;
  /** The kind whose schema checks the payload before sending. Undefined: no check. */
  readonly typed: { readonly kind: TypedKind; readonly payload: string } | undefined;
  /** Problems of the task's times by this machine's clock. */
  readonly warnings: readonly TaskWarning[];
}

export interface TaskDefaults {
  readonly user: string | undefined;
  readonly clock: Pick<Clock, "now">;
  nextId(): string;
}

/** @throws InvalidMessageError naming the field */
export function prepareTask(request: AnyTaskRequest, scope: Scope, defaults: TaskDefaults): PreparedTask {
  return preparePlain(request, scope, defaults) ?? prepareAny(request, scope, defaults);
}

/** A task with a kind's name and the most usual fields, checked by hand. Undefined for any other value, right or wrong;
 *  then nothing that was read here is used. */
function preparePlain(
  request: AnyTaskRequest,
  scope: Scope,
  defaults: TaskDefaults,
): PreparedTask | undefined {
  try {
    if (Object.getPrototypeOf(request) !== Object.prototype) return undefined;
    for (const name in request) if (!plainNames.has(name)) return undefined;
    const {
      kind,
      project: named,
      payload,
      id: given,
      user = defaults.user,
      role,
      priority,
      timeoutMs,
    } = request;
    if (typeof kind !== "string" || !NAME_PATTERN.test(kind)) return undefined;
    if (user !== defaults.user && !isName(user)) return undefined;
    if (given !== undefined && !isName(given)) return undefined;
    if (role !== undefined && !isName(role)) return undefined;
    if (!isWithin(priority, -limits.priorityMagnitudeMax, limits.priorityMagnitudeMax)) return undefined;
    if (!isWithin(timeoutMs, 1, limits.attemptTimeoutMsMax)) return undefined;
    if (named !== undefined && !isProject(named)) return undefined;
    const project = projectIn(scope, named);
    const { payload: text, encoding } = encodePayload(payload);
    const id = given ?? defaults.nextId();
    const input = { kind, role, priority, timeoutMs, id, user, payload: text, encoding };
    const leastBytes = leastBytesOf(input);
    return {
      id: taskId(id),
      project,
      input,
      leastBytes,
      kind,
      isStreamed: false,
      typed: undefined,
      warnings: NO_WARNINGS,
    };
  } catch {
    return undefined; // a wrong payload, or a getter or a Proxy of the caller that threw
  }
}

const NO_WARNINGS: readonly TaskWarning[] = [];

const plainNames: ReadonlySet<string> = new Set([
  ...["kind", "payload", "id", "project", "user", "role", "priority", "timeoutMs"],
]);

/** An integer from `min` to `max`, or undefined. */
function isWithin(value: unknown, min: number, max: number): boolean {
  return value === undefined || (Number.isSafeInteger(value) && min <= Number(value) && Number(value) <= max);
}

function isProject(value: unknown): boolean {
  return typeof value === "string" && SUBJECT_TOKEN_PATTERN.test(value) && value !== NO_PROJECT;
}

function isName(value: unknown): boolean {
  return typeof value === "string" && NAME_PATTERN.test(value);
}

function prepareAny(request: AnyTaskRequest, scope: Scope, defaults: TaskDefaults): PreparedTask {
  const task = readTask("", request);
  const { kind, project: named, payload, user = defaults.user, id = defaults.nextId(), ...others } = task;
  const { stream: isStreamed = false, ...rest } = others;
  const project = projectIn(scope, named);
  const name = typeof kind === "string" ? kind : kind.name;
  const typed = typeof kind === "string" ? undefined : { kind, payload: jsonOfPayload(payload) };
  const input = {
    kind: name,
    ...rest,
    ...(isStreamed ? { stream: true } : {}),
    id,
    ...(user === undefined ? {} : { user }),
    ...encodePayload(typed === undefined ? payload : typed.payload),
  };
  const warnings = timeWarnings(rest, defaults.clock.now());
  return {
    id: taskId(id),
    project,
    input,
    leastBytes: leastBytesOf(input),
    kind: name,
    isStreamed,
    typed,
    warnings,
  };
}

/** The trace that the submitter gave. */
export function traceOf({ input }: PreparedTask): TraceContext {
  return input as TraceContext;
}

/** The task with the trace of its submission. */
export function withTrace(task: PreparedTask, { traceparent, tracestate }: TraceContext): PreparedTask {
  return { ...task, input: { ...task.input, traceparent, tracestate } };
}

/** The texts without escapes. */
/** The task with its payload sealed. A task without payload is sealed as one with empty text.
 *  @throws InvalidMessageError for chunks, which are never sealed, and for a payload that is too large when sealed */
export async function sealedTask(task: PreparedTask, codec: PayloadCodec): Promise<PreparedTask> {
  const { payload: text = "", encoding } = task.input as { payload?: string; encoding?: "base64" };
  if (task.isStreamed)
    throw new InvalidMessageError("stream: chunks are not sealed by the codec; submit without `stream`", {
      field: "stream",
    });
  const made = await sealed(
    codec,
    { text, encoding },
    { of: "payload", project: task.project, task: task.id },
  );
  if (made.text.length > limits.payloadBytesMax)
    throw new InvalidMessageError(
      `payload: sealed, it has ${made.text.length} bytes, above the maximum of ${limits.payloadBytesMax}`,
      { field: "payload" },
    );
  const leastBytes = task.leastBytes - text.length + made.text.length;
  return { ...task, leastBytes, input: { ...task.input, payload: made.text, encoding: made.encoding } };
}

function leastBytesOf({
  kind,
  id,
  user = "",
  payload = "",
}: {
  readonly kind: string;
  readonly id: string;
  readonly user?: string | undefined;
  readonly payload?: string | undefined;
}): number {
  return SMALLEST_INPUT.length + kind.length + id.length + user.length + payload.length;
}

const SMALLEST_INPUT = JSON.stringify({ kind: "", id: "" });
/** Most bytes of one character in JSON: \u0000. */
const BYTES_PER_CHARACTER_MAX = 6;
/** Most bytes of a role, an affinity, needs and attributes, and of all fields that are numbers. */
const OTHER_FIELDS_BYTES_MAX = 3_072 + limits.needsBytesMax + limits.attributesBytesMax;

/** Exact size as JSON in UTF-8, if the task may exceed a maximum. Undefined for a smaller task. */
export function bytesBeyond({ input, leastBytes }: PreparedTask, bytesMax: number): number | undefined {
  if (leastBytes * BYTES_PER_CHARACTER_MAX + OTHER_FIELDS_BYTES_MAX <= bytesMax) return undefined;
  const bytes = Buffer.byteLength(JSON.stringify(input));
  return bytes > bytesMax ? bytes : undefined;
}

/** A project is a token of a subject. */
export const projectName: z.ZodType<string> = z
  .string()
  .refine(isProject, "must be 1–64 characters of A–Z a–z 0–9 _ -, and not _ alone");

const { shape } = taskInputSchema;

export type AnyTaskRequest = TaskRequest | TypedTaskRequest<TypedKind>;

/** A name, or a kind made by `defineKind`. */
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
    needs: shape.needs,
    affinity: nameSchema,
    attributes: shape.attributes,
    weight: shape.weight,
    priority: shape.priority,
    tokens: shape.tokens,
    deadline: instant,
    notBefore: instant,
    maxAttempts: shape.maxAttempts,
    timeoutMs: shape.timeoutMs,
    stallMs: shape.stallMs,
    stream: z.boolean().optional(),
    traceparent: shape.traceparent,
    tracestate: shape.tracestate,
  },
  required: ["kind"],
  otherwise: {
    retries: "maxAttempts",
    type: "kind",
    data: "payload",
    model: weightOfModel,
    labels: "needs",
    metadata: "attributes",
  },
  example: '{ kind: "count" }',
  subject: "the task:",
});

function encodePayload(payload: unknown): Pick<TaskInput, "payload" | "encoding"> {
  if (payload === undefined) return {};
  if (typeof payload !== "string" && isA(payload, Uint8Array)) {
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

/** @throws InvalidMessageError for values that JSON would turn into `{}` or drop */
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
