// Who holds slots of a resource, and who waits for them, with what for: for `waggle resource show` and `waggle status`.

import { duration, slotQueueText } from "../audit/describe.ts";
import { counted, formatCount } from "../count-text.ts";
import type { ResourceStatus } from "../protocol/slot-schemas.ts";
import type { Output } from "./output.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;
type SlotLease = ResourceStatus["holders"][number];
type WaitsFor = NonNullable<SlotLease["waitsFor"]>;

/** `desk`, `desk/analyst "weekly report"`, `worker for t1#2`: the agent's queue, and what the slots are for. */
export function slotLeaseName({
  label,
  task,
  ...queue
}: Pick<SlotLease, "agent" | "as" | "label" | "task">): string {
  const served = task === undefined ? "" : ` for ${task.task}#${task.attempt}`;
  return `${slotQueueText(queue)}${served}${label === undefined ? "" : ` "${label}"`}`;
}

/** `project budget`. */
export const waitsForText: Readonly<Record<WaitsFor, string>> = {
  "project-budget": "the project's budget",
  "global-budget": "the swarm's budget",
  rate: "a rate",
};

const slotLeaseColumns: readonly Column[] = [
  { head: "  agent", whenNarrow: "whole" },
  { head: "for", whenNarrow: "below" },
  { head: "task", whenNarrow: "below" },
  { head: "project" },
  { head: "user" },
  { head: "tokens", align: "right" },
];

/** Tables of the oldest holders and waiters. @param at time of the status, ms since 1970 */
export function slotLeasesText(
  { holders, waiters, inUse, waiting }: ResourceStatus,
  at: number,
  view: View,
): string {
  const held = `held: ${counted(inUse, "slot")}`;
  const waits = `waiting: ${counted(waiting, "request")}`;
  const sections = [
    ...(holders.length === 0
      ? []
      : [section(held, holders, view, "held for", (holder) => idleText(holder, at))]),
    ...(waiters.length === 0 ? [] : [section(waits, waiters, view, "waits", lackText)]),
  ];
  if (holders.length < inUse || waiters.length < waiting)
    sections.push(view.colors.dim("the oldest of each; slots of one lease are one row"));
  return sections.length === 0 ? "no slot is held, and no request waits" : sections.join("\n\n");
}

function idleText({ idleAt }: SlotLease, at: number): string {
  return idleAt === undefined ? "" : `taken back in ${duration(Math.max(0, idleAt - at))} unless touched`;
}

function lackText({ waitsFor }: SlotLease): string {
  return waitsFor === undefined ? "" : `lacks room in ${waitsForText[waitsFor]}`;
}

function section(
  title: string,
  slotLeases: readonly SlotLease[],
  view: View,
  since: string,
  noteOf: (slotLease: SlotLease) => string,
): string {
  const notes = slotLeases.map(noteOf);
  const hasNotes = notes.some((note) => note !== "");
  const columns: readonly Column[] = [
    ...slotLeaseColumns,
    { head: since, align: "right" },
    ...(hasNotes ? [{ head: "note", whenNarrow: "below" } as const] : []),
  ];
  const rows = slotLeases.map((slotLease, place): Cell[] => [
    `  ${slotQueueText(slotLease)}`,
    slotLease.label ?? "",
    slotLease.task === undefined ? "" : `${slotLease.task.task}#${slotLease.task.attempt}`,
    slotLease.project ?? "",
    slotLease.user ?? "",
    slotLease.tokens === undefined ? "" : formatCount(slotLease.tokens),
    duration(slotLease.forMs),
    ...(hasNotes ? [notes[place] ?? ""] : []),
  ]);
  return `${view.colors.bold(title)}\n${renderTable(view, columns, rows)}`;
}
