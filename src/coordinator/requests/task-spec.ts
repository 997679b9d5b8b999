// From a submitted task to the complete, immutable specification that is journaled, and its content hash.

import { hash } from "node:crypto";
import { type ProjectId, type TaskId, userId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import type { TaskInput } from "../../protocol/schemas.ts";
import type { TaskSpec } from "../../state/event.ts";

const DEFAULT_USER = userId("default");
const DEFAULT_PRIORITY = 100;
const DEFAULT_WEIGHT = 1;

/** Fills in the defaults. @param freshId used when the submitter gave none */
export function taskSpec(input: TaskInput, project: ProjectId, freshId: () => TaskId): TaskSpec {
  return {
    id: input.id ?? freshId(),
    kind: input.kind,
    ...(input.role === undefined ? {} : { role: input.role }),
    project,
    user: input.user ?? DEFAULT_USER,
    weight: input.weight ?? DEFAULT_WEIGHT,
    priority: input.priority ?? DEFAULT_PRIORITY,
    payload: input.payload ?? "",
    ...(input.encoding === undefined ? {} : { encoding: input.encoding }),
    ...(input.tokens === undefined ? {} : { tokens: input.tokens }),
    ...(input.deadline === undefined ? {} : { deadline: input.deadline }),
    ...(input.notBefore === undefined ? {} : { notBefore: input.notBefore }),
    maxAttempts: input.maxAttempts ?? limits.maxAttemptsDefault,
    timeoutMs: input.timeoutMs ?? limits.attemptTimeoutMs,
    ...(input.stallMs === undefined ? {} : { stallMs: input.stallMs }),
  };
}

/** SHA-256 over everything the submitter said, 22 characters: same id and hash is the same task. */
export function contentHash(spec: TaskSpec): string {
  const { role, encoding, tokens, deadline, notBefore, stallMs } = spec;
  const content = [
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
  ];
  return hash("sha256", `${JSON.stringify(content)}${spec.payload}`, "base64url").slice(0, 22);
}
