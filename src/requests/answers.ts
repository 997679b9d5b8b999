// From the core's replies to the answers on the wire. Every refusal is worded here.

import { assert, unreachable } from "../assert.ts";
import { duration } from "../audit/describe.ts";
import type { BudgetRefusal, QueueRefusal, Reply } from "../core/command.ts";
import { formatCount } from "../count-text.ts";
import type { WaggleErrorCode } from "../errors.ts";
import { NO_GROUP } from "../ids.ts";
import { limits } from "../limits.ts";
import { encode } from "../protocol/codec.ts";
import type {
  CancelAnswer,
  CodedError,
  RescheduleAnswer,
  ResultAnswer,
  RetryAnswer,
  RevokeAnswer,
  SubmitAnswer,
} from "../protocol/schemas.ts";
import type { EstimateSource } from "../state/estimate.ts";
import type { GrantField } from "../state/grant.ts";
import type { Transport } from "../transport/transport.ts";
import type { Commit } from "./inbox.ts";
import { Items } from "./items.ts";

export function codedError(
  code: WaggleErrorCode,
  message: string,
  more: Omit<CodedError, "ok" | "code" | "message"> = {},
): CodedError {
  return { ok: false, code, message, ...more };
}

/** JSON of the answer to a request with items: in order, the error of an invalid item or the decision.
 *  @param toJson gives the JSON of an answer */
export function answersJson(
  items: Items<unknown>,
  { replies, commit: { term, idx } }: { readonly replies: readonly Reply[]; readonly commit: Commit },
  toJson: (reply: Reply) => string,
): string {
  const answers = items.map((_, nth) => toJson(replies[nth] ?? { kind: "none" }), JSON.stringify);
  return `{"term":${term},"idx":${idx},"answers":[${answers.join(",")}]}`;
}

/** Writes the usual answer directly, several times as fast as `JSON.stringify`. */
export function submitAnswerJson(reply: Reply): string {
  if (reply.kind !== "accepted" || reply.duplicate || reply.warnings.length > 0)
    return JSON.stringify(submitAnswer(reply));
  return `{"ok":true,"task":${nameJson(reply.task)}}`;
}

/** JSON of the answer to results: of an agent, and of further agents of its connection. An agent's results are refused
 *  as a whole, or answered in order. */
export function resultAnswersJson(
  ofAgents: readonly (Items<unknown> | CodedError)[],
  replies: readonly Reply[],
  { term, idx }: Commit,
): string {
  let from = 0;
  const fieldsOf = (items: Items<unknown> | CodedError) => {
    if (!(items instanceof Items)) return JSON.stringify(items).slice(1, -1);
    const answers = items.map(
      (_, nth) => resultAnswerJson(replies[from + nth] ?? { kind: "none" }),
      JSON.stringify,
    );
    from += items.right.length;
    return `"answers":[${answers.join(",")}]`;
  };
  const [first, ...others] = ofAgents.map(fieldsOf);
  const head = `{"term":${term},"idx":${idx},${first}`;
  return others.length === 0
    ? `${head}}`
    : `${head},"others":[${others.map((each) => `{${each}}`).join(",")}]}`;
}

/** Writes the usual answer directly, several times as fast as `JSON.stringify`. */
function resultAnswerJson(reply: Reply): string {
  return reply.kind === "ok" ? '{"ok":true,"status":"ok"}' : JSON.stringify(resultAnswer(reply));
}

/** A name has no control characters and no lone surrogates, so JSON escapes two characters of a name at most. */
function nameJson(name: string): string {
  return name.includes('"') || name.includes("\\") ? JSON.stringify(name) : `"${name}"`;
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
              warnings: reply.warnings.map(({ taskKind: _, nearMisses, ...warning }) => ({
                ...warning,
                nearMisses: [...nearMisses],
              })),
            }
          : {}),
      };
    case "refused":
    case "unknown-project":
    case "beyond-project":
    case "over-budget":
    case "budget-exceeded":
      return notAdmitted(reply);
    case "no-capable-agent":
      return codedError(
        "WAGGLE_NO_CAPABLE_AGENT",
        reply.needs === undefined
          ? `no agent that is online serves the kind ${reply.taskKind}${suggestion(reply.nearMisses)}`
          : `no agent that is online and serves the kind ${reply.taskKind} has labels ${reply.needs}${suggestion(reply.nearMisses)}`,
        { field: reply.needs === undefined ? "kind" : "needs" },
      );
    case "conflict":
      return codedError(
        "WAGGLE_CONFLICT",
        `task ${reply.task} was submitted before with different content: use a new id`,
        { field: "id" },
      );
    default:
      return unexpected(reply);
  }
}

/** The reason why a task is not admitted. */
function notAdmitted(
  reply: Extract<
    Reply,
    { kind: "refused" | "unknown-project" | "beyond-project" | "over-budget" | "budget-exceeded" }
  >,
): CodedError {
  switch (reply.kind) {
    case "refused":
      return codedError("WAGGLE_BACKPRESSURE", fullText(reply), { retryAfterMs: reply.retryAfterMs });
    case "unknown-project":
      return unknownProject(reply.project);
    case "beyond-project":
      return codedError(
        "WAGGLE_FORBIDDEN",
        `${reply.field}: project ${reply.project} permits its submitters ${reply.permitted}`,
        { field: reply.field },
      );
    case "over-budget":
      return codedError(
        "WAGGLE_OVER_BUDGET",
        `tokens: the estimate is ${estimateText(reply)}, and the ${budgetOwners[reply.reason]}'s budget holds ` +
          `${formatCount(reply.tokensMax)} in a window: the task could never run. Give a lower estimate if it needs less, ` +
          "split the task, or raise the budget",
        { field: "tokens" },
      );
    case "budget-exceeded":
      return budgetExceeded(reply);
    default:
      return unreachable(reply);
  }
}

export const budgetOwners = { "project-budget": "project", "global-budget": "swarm" } as const;

/** @param what was refused */
export function budgetExceeded(refusal: BudgetRefusal, what = "this task"): CodedError {
  const { reason, project, budget, spent, reserved, tokens: needed, retryAfterMs, isHeld } = refusal;
  const isOwn = reason === "project-budget-used-up";
  const whose = isOwn ? `the budget of project ${project}` : "the swarm's budget";
  const opens = isHeld
    ? "Only the end of running attempts makes room: try again when some have ended"
    : `Room for it comes back in ${duration(retryAfterMs)}, if nothing else is spent`;
  const command = isOwn ? `waggle project set ${project} --budget N` : "waggle policy set --budget N";
  return codedError(
    "WAGGLE_BUDGET_EXCEEDED",
    `${whose} is used up: of ${formatCount(budget.tokens)} tokens in ${duration(budget.windowMs)}, ${formatCount(spent)} are spent and ` +
      `${formatCount(reserved)} reserved by running attempts and held slots, and the estimate of ${what} is ${estimateText(refusal)}. ${opens}; ` +
      `\`${command}\` raises it`,
    {
      retryAfterMs,
      budget: {
        ...(isOwn && project !== undefined ? { project } : {}),
        tokens: budget.tokens,
        windowMs: budget.windowMs,
        spent,
        reserved,
        needed,
      },
    },
  );
}

/** `1,000 tokens (the default of a task that gives none)`. */
function estimateText({ tokens, source }: Pick<BudgetRefusal, "tokens" | "source">): string {
  const sources: Readonly<Record<EstimateSource, string>> = {
    said: "",
    raised: ", above the task's own estimate, because earlier attempts of the kind used more than estimated",
    learnt: ", the mean of its kind so far, as the task gives none (`tokens`)",
    default: ", the default of a task that gives none (`tokens`)",
  };
  return `${formatCount(tokens)} tokens${sources[source]}`;
}

export function cancelAnswer(reply: Reply): CancelAnswer {
  switch (reply.kind) {
    case "cancelled":
      return { ok: true, task: reply.task, state: reply.state };
    case "other-round":
      return codedError("WAGGLE_CONFLICT", notCancelledText(reply), { field: "round" });
    case "unknown-task":
      return unknownTask(reply.task);
    default:
      return unexpected(reply);
  }
}

function notCancelledText({ task, round, wanted }: Extract<Reply, { kind: "other-round" }>): string {
  return wanted < round
    ? `round ${wanted} of task ${task} has ended, and a retry opened round ${round} since: nothing was cancelled now. ` +
        `Cancel round ${round} if that one is to end`
    : `task ${task} is in round ${round}, and has no round ${wanted} yet: nothing was cancelled`;
}

export function retryAnswer(reply: Reply): RetryAnswer {
  switch (reply.kind) {
    case "retried":
      return { ok: true, task: reply.task, round: reply.round };
    case "not-retried":
      return codedError("WAGGLE_CONFLICT", notRetriedText(reply));
    case "unknown-task":
      return unknownTask(reply.task);
    case "refused":
    case "unknown-project":
    case "beyond-project":
    case "over-budget":
    case "budget-exceeded":
      return notAdmitted(reply);
    default:
      return unexpected(reply);
  }
}

function notRetriedText({ task, state, round, wanted }: Extract<Reply, { kind: "not-retried" }>): string {
  if (state === "completed")
    return `task ${task} has completed: a task is retried that failed, expired, was cancelled or was dead-lettered`;
  if (wanted > round + 1)
    return `task ${task} is in round ${round}, and round ${wanted} follows round ${wanted - 1}: look at its status`;
  return `task ${task} has not ended (it is ${state}): retry it after its end, or cancel it first`;
}

export function revokeAnswer(reply: Reply): RevokeAnswer {
  switch (reply.kind) {
    case "revoked": {
      const { task, attempt, isRevoked: revoked, state } = reply;
      return { ok: true, task, attempt, revoked, state };
    }
    case "no-such-attempt": {
      const { task, attempts, wanted } = reply;
      const sentence = `task ${task} has had ${attempts === 1 ? "1 attempt" : `${attempts} attempts`}, and has no attempt ${wanted} yet: nothing was revoked`;
      return codedError("WAGGLE_CONFLICT", sentence, { field: "attempt" });
    }
    case "unknown-task":
      return unknownTask(reply.task);
    default:
      return unexpected(reply);
  }
}

export function rescheduleAnswer(reply: Reply): RescheduleAnswer {
  switch (reply.kind) {
    case "rescheduled": {
      const { kind: _, ...rescheduled } = reply;
      return { ok: true, ...rescheduled };
    }
    case "other-round": {
      const { task, round, wanted } = reply;
      const sentence = `task ${task} is in round ${round}, not in round ${wanted}: nothing was changed`;
      return codedError("WAGGLE_CONFLICT", sentence, { field: "round" });
    }
    case "not-waiting":
      return codedError("WAGGLE_CONFLICT", notWaitingText(reply));
    case "after-deadline": {
      const [starts, ends] = [
        new Date(reply.notBefore).toISOString(),
        new Date(reply.deadline).toISOString(),
      ];
      const sentence = `notBefore: ${starts} is not before the deadline of task ${reply.task}, ${ends}: it would expire before it may start`;
      return codedError("WAGGLE_INVALID_VALUE", sentence, { field: "notBefore" });
    }
    case "unknown-task":
      return unknownTask(reply.task);
    default:
      return unexpected(reply);
  }
}

function notWaitingText({ task, state }: Extract<Reply, { kind: "not-waiting" }>): string {
  switch (state) {
    case "assigned":
    case "running":
      return `task ${task} is running already: only a waiting task can be rescheduled. \`waggle revoke ${task}\` puts it back into its queue`;
    case "completed":
      return `task ${task} has completed: only a waiting task can be rescheduled`;
    default:
      return `task ${task} has ended (${state}): only a waiting task can be rescheduled. \`waggle retry ${task}\` runs it again`;
  }
}

export function resultAnswer(reply: Reply): ResultAnswer {
  switch (reply.kind) {
    case "ok":
    case "stale":
    case "gone":
      return { ok: true, status: reply.kind };
    case "stale-token":
      return codedError("WAGGLE_STALE_TOKEN", "this attempt belongs to a different agent or token", {
        field: "token",
      });
    default:
      return unexpected(reply);
  }
}

export function joinAnswer(reply: Reply | undefined, { term, idx }: Commit) {
  if (reply?.kind === "too-many-agents") {
    return codedError("WAGGLE_BACKPRESSURE", `the swarm has as many agents as it may (${limits.agentsMax})`, {
      retryAfterMs: reply.retryAfterMs,
    });
  }
  if (reply?.kind === "other-group") return otherGroup(reply.agent);
  if (reply?.kind === "beyond-grant") return beyondGrant(reply);
  if (reply?.kind === "not-newest") {
    const { agent, newest } = reply;
    const sentence = `the newest session of agent ${agent} is ${newest}: join as a new incarnation after it`;
    return codedError("WAGGLE_UNKNOWN_AGENT", sentence, { field: "after", newest });
  }
  if (reply?.kind === "fenced") {
    return codedError(
      "WAGGLE_FENCED",
      `another process joined as ${reply.agent} after this one. Give each its own id`,
      { field: "incarnation" },
    );
  }
  if (reply?.kind !== "joined")
    return codedError("WAGGLE_OUTCOME_UNKNOWN", "the join was interrupted: join again");
  const { unknownAttempts, resumed } = reply;
  return {
    ok: true,
    term,
    idx,
    // The first heartbeat revokes the others.
    unknown: unknownAttempts.slice(0, limits.unknownPerJoinMax),
    resumed,
    heartbeatMs: limits.heartbeatMs,
    leaseTtlMs: limits.leaseTtlMs,
  };
}

const grantFlags: Readonly<Record<Exclude<GrantField, "group">, string>> = {
  kinds: "kind",
  roles: "role",
  types: "type",
  labels: "label",
  projects: "project",
  resources: "resource",
  maxConcurrent: "max-concurrent",
  tokens: "tokens",
};

/** A join, or a request for slots, beyond the grant of the agent's group. */
export function beyondGrant({ group, field, value }: Extract<Reply, { kind: "beyond-grant" }>): CodedError {
  if (field === "group")
    return codedError(
      "WAGGLE_FORBIDDEN",
      `group: ${group === NO_GROUP ? "an agent without a group" : `group ${group}`} has no grant, and agents must be declared: ` +
        `an operator grants it with \`waggle grant set ${group}\``,
      { field },
    );
  const what = value === undefined ? "an agent without a type" : value;
  return codedError(
    "WAGGLE_FORBIDDEN",
    `${field}: the grant of group ${group} does not permit ${what}. An operator changes it with ` +
      `\`waggle grant set ${group} --${grantFlags[field]} …\``,
    { field },
  );
}

export function otherGroup(agent: string): CodedError {
  return codedError(
    "WAGGLE_CONFLICT",
    `an agent ${agent} is online in another group: give this one another id, or let the other leave first`,
    { field: "agent" },
  );
}

export function unknownTask(task: string): CodedError {
  return codedError(
    "WAGGLE_UNKNOWN_TASK",
    `task ${task} is not known here: it was never accepted, or ended too long ago`,
    { field: "task" },
  );
}

/** An unknown task on a standby, which may lag behind the journal: the question stays open. */
export function notYetRead(task: string, idx: number): CodedError {
  return codedError(
    "WAGGLE_NO_LEADER",
    `no leader answers, and this standby, which has read the journal up to batch ${idx}, does not know task ${task}: ask again`,
  );
}

export function unknownProject(project: string): CodedError {
  return codedError(
    "WAGGLE_UNKNOWN_PROJECT",
    `project ${project} does not exist, and projects must be declared here: \`waggle project set ${project}\``,
    { field: "project" },
  );
}

/** A refusal for want of room, before the request is decided. */
export function backpressure(
  reason:
    | "inbox-full"
    | "journal-full"
    | "too-many-messages"
    | "too-many-waiting"
    | "too-many-retries"
    | "too-many-lists",
  retryAfterMs: number,
): CodedError {
  const sentences: Readonly<Record<typeof reason, string>> = {
    "inbox-full": `the coordinator has ${formatCount(limits.inboxDepthMax)} messages waiting, the maximum: try again later`,
    "journal-full":
      "the journal is short of room and accepts no new task: try again later; an operator can add room (`waggle status` " +
      "shows the room)",
    "too-many-messages":
      "the agent sends more messages of this sort per second than a leader takes: send waiting items in one message, and try again later",
    "too-many-lists": `${limits.taskScansMax} lists of tasks are being made, the maximum: try again later`,
    "too-many-retries": `${limits.retriesWaitingMax} requests to retry tasks wait, the maximum: try again later`,
    "too-many-waiting": `clients await ${formatCount(limits.awaitedTasksMax)} tasks, the maximum: try again later`,
  };
  return codedError("WAGGLE_BACKPRESSURE", sentences[reason], { retryAfterMs });
}

/** For a refused task: the full queue, the limit, and a remedy. */
function fullText({ reason, project, user, has, max }: QueueRefusal): string {
  const what = "waiting (queued, not due yet, or to be tried again)";
  switch (reason) {
    case "swarm-queue-full":
      return `the swarm has ${formatCount(has)} tasks ${what}, and may have ${formatCount(max)}: try again when some have started`;
    case "project-queue-full": {
      const raise = `\`waggle project set ${project} --queue-max N\``;
      const more = max < limits.queuedTasksPerProjectMax ? `, or allow more with ${raise}` : "";
      return `project ${project} has ${formatCount(has)} tasks ${what}, and may have ${formatCount(max)}: try again when some have started${more}`;
    }
    case "user-queue-full":
      return (
        `user ${user} of project ${project} has ${formatCount(has)} tasks ${what}, more than the mean of the project's other ` +
        "users that wait. More than half of the project's queue is full, and such a user adds no more: " +
        `it may have ${formatCount(max)} now. Try again when some have started`
      );
    case "too-many-users":
      return `project ${project} has ${formatCount(has)} users with live tasks, the maximum: try again when all tasks of one user have ended`;
    case "too-many-needs":
      return `live tasks need ${formatCount(has)} different sets of labels, at most ${formatCount(max)} may: try again when all tasks of a set have ended, or use fewer different sets`;
    case "too-many-projects":
      return `${formatCount(has)} projects have tasks or settings, the maximum, and ${project} has none: try again when the tasks of one project have ended`;
    default:
      return unreachable(reason);
  }
}

/** A suggestion for an unknown name, for the end of a sentence. */
export function suggestion(nearMisses: readonly string[]): string {
  return nearMisses.length === 0 ? "" : `; did you mean ${nearMisses.join(" or ")}?`;
}

/** A reply of another command: a bug. */
export function unexpected(reply: Reply): never {
  assert(false, `reply ${reply.kind} belongs to another command`);
}

/** Sends an answer. An answer above the server's limit is replaced by an error. */
export function sendFitting(
  transport: Pick<Transport, "publish" | "maxPayloadBytes">,
  subject: string,
  answer: Uint8Array,
): void {
  if (answer.length <= transport.maxPayloadBytes) return transport.publish(subject, answer);
  const sentence = "the answer is larger than the server takes: ask again, for fewer at once";
  transport.publish(subject, encode(codedError("WAGGLE_OUTCOME_UNKNOWN", sentence)));
}
