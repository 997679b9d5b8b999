// The complete, immutable specification of a submitted task, and its content hash.

import { hash } from "node:crypto";
import { type ProjectId, type TaskId, userId } from "../ids.ts";
import { limits } from "../limits.ts";
import type { TaskInput } from "../protocol/schemas.ts";
import type { Attributes, TaskSpec } from "../state/event.ts";
import { isSameNeeds, needsOf } from "../state/needs.ts";
import type { ProjectSettings, Range } from "../state/settings.ts";

const DEFAULT_USER = userId("default");
const DEFAULT_PRIORITY = 100;
const DEFAULT_WEIGHT = 1;

/** Fills in the defaults. The order of the fields is the journal's (core/event-json.ts): the leader's state and the
 *  folded journal are compared as JSON. @param freshId makes an id for a task without one
 *  @param settings bounds of the project: a default is the nearest permitted value */
export function taskSpec(
  input: TaskInput,
  project: ProjectId,
  freshId: () => TaskId,
  settings: Pick<ProjectSettings, "user" | "priorityRange" | "weightRange"> = noBounds,
): TaskSpec {
  const { role, encoding, tokens, deadline, notBefore, stallMs, stream, traceparent, tracestate } = input;
  const { affinity } = input;
  const needs = needsOf(input.needs);
  const attributes = attributesOf(input.attributes);
  const isPlain =
    role === undefined &&
    needs === undefined &&
    affinity === undefined &&
    attributes === undefined &&
    encoding === undefined &&
    tokens === undefined &&
    deadline === undefined &&
    notBefore === undefined &&
    stallMs === undefined &&
    stream === undefined &&
    traceparent === undefined &&
    tracestate === undefined;
  const id = input.id ?? freshId();
  const { kind } = input;
  const user = input.user ?? settings.user ?? DEFAULT_USER;
  const weight = input.weight ?? nearest(DEFAULT_WEIGHT, settings.weightRange);
  const priority = input.priority ?? nearest(DEFAULT_PRIORITY, settings.priorityRange);
  const payload = input.payload ?? "";
  const maxAttempts = input.maxAttempts ?? limits.maxAttemptsDefault;
  const timeoutMs = input.timeoutMs ?? limits.attemptTimeoutMs;
  // The usual task: one literal is several times as fast as spreads.
  if (isPlain) return { id, kind, project, user, weight, priority, payload, maxAttempts, timeoutMs };
  return {
    id,
    kind,
    ...(role === undefined ? {} : { role }),
    ...(needs === undefined ? {} : { needs }),
    ...(affinity === undefined ? {} : { affinity }),
    project,
    user,
    weight,
    priority,
    payload,
    ...(encoding === undefined ? {} : { encoding }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(deadline === undefined ? {} : { deadline }),
    ...(notBefore === undefined ? {} : { notBefore }),
    maxAttempts,
    timeoutMs,
    ...(stallMs === undefined ? {} : { stallMs }),
    ...(stream === undefined ? {} : { stream }),
    ...(attributes === undefined ? {} : { attributes }),
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { tracestate }),
  };
}

const noBounds: Pick<ProjectSettings, "user" | "priorityRange" | "weightRange"> = {};

function nearest(value: number, range: Range | undefined): number {
  return range === undefined ? value : Math.min(range.max, Math.max(range.min, value));
}

/** In order of names, so that equal attributes have one form; undefined without any. */
function attributesOf(given: Attributes | undefined): Attributes | undefined {
  const entries = Object.entries(given ?? {});
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Hashes the submitted content of tasks. Tasks with the same id and the same hash are the same task. */
export class ContentHasher {
  /** The last task, and the JSON of its content beside the payload. The next task mostly differs in its payload. */
  #last: TaskSpec | undefined;
  #head = "";

  /** First 22 characters of the SHA-256. */
  hashOf(spec: TaskSpec): string {
    if (this.#last === undefined || !isAlike(spec, this.#last)) this.#head = headOf(spec);
    this.#last = spec;
    return hash("sha256", this.#head + spec.payload, "base64url").slice(0, 22);
  }
}

/** JSON of everything that is hashed beside the payload. The trace is left out: a submitter that asks again may be in
 *  another span. */
function headOf(spec: TaskSpec): string {
  const { role, encoding, tokens, deadline, notBefore, stallMs, needs, affinity, attributes } = spec;
  const hasMore = needs !== undefined || affinity !== undefined || attributes !== undefined;
  return JSON.stringify([
    spec.kind,
    spec.project,
    spec.user,
    spec.weight,
    spec.priority,
    spec.maxAttempts,
    spec.timeoutMs,
    role,
    encoding,
    tokens,
    deadline,
    notBefore,
    stallMs,
    ...(hasMore ? [needs, affinity, attributes] : []),
  ]);
}

/** Whether `headOf` is the same for both. */
function isAlike(a: TaskSpec, b: TaskSpec): boolean {
  return (
    a.kind === b.kind &&
    a.project === b.project &&
    a.user === b.user &&
    a.weight === b.weight &&
    a.priority === b.priority &&
    a.maxAttempts === b.maxAttempts &&
    a.timeoutMs === b.timeoutMs &&
    a.role === b.role &&
    a.encoding === b.encoding &&
    a.tokens === b.tokens &&
    a.deadline === b.deadline &&
    a.notBefore === b.notBefore &&
    a.stallMs === b.stallMs &&
    a.affinity === b.affinity &&
    isSameNeeds(a.needs, b.needs) &&
    // Compared by identity: tasks with attributes seldom have the same.
    a.attributes === b.attributes
  );
}
