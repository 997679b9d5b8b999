// The tasks of a `submit` command line: one task from flags, one per @FILE, or one per line of NDJSON. A bad line
// becomes an error with its line number and does not stop the next lines. Not here: sending (submit.ts).

import { isUtf8 } from "node:buffer";
import { InvalidArgumentError } from "commander";
import type { TaskRequest } from "../client/task-request.ts";
import { InvalidMessageError, type WaggleError } from "../errors.ts";
import { kind } from "../ids.ts";
import { check, parseJson } from "../protocol/codec.ts";
import { TRACEPARENT_PATTERN, TRACESTATE_PATTERN, taskInputSchema } from "../protocol/schemas.ts";
import { nearMisses } from "../state/near-miss.ts";
import type { WrittenNeeds } from "../state/needs.ts";
import { weightOf } from "../state/weight.ts";
import type { Shell } from "./shell.ts";
import { linesOf, nameOf, readSource, textIn } from "./source.ts";
import { UsageError } from "./usage-error.ts";
import { parseTime } from "./values.ts";
import { wrongValueText } from "./wrong-value.ts";

/** A task to submit, or the error of its line. */
export type SourcedTask =
  | { readonly ok: true; readonly task: TaskRequest; readonly file?: string }
  | { readonly ok: false; readonly error: WaggleError; readonly file?: string };

/** Flags that apply to every task. */
export interface TaskFlags {
  readonly kind?: string;
  readonly role?: string;
  readonly need?: WrittenNeeds;
  readonly affinity?: string;
  readonly attribute?: Readonly<Record<string, string>>;
  readonly project?: string;
  readonly user?: string;
  readonly priority?: number;
  readonly weight?: number;
  /** Model that the task will ask: the weight follows from the model and the payload's length. */
  readonly model?: string;
  readonly tokens?: number;
  readonly id?: string;
  readonly deadline?: Date;
  readonly notBefore?: Date;
  readonly maxAttempts?: number;
  readonly timeout?: number;
  readonly stall?: number;
  readonly stream?: boolean;
  readonly payload?: string;
  readonly text?: string;
  readonly ndjson?: boolean;
}

/** A command of an agent, or of a CI system, submits within its trace. */
type Given = TaskFlags & Pick<TaskRequest, "traceparent" | "tracestate">;

/** The trace of the environment. As W3C Trace Context asks for, an invalid trace is ignored. */
function traceIn({ TRACEPARENT: traceparent = "", TRACESTATE: tracestate = "" }: Shell["env"]) {
  if (!TRACEPARENT_PATTERN.test(traceparent)) return {};
  return { traceparent, ...(TRACESTATE_PATTERN.test(tracestate) ? { tracestate } : {}) };
}

/** Fields of a task, and the model for its weight. */
type Fields = Partial<TaskRequest> & Pick<TaskFlags, "model">;

/** Fields of a line of NDJSON; help lists them. */
export const lineFields: readonly string[] = [...Object.keys(taskInputSchema.shape), "project", "model"];

export interface TaskSource {
  /** Whether more than one may come: then progress is printed, and records carry on after a failure. */
  readonly isMany: boolean;
  readonly tasks: AsyncIterable<SourcedTask>;
}

/** @throws WaggleError WAGGLE_USAGE if flags and sources contradict each other */
export function taskSource(
  flags: TaskFlags,
  sources: readonly string[],
  shell: Pick<Shell, "stdin" | "cwd" | "env">,
): TaskSource {
  for (const source of sources) checkSource(source);
  checkTimes(flags);
  if (flags.model !== undefined && flags.weight !== undefined)
    throw new UsageError("--model and --weight exclude each other: both set the weight");
  const { ndjson, kind, ...others } = flags;
  const given = { ...others, ...traceIn(shell.env) };
  if (ndjson === true || kind === undefined)
    return linesSource({ ...given, ...(kind === undefined ? {} : { kind }) }, sources, shell);
  return payloadSource({ ...given, kind }, sources, shell);
}

function checkSource(source: string): void {
  if (source === "-" || (source.startsWith("@") && source.length > 1)) return;
  throw new UsageError(
    `'${source}' is neither @FILE nor -. For words as the payload write --text '${source}'; see waggle submit --help`,
  );
}

/** @throws UsageError where no agent could ever begin the task */
function checkTimes({ deadline, notBefore }: TaskFlags): void {
  if (deadline === undefined) return;
  const time = deadline.toISOString();
  if (deadline.getTime() <= Date.now())
    throw new UsageError(`--deadline is in the past (${time}): the task would expire at once`);
  if (notBefore !== undefined && deadline <= notBefore)
    throw new UsageError(`--deadline (${time}) must be later than --not-before (${notBefore.toISOString()})`);
}

// --- one task for each payload ----------------------------------------------------------------------

function payloadSource(
  flags: Given & { kind: string },
  sources: readonly string[],
  shell: Pick<Shell, "stdin" | "cwd">,
): TaskSource {
  const given =
    [flags.payload, flags.text].filter((payload) => payload !== undefined).length +
    (sources.length > 0 ? 1 : 0);
  if (given > 1) throw new UsageError("--payload, --text and files exclude each other: each is the payload");
  if (sources.length > 1 && flags.id !== undefined)
    throw new UsageError("--id requires a single task, but several files were given");
  return { isMany: sources.length > 1, tasks: payloadTasks(flags, sources, shell) };
}

async function* payloadTasks(
  flags: Given & { kind: string },
  sources: readonly string[],
  shell: Pick<Shell, "stdin" | "cwd">,
): AsyncGenerator<SourcedTask> {
  const base = { ...fieldsOf(flags), kind: flags.kind };
  if (sources.length === 0) yield checked({ ...base, ...(await flagPayload(flags, shell)) });
  for (const source of sources) {
    const sourced = checked({ ...base, ...asPayload(await readSource(source, shell)) });
    yield sources.length > 1 ? { ...sourced, file: nameOf(source) } : sourced;
  }
}

async function flagPayload(
  { payload, text }: TaskFlags,
  shell: Pick<Shell, "stdin" | "cwd">,
): Promise<{ payload?: string }> {
  if (text !== undefined) return { payload: text };
  if (payload === undefined) return {};
  const isElsewhere = payload === "-" || payload.startsWith("@");
  const json = isElsewhere ? textIn(await readSource(payload, shell), nameOf(payload)) : payload;
  try {
    JSON.parse(json);
    return { payload: json };
  } catch (cause) {
    const why = (cause as Error).message;
    throw new UsageError(`--payload is not JSON (${why}). For plain text write --text`, { cause });
  }
}

/** Text if the bytes are text, otherwise base64. */
function asPayload(bytes: Buffer): { payload: string; encoding?: "base64" } {
  const text = bytes.toString("utf8");
  if (Buffer.from(text, "utf8").equals(bytes)) return { payload: text };
  return { payload: bytes.toString("base64"), encoding: "base64" };
}

// --- one task for each line -------------------------------------------------------------------------

function linesSource(
  flags: Given,
  sources: readonly string[],
  shell: Pick<Shell, "stdin" | "cwd">,
): TaskSource {
  if (sources.length === 0) {
    throw new UsageError(
      "nothing to submit: give --kind KIND for one task, @tasks.ndjson, or - for tasks on standard input",
    );
  }
  for (const flag of ["payload", "text", "id"] as const) {
    if (flags[flag] === undefined) continue;
    throw new UsageError(
      `--${flag} requires a single task: add --kind, or put the field into the lines of NDJSON`,
    );
  }
  return { isMany: true, tasks: lineTasks(flags, sources, shell) };
}

async function* lineTasks(
  flags: Given,
  sources: readonly string[],
  shell: Pick<Shell, "stdin" | "cwd">,
): AsyncGenerator<SourcedTask> {
  const base = fieldsOf(flags);
  for (const source of sources) {
    let number = 0;
    for await (const line of linesOf(source, shell)) {
      number += 1;
      const place = `${nameOf(source)}:${number}`;
      if (!isUtf8(line)) yield refused(place, "not UTF-8");
      else if (line.toString().trim() !== "") yield taskOfLine(line, base, place);
    }
  }
}

/** Fields of the line go before flags. */
function taskOfLine(line: Buffer, base: Fields, place: string): SourcedTask {
  const parsed = parseJson(line);
  if (!parsed.ok) return refused(place, parsed.message);
  const { value } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return refused(place, "is no JSON object");
  const unknown = Object.keys(value).find((field) => !lineFields.includes(field));
  if (unknown !== undefined) return refused(place, unknownField(unknown), unknown);
  try {
    return checked({ ...besides(base, value), ...readable(value as Record<string, unknown>) }, place);
  } catch (error) {
    return refused(place, (error as Error).message);
  }
}

/** A line's own weight or model overrides both flags. */
function besides({ weight, model, ...base }: Fields, line: object): Fields {
  if ("weight" in line || "model" in line) return base;
  return { ...base, ...(weight === undefined ? {} : { weight }), ...(model === undefined ? {} : { model }) };
}

/** The wire ignores unknown fields; in a user's line an unknown field is a mistake. */
function unknownField(field: string): string {
  const flags = new Map([
    ["timeout", "timeoutMs"],
    ["stall", "stallMs"],
    ["text", "payload"],
    ["need", "needs"],
    ["attribute", "attributes"],
    ["labels", "needs"],
  ]);
  const wanted = field.replace(/[-_]+([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const meant = flags.get(wanted);
  const near = meant === undefined ? nearMisses(kind(wanted), lineFields.map(kind)) : [meant];
  const hint =
    near.length > 0 ? `did you mean ${near.join(" or ")}?` : `the fields are ${lineFields.join(", ")}`;
  return `${field}: is no field of a task; ${hint}`;
}

/** Forms that only people use in a line: times as text, a payload as JSON. */
function readable(fields: Record<string, unknown>): Record<string, unknown> {
  const task = { ...fields };
  for (const name of ["deadline", "notBefore"]) {
    const value = task[name];
    if (typeof value === "string") task[name] = timeOf(name, value);
  }
  if (task["payload"] !== undefined && typeof task["payload"] !== "string")
    task["payload"] = JSON.stringify(task["payload"]);
  return task;
}

/** @throws Error naming the field and the value */
function timeOf(field: string, text: string): number {
  try {
    return parseTime(text).getTime();
  } catch (cause) {
    if (!(cause instanceof InvalidArgumentError)) throw cause;
    throw new Error(`${field}: ${wrongValueText(cause, text)}`, { cause });
  }
}

// --- both -------------------------------------------------------------------------------------------

function fieldsOf(flags: Given): Fields {
  const fields: Record<string, unknown> = {
    kind: flags.kind,
    role: flags.role,
    needs: flags.need,
    affinity: flags.affinity,
    attributes: flags.attribute,
    project: flags.project,
    user: flags.user,
    priority: flags.priority,
    weight: flags.weight,
    model: flags.model,
    tokens: flags.tokens,
    id: flags.id,
    deadline: flags.deadline?.getTime(),
    notBefore: flags.notBefore?.getTime(),
    maxAttempts: flags.maxAttempts,
    timeoutMs: flags.timeout,
    stallMs: flags.stall,
    stream: flags.stream,
    traceparent: flags.traceparent,
    tracestate: flags.tracestate,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** The coordinator's check, so that errors are reported before any request. */
function checked(fields: Record<string, unknown>, place?: string): SourcedTask {
  const { project, model, ...rest } = fields;
  const task = check(rest, taskInputSchema);
  if (!task.ok) return refused(place, task.message, task.field);
  if (project !== undefined && typeof project !== "string")
    return refused(place, "project: must be text", "project");
  const { deadline, notBefore } = task.value;
  if (deadline !== undefined && notBefore !== undefined && deadline <= notBefore)
    return refused(place, "deadline: must be later than notBefore", "deadline");
  const { encoding, payload, ...terms } = task.value;
  const request: Record<string, unknown> = terms;
  if (payload !== undefined)
    request["payload"] = encoding === "base64" ? Buffer.from(payload, "base64") : payload;
  if (project !== undefined) request["project"] = project;
  if (model !== undefined) {
    if (typeof model !== "string") return refused(place, "model: must be text", "model");
    if (rest["weight"] !== undefined)
      return refused(place, "model: excludes weight; both set the weight", "model");
    request["weight"] = weightOf(model, lengthOf(request["payload"]));
  }
  return { ok: true, task: request as unknown as TaskRequest };
}

/** In characters; for binary payloads in bytes. */
function lengthOf(payload: unknown): number {
  return typeof payload === "string" || payload instanceof Uint8Array ? payload.length : 0;
}

function refused(place: string | undefined, message: string, field?: string): SourcedTask {
  const text = place === undefined ? message : `${place}: ${message}`;
  return { ok: false, error: new InvalidMessageError(text, field === undefined ? {} : { field }) };
}
