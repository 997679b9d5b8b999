// A task's history for people: request, state, attempts with their receipts, and events.

import { duration } from "../audit/describe.ts";
import { describeWait } from "../audit/describe-wait.ts";
import type { AttemptLog } from "../client/attempt-logs.ts";
import type { TaskStory } from "../client/task-stories.ts";
import { counted } from "../count-text.ts";
import { headOf } from "../cut-text.ts";
import type { TaskWait } from "../protocol/explain-schemas.ts";
import type { TaskSpec } from "../state/event.ts";
import { needsText, valuesText } from "../state/needs.ts";
import { attemptBlock, attemptsText } from "./attempt-view.ts";
import { eventLine } from "./event-text.ts";
import { formatTime, hanging, labelled } from "./format.ts";
import { unkeptText } from "./kept-record.ts";
import { logsBlock } from "./log-view.ts";
import { type Output, printable, printableText } from "./output.ts";

type View = Pick<Output, "columns" | "colors" | "asStarted">;

const RESULT_LINES_MAX = 10;
const RESULT_CHARACTERS_MAX = 1_000;

export interface ShownStory {
  readonly story: TaskStory;
  /** The obstacle, while the task waits. */
  readonly wait?: TaskWait | undefined;
  /** Logs of the newest attempts. */
  readonly logs: readonly AttemptLog[];
  /** First batch that the journal still has. */
  readonly firstIdx: number;
}

export function renderStory(id: string, { story, wait, logs, firstIdx }: ShownStory, view: View): string {
  const blocks = [
    headline(id, story, view),
    ...story.attempts.map((attempt) => attemptBlock(attempt, story.status.at, view)),
    logsBlock(logs, view),
    resultBlock(story, view),
    waitingBlock(id, wait, story, view),
    eventsBlock(story, firstIdx, view),
  ];
  return blocks.filter((block) => block !== "").join("\n\n");
}

function headline(
  id: string,
  { status, spec, submittedAt, endedAt }: TaskStory,
  { colors, columns }: View,
): string {
  const hasEnded = status.endedIdx !== undefined;
  const tone = status.state === "completed" ? "green" : hasEnded ? "red" : "yellow";
  const took =
    submittedAt === undefined || endedAt === undefined ? "" : ` after ${duration(endedAt - submittedAt)}`;
  const attempts = attemptsText(status.attempts, hasEnded);
  const lines = [
    `${colors.bold(printable(id))}  ${colors[tone](status.state)}${took}, ${attempts}`,
    ...hanging(
      `${printable(status.kind)} for ${status.project}/${printable(status.user)}${spec === undefined ? "" : termsOf(spec)}`,
      columns,
    ),
  ];
  if (status.stale === true) lines.push(colors.yellow("answered by a standby; the leader may know more"));
  return lines.join("\n");
}

function termsOf(spec: TaskSpec): string {
  const terms = [
    `priority ${spec.priority}`,
    `weight ${spec.weight}`,
    `at most ${counted(spec.maxAttempts, "attempt")}`,
    `${counted(spec.payload.length, "character")} of payload${spec.encoding === undefined ? "" : " in base64"}`,
  ];
  if (spec.role !== undefined) terms.push(`role ${printable(spec.role)}`);
  if (spec.needs !== undefined) terms.push(`needs ${printable(needsText(spec.needs))}`);
  if (spec.affinity !== undefined) terms.push(`affinity ${printable(spec.affinity)}`);
  if (spec.tokens !== undefined) terms.push(`about ${counted(spec.tokens, "token")}`);
  if (spec.notBefore !== undefined) terms.push(`not before ${formatTime(spec.notBefore)}`);
  if (spec.deadline !== undefined) terms.push(`by ${formatTime(spec.deadline)}`);
  if (spec.attributes !== undefined) terms.push(`attributes ${printable(valuesText(spec.attributes))}`);
  return ` · ${terms.join(" · ")}`;
}

function resultBlock({ events }: TaskStory, { colors }: View): string {
  const completed = events.map(({ event }) => event).find((event) => event.type === "TaskCompleted");
  if (completed === undefined) return "";
  const { result, resultDigest, encoding } = completed;
  if (resultDigest !== undefined) {
    const { bytes, sha256 } = resultDigest;
    return `${colors.bold("result")}  ${colors.dim(`not kept: its project journals results as hash · ${counted(bytes, "byte")} · sha256 ${sha256}`)}`;
  }
  if (result === undefined) return "";
  const whole = `${counted(result.length, "character")}${encoding === undefined ? "" : " in base64"}`;
  if (result === "") return `${colors.bold("result")}  empty`;
  const shown = headOf(result, RESULT_CHARACTERS_MAX)
    .replace(/\n$/, "")
    .split("\n")
    .slice(0, RESULT_LINES_MAX)
    .join("\n");
  const isCut = shown.length < result.replace(/\n$/, "").length;
  const lines = printableText(shown).replace(/^/gm, "  ");
  const rest = isCut ? `\n  ${colors.dim("… the whole result: --json")}` : "";
  return `${colors.bold("result")}  ${colors.dim(whole)}\n${lines}${rest}`;
}

function eventsBlock({ status, events }: TaskStory, firstIdx: number, { colors, columns }: View): string {
  const within = { colors, columns: columns === undefined ? undefined : columns - 2 };
  const unkept = unkeptText(status, firstIdx);
  return [
    colors.bold("events"),
    ...(unkept === undefined ? [] : [`  ${colors.dim(unkept)}`]),
    ...events.map((event) => eventLine(event, within).replace(/^/gm, "  ")),
  ].join("\n");
}

function waitingBlock(id: string, wait: TaskWait | undefined, { waits }: TaskStory, view: View): string {
  const last = waits.at(-1);
  if (last === undefined || last.to !== undefined) return "";
  const since = `${view.colors.bold(last.state)} since ${formatTime(last.from)}`;
  if (wait === undefined) return since;
  const reason = view.asStarted(printable(describeWait(wait, formatTime)));
  const why = labelled("", reason, view.columns).trimStart();
  const hint = view.asStarted(`waggle explain ${printable(id)} shows the agents and the task's turn`);
  return `${since}\n${why}\n${view.colors.dim(hint)}`;
}
