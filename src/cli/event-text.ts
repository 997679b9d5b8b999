// One event as a line for people or a record for programs, the same wherever events are printed.

import { describe } from "../audit/describe.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { formatTime, hanging } from "./format.ts";
import type { Output } from "./output.ts";

/** Digits of most batch indexes; longer indexes move the line to the right. */
const IDX_WIDTH = 6;

export function printEvent(journaled: JournaledEvent, output: Output): void {
  const { event, ...place } = journaled;
  output.datum({ type: "event", ...place, event }, () => eventLine(journaled, output));
}

/** `14:03:22.250     12  t1#1 → a1 · score 0.90; 2 eligible agents; waited 3 ms`. */
export function eventLine(
  { idx, at, event, isChanged }: JournaledEvent,
  { colors, columns }: Pick<Output, "colors" | "columns">,
): string {
  const toneName = toneByType[event.type];
  const tone =
    isChanged === true ? colors.red : toneName === undefined ? (part: string) => part : colors[toneName];
  const place = `${formatTime(at)} ${String(idx).padStart(IDX_WIDTH)}`;
  const changed = isChanged === true ? " · CHANGED after it was written: run `waggle verify`" : "";
  const [first = "", ...further] = hanging(`${place}  ${describe(event)}${changed}`, columns);
  return [`${colors.dim(place)}${tone(first.slice(place.length))}`, ...further.map(tone)].join("\n");
}

const toneByType: Readonly<Record<string, "green" | "red" | "yellow" | "cyan" | undefined>> = {
  TaskCompleted: "green",
  AttemptFailed: "yellow",
  TaskFailed: "red",
  TaskDeadLettered: "red",
  TaskCancelled: "yellow",
  TaskExpired: "red",
  AgentJoined: "cyan",
  AgentLeft: "cyan",
  AgentUnresponsive: "yellow",
  AgentSuspended: "yellow",
  HoldPlaced: "yellow",
  BudgetExceeded: "yellow",
  TasksRefused: "red",
  AuditTrimmed: "yellow",
  TermStarted: "cyan",
};
