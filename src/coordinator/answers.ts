// From the core's replies to the answers on the wire: the one place that words a refusal.

import { assert } from "../assert.ts";
import type { Reply } from "../core/command.ts";
import type { RefusalReason } from "../core/event.ts";
import type { WaggleErrorCode } from "../errors.ts";
import type { CancelAnswer, CodedError, ResultAnswer, SubmitAnswer } from "../protocol/schemas.ts";

export function codedError(
  code: WaggleErrorCode,
  message: string,
  more: { field?: string; retryAfterMs?: number } = {},
): CodedError {
  return { ok: false, code, message, ...more };
}

export function submitAnswer(reply: Reply): SubmitAnswer {
  switch (reply.kind) {
    case "accepted":
      return {
        ok: true,
        task: reply.task,
        ...(reply.duplicate ? { duplicate: true } : {}),
        ...(reply.warnings.length > 0
          ? {
              warnings: reply.warnings.map(({ code, nearMisses }) => ({ code, nearMisses: [...nearMisses] })),
            }
          : {}),
      };
    case "refused":
      return backpressure(reply.reason, reply.retryAfterMs);
    case "no-capable-agent":
      return codedError(
        "WAGGLE_NO_CAPABLE_AGENT",
        `no agent that is online serves the kind ${reply.taskKind}${suggestion(reply.nearMisses)}`,
        {
          field: "kind",
        },
      );
    case "unknown-project":
      return unknownProject(reply.project);
    case "over-budget":
      return codedError(
        "WAGGLE_OVER_BUDGET",
        `tokens: an attempt is estimated at ${reply.tokens}, and the ${budgetOwners[reply.reason]}'s budget holds ` +
          `${reply.tokensMax} in a window, so it could never run. Say what it needs (tokens; without that, what its kind ` +
          "took so far or the policy's default counts), split the task, or raise the budget",
        { field: "tokens" },
      );
    case "conflict":
      return codedError(
        "WAGGLE_CONFLICT",
        `task ${reply.task} was submitted before with other content: use another id`,
        { field: "id" },
      );
    default:
      return unexpected(reply);
  }
}

const budgetOwners = { "project-budget": "project", "global-budget": "swarm" } as const;

export function cancelAnswer(reply: Reply): CancelAnswer {
  switch (reply.kind) {
    case "cancelled":
      return { ok: true, task: reply.task, state: "cancelled" };
    case "already-ended":
      return codedError("WAGGLE_CONFLICT", `task ${reply.task} had already ended: ${reply.state}`);
    case "unknown-task":
      return unknownTask(reply.task);
    default:
      return unexpected(reply);
  }
}

export function resultAnswer(reply: Reply): ResultAnswer {
  switch (reply.kind) {
    case "ok":
    case "stale":
    case "gone":
      return { ok: true, status: reply.kind };
    case "stale-token":
      return codedError(
        "WAGGLE_STALE_TOKEN",
        "this attempt was granted to another agent, or under another token",
        { field: "token" },
      );
    default:
      return unexpected(reply);
  }
}

export function unknownTask(task: string): CodedError {
  return codedError(
    "WAGGLE_UNKNOWN_TASK",
    `task ${task} is not known here: it was never accepted, or ended too long ago`,
    { field: "task" },
  );
}

export function unknownProject(project: string): CodedError {
  return codedError(
    "WAGGLE_UNKNOWN_PROJECT",
    `project ${project} does not exist, and projects must be declared here: \`waggle project set ${project}\``,
    { field: "project" },
  );
}

export function backpressure(reason: RefusalReason | "too-many-waiting", retryAfterMs: number): CodedError {
  const sentences: Readonly<Record<typeof reason, string>> = {
    "project-queue-full": "the project has as many waiting tasks as it may",
    "swarm-queue-full": "the swarm has as many waiting tasks as it may",
    "inbox-full": "the coordinator has more messages waiting than it may",
    "too-many-users": "as many users or projects have live tasks as may",
    "journal-full": "the journal is short of room",
    "user-queue-full": "the project is half full and the user has more waiting tasks than the others have",
    "too-many-waiting": "as many clients wait for tasks as may",
  };
  return codedError("WAGGLE_BACKPRESSURE", `${sentences[reason]}: try again later`, { retryAfterMs });
}

function suggestion(nearMisses: readonly string[]): string {
  return nearMisses.length === 0 ? "" : `; did you mean ${nearMisses.join(" or ")}?`;
}

function unexpected(reply: Reply): never {
  assert(false, `reply ${reply.kind} belongs to another command`);
}
