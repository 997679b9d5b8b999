// Why a task waits, as one sentence: the obstacle, and the remedy. Not here: finding the obstacle
// (scheduling/explain.ts), tables of agents (src/cli).

import { unreachable } from "../assert.ts";
import { counted, formatCount } from "../count-text.ts";
import type { TaskObstacle, TaskWait } from "../protocol/explain-schemas.ts";
import { labelFlags, needsWords } from "../state/needs.ts";
import { duration, targetText, untilProbed, whyOnHold } from "./describe.ts";

/** How instants are written. */
type TimeText = (at: number) => string;

/** The answer: the first of the obstacles, without a full stop. Instants in UTC by default. */
export function describeWait(wait: TaskWait, timeText: TimeText = inUtc): string {
  const [first] = wait.obstacles;
  return first === undefined ? "Nothing prevents its assignment" : describeObstacle(first, wait, timeText);
}

/** The sentence about one obstacle. */
export function describeObstacle(
  obstacle: TaskObstacle,
  wait: Pick<TaskWait, "position" | "agents">,
  timeText: TimeText = inUtc,
): string {
  switch (obstacle.reason) {
    case "journal-tight":
      return journalText(obstacle);
    case "swarm-paused":
      return "The swarm is paused: no task is assigned until `waggle resume`";
    case "project-paused":
      return `Project ${obstacle.project} is paused: none of its tasks is assigned until \`waggle resume ${obstacle.project}\``;
    case "not-before":
      return obstacle.probed !== undefined
        ? probedText(obstacle.probed, timeText(obstacle.until))
        : obstacle.isRetry
          ? `An attempt failed: the next attempt starts no earlier than ${timeText(obstacle.until)}`
          : `Not due before ${timeText(obstacle.until)}, as its submitter asked`;
    case "no-agent-serves-kind":
      return kindText(obstacle, wait);
    case "no-agent-has-role":
      return roleText(obstacle);
    case "no-agent-has-labels":
      return labelsText(obstacle);
    case "no-agent-of-type":
      return typeText(obstacle);
    case "project-budget":
    case "global-budget":
      return budgetText(obstacle, timeText);
    case "swarm-limit":
      return `The swarm has reached its maximum of open attempts, ${formatCount(obstacle.open)} of ${formatCount(obstacle.topN)}: an attempt must end, or \`waggle policy set --top-n N\` raises the maximum`;
    case "project-concurrency":
      return `Project ${obstacle.project} has reached its maximum of open attempts, ${formatCount(obstacle.open)} of ${formatCount(obstacle.maxConcurrent)}: an attempt must end, or \`waggle project set ${obstacle.project} --max-concurrent N\` raises the maximum`;
    case "all-full":
      return `Every agent of its kind is full: ${counted(obstacle.agents, "agent")}, capacity ${formatCount(obstacle.taken)} of ${formatCount(obstacle.capacity)} in use; ${nextIn(wait)}; start another agent of its kind, or restart an agent with a higher --max-concurrent`;
    case "rate-limited":
      return rateText(obstacle, timeText);
    case "on-hold":
      return holdText(obstacle, timeText);
    case "none-eligible":
      if (Object.keys(obstacle.counts).join() === "not-granted")
        return "No agent of its kind is granted the project; an operator grants it to a group with `waggle grant set GROUP --project NAME`, or start an agent in another group";
      return `No agent of its kind is eligible now: ${reasons(obstacle.counts)}; ${firstFrom(obstacle.until, timeText)}start another agent of its kind`;
    case "room-kept":
      return keptText(obstacle);
    case "later-turn":
      return `${counted(obstacle.feasible, "agent")} can run it, and it waits for its turn; ${nextIn(wait)}`;
    default:
      return unreachable(obstacle);
  }
}

function journalText({
  bytes,
  bytesMax,
  remedy = "run `waggle doctor`",
}: Extract<TaskObstacle, { reason: "journal-tight" }>): string {
  const share = Math.floor((100 * bytes) / bytesMax);
  return `The journal is ${share} % full: no task is assigned until it has room, so that results of running attempts fit; the leader removes old segments, usually within a few minutes; if it stays full, ${remedy}`;
}

/** A query about a project names no task of other projects. They share the swarm's budget alone. */
function keptText({ task, project, user }: Extract<TaskObstacle, { reason: "room-kept" }>): string {
  const isNamed = task !== undefined && project !== undefined && user !== undefined;
  const whose = isNamed ? `${task} of ${project}/${user}` : "a task of a different project";
  const budgets = isNamed
    ? `\`waggle project set ${project} --budget N\`, or \`waggle policy set --budget N\` if it is the swarm's,`
    : "`waggle policy set --budget N`";
  return `The rest of the budget is reserved for ${whose}, which is past the starvation limit. This task goes next, or when ${budgets} has room for both`;
}

type KindObstacle = Extract<TaskObstacle, { reason: "no-agent-serves-kind" }>;

function kindText(obstacle: KindObstacle, { agents }: Pick<TaskWait, "agents">): string {
  const { kind } = obstacle;
  const drained = agents.find(({ standing, servesKind }) => servesKind && standing === "draining")?.agent;
  return unservedText({ ...obstacle, what: kind, flags: `--kind ${kind}`, drained });
}

function roleText(obstacle: Extract<TaskObstacle, { reason: "no-agent-has-role" }>): string {
  const { kind, role, drained, agents } = obstacle;
  const what = `${kind} in role ${role}`;
  const flags = `--kind ${kind} --role ${role}`;
  return `${unservedText({ ...obstacle, what, flags, drained })}${others(agents)}`;
}

function labelsText(obstacle: Extract<TaskObstacle, { reason: "no-agent-has-labels" }>): string {
  const { kind, role, needs, unmet, drained, agents } = obstacle;
  const inRole = role === undefined ? "" : ` in role ${role}`;
  const what = `${kind}${inRole} with ${needsWords(needs)}`;
  const flags = `--kind ${kind}${role === undefined ? "" : ` --role ${role}`} ${labelFlags(needs)}`;
  const lack =
    Object.keys(unmet).length === Object.keys(needs).length
      ? "without these labels"
      : `and ${agents === 1 ? "lacks" : "the closest lacks"} only ${needsWords(unmet)}`;
  const some =
    agents === 0 ? "" : ` (${counted(agents, "agent")} ${agents === 1 ? "serves" : "serve"} it ${lack})`;
  return `${unservedText({ ...obstacle, what, flags, drained })}${some}`;
}

function typeText(obstacle: Extract<TaskObstacle, { reason: "no-agent-of-type" }>): string {
  const { kind, role, type, drained, agents } = obstacle;
  const inRole = role === undefined ? "" : ` in role ${role}`;
  const ofRole = role === undefined ? "" : ` --role ${role}`;
  const what = `${kind}${inRole} by type ${type}`;
  const flags = `--kind ${kind}${ofRole} --type ${type}`;
  const some =
    agents === 0
      ? ""
      : ` (${counted(agents, "agent")} of ${agents === 1 ? "another type" : "other types"} cannot run it: a budget is used up)`;
  return `${unservedText({ ...obstacle, what, flags, drained })}${some}`;
}

/** @param unserved.flags flags of an agent that would serve the task · `drained`: an agent to undrain */
function unservedText({
  what,
  flags,
  nearMisses,
  offline,
  draining,
  drained = "AGENT",
}: Pick<KindObstacle, "nearMisses" | "offline" | "draining"> & {
  readonly what: string;
  readonly flags: string;
  readonly drained: string | undefined;
}): string {
  const away = offline + draining;
  if (away === 0) return `No agent serves ${what}: start an agent with ${flags}${suggestion(nearMisses)}`;
  const served =
    away === 1
      ? `The only agent that serves ${what} is`
      : `All ${formatCount(away)} agents that serve ${what} are`;
  const again = `start ${away === 1 ? "it" : "one"} again, or another with ${flags}`;
  if (draining === 0) return `${served} offline: ${again}`;
  const command = `\`waggle undrain ${drained}\``;
  if (offline === 0) return `${served} draining: ${command}, or start another with ${flags}`;
  return `${served} away, ${formatCount(draining)} draining and ${formatCount(offline)} offline: ${command}, or ${again}`;
}

type BudgetObstacle = Extract<TaskObstacle, { reason: "project-budget" | "global-budget" }>;

function budgetText(budget: BudgetObstacle, timeText: TimeText): string {
  const { project, spent, reserved, tokens, windowMs, needed } = budget;
  const whose = project === undefined ? "The swarm's budget" : `The budget of project ${project}`;
  const state = spent + reserved >= tokens ? "is used up" : "has too little left";
  const held = reserved === 0 ? "" : ` + ${formatCount(reserved)} reserved`;
  const sum = `${formatCount(spent)} spent${held} of ${formatCount(tokens)} tokens in ${duration(windowMs)}`;
  return `${whose} ${state}: ${sum}; this task needs about ${formatCount(needed)}; ${roomText(budget, timeText)}`;
}

function roomText(
  { project, reserved, tokens, needed, opensAt }: BudgetObstacle,
  timeText: TimeText,
): string {
  const command = project === undefined ? "waggle policy set" : `waggle project set ${project}`;
  const raised = `\`${command} --budget N\` raises it`;
  if (opensAt !== undefined) return `room again from ${timeText(opensAt)}, or ${raised}`;
  if (reserved > 0 && needed <= tokens)
    return `room again when attempts that hold reservations end, or ${raised}`;
  return `the task never fits: ${raised}`;
}

function rateText(
  {
    type,
    used,
    reserved,
    tokensMax,
    window,
    agents,
    opensAt,
  }: Extract<TaskObstacle, { reason: "rate-limited" }>,
  timeText: TimeText,
): string {
  const held = reserved === 0 ? "" : ` used + ${formatCount(reserved)} reserved`;
  const sum = `${formatCount(used)}${held} of ${counted(tokensMax, "token")} ${window.replace("_", " ")}`;
  const whom = `${counted(agents, "agent")} of it would serve this task`;
  const opens = opensAt === undefined ? "" : `from ${timeText(opensAt)} again, or `;
  return `Agents of type ${type} have used up their rate, ${sum}; ${whom}: ${opens}\`waggle rate set ${type} --window ${window} --tokens N\` allows more`;
}

function probedText(
  { on, name, by, hold }: NonNullable<Extract<TaskObstacle, { reason: "not-before" }>["probed"]>,
  until: string,
): string {
  const target = targetText({ on, name });
  const why = whyOnHold({ by, reason: hold });
  return `An attempt was the probe of ${target}, and was refused (${why}): another task makes the next probe, and the next attempt starts no earlier than ${until}; \`waggle unhold ${on} ${name}\` ends the hold now`;
}

function holdText(
  { on, name, agents, until, hold, by }: Extract<TaskObstacle, { reason: "on-hold" }>,
  timeText: TimeText,
): string {
  const whom =
    on === "type"
      ? `All \`${name}\` agents are`
      : on === "agent"
        ? `Agent ${name} is`
        : `Resource ${name} is`;
  const why = ` (${whyOnHold({ by, reason: hold })})`;
  const end = until === undefined ? untilProbed : `until ${timeText(until)}`;
  const then = until === undefined ? "the rest runs" : "the next task is the probe";
  const able =
    on === "type"
      ? `; ${counted(agents, "agent")} of them would serve this task`
      : on === "agent"
        ? ""
        : `, and it refused this kind's tasks at ${counted(agents, "agent")}`;
  return `${whom} on hold ${end}${why}${able}. Then ${then}; \`waggle unhold ${on} ${name}\` ends the hold now`;
}

function nextIn({ position }: Pick<TaskWait, "position">): string {
  if (position === undefined) return "no task is before it";
  const { next, project, user, task } = position;
  if (next === undefined)
    return project.place > 1
      ? "a project with an earlier turn goes before it"
      : "no task of its kind goes before it";
  const isIts = project.place === 1 && user.place === 1 && task.place === 1;
  return `the next free agent gets ${isIts ? "it" : `${next.task} of ${next.project}/${next.user}`}`;
}

function reasons(counts: Extract<TaskObstacle, { reason: "none-eligible" }>["counts"]): string {
  return Object.entries(counts)
    .map(([reason, count]) => `${formatCount(count ?? 0)} ${reason}`)
    .join(", ");
}

function firstFrom(until: number | undefined, timeText: TimeText): string {
  return until === undefined ? "" : `the first from ${timeText(until)}, or `;
}

function suggestion(nearMisses: readonly string[]): string {
  return nearMisses.length === 0 ? "" : ` — did you mean ${nearMisses.join(" or ")}?`;
}

function others(count: number): string {
  if (count === 0) return "";
  return ` (${counted(count, "agent")} ${count === 1 ? "serves" : "serve"} it without this role)`;
}

function inUtc(at: number): string {
  return new Date(at).toISOString();
}
