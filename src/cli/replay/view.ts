// The reports of `waggle replay` as text for people: the decisions of a journal made once more, and the courses of
// several replays beside the record.

import type { DecisionDifference, DecisionReplay } from "../../audit/decision-replay.ts";
import { describe, duration } from "../../audit/describe.ts";
import type { Gap } from "../../audit/verifying/verify.ts";
import { counted, formatCount } from "../../count-text.ts";
import type { CourseFigures, GroupFigures } from "../../sim/replay/figures.ts";
import { formatTime, labelled } from "../format.ts";
import { type Output, printable } from "../output.ts";
import { type Column, renderTable } from "../table.ts";
import { gapText } from "../verify-view.ts";

type View = Pick<Output, "columns" | "colors">;

const VALUE_CHARACTERS = 120;
/** Users, projects or kinds in a table; --json has all. */
const GROUPS_SHOWN = 10;

/** A course of events: as recorded, or as replayed. */
export interface CourseReport {
  /** `recorded`, `replayed` (the same rules), or the name of the rules. */
  readonly name: string;
  /** Attempts without a recorded duration. The replay gave each the mean duration of the kind. */
  readonly estimated: number;
  readonly figures: CourseFigures;
}

export interface PolicyReport {
  readonly type: "replay";
  readonly where: string;
  readonly firstIdx: number;
  readonly lastIdx: number;
  readonly startAt: number;
  readonly endAt: number;
  /** Batches that the journal lost: the work begins behind the last gap. */
  readonly gaps: readonly Gap[];
  /** What every replay but the first changes besides the rules. */
  readonly changes: string;
  readonly courses: readonly CourseReport[];
}

export interface ExactReport extends DecisionReplay {
  readonly type: "replay";
  readonly exact: boolean;
  readonly where: string;
}

// --- decisions --------------------------------------------------------------------------------------

export function exactText(report: ExactReport, { columns, colors }: View): string {
  const line = (label: string, text: string) => labelled(label, text, columns);
  const { journal, where, difference, withheld, basesTaken, firstIdx, gaps } = report;
  return [
    line("journal", `${journal} ${where}`),
    line("decided", decidedText(report)),
    ...(firstIdx === 1 || basesTaken === 0
      ? []
      : [
          line(
            "",
            `the state before batch ${formatCount(firstIdx)} comes from a base: earlier batches are not kept`,
          ),
        ]),
    ...gaps.map((gap) => line("gap", gapText(gap))),
    ...(withheld === 0
      ? []
      : [
          line(
            "",
            `in ${counted(withheld, "batch").replace("batchs", "batches")} the leader assigned nothing although it could: its storage was nearly full`,
          ),
        ]),
    ...(difference === undefined
      ? [line("verdict", colors.green("exact: the recorded inputs give every recorded decision"))]
      : differenceLines(difference).map(([label, text]) =>
          line(label, label === "verdict" ? colors.red(text) : text),
        )),
  ].join("\n");
}

function decidedText({
  firstIdx,
  lastIdx,
  batches,
  events,
  inputs,
  assignments,
  grants,
}: ExactReport): string {
  if (batches === 0) return "no batch";
  const slots = grants === 0 ? "" : `, ${counted(grants, "grant")} of slots`;
  return (
    `batches ${formatCount(firstIdx)} to ${formatCount(lastIdx)} once more: ${counted(inputs, "input")}, ` +
    `${counted(events, "event")}, ${counted(assignments, "assignment")}${slots}`
  );
}

function differenceLines(found: DecisionDifference): [label: string, text: string][] {
  const { idx, at, place, recorded, decided, differences, error } = found;
  const head = `differs first at batch ${formatCount(idx)} (${formatTime(at)})`;
  if (error !== undefined) return [["verdict", head], ["why", printable(error)], nextLine];
  const described = (event: typeof recorded) =>
    event === undefined ? "nothing more" : printable(describe(event));
  return [
    ["verdict", `${head}, event ${formatCount(place + 1)}`],
    ["recorded", described(recorded)],
    ["decided", described(decided)],
    ...(differences ?? []).map(({ path, was, is }): [string, string] => [
      "field",
      `${printable(path)}: ${valueText(was)} → ${valueText(is)}`,
    ]),
    nextLine,
  ];
}

const nextLine: [string, string] = [
  "next",
  "the journal is whole (its hashes fit), so another version of waggle decided this batch: compare `waggle --version` there",
];

function valueText(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return printable(text.length > VALUE_CHARACTERS ? `${text.slice(0, VALUE_CHARACTERS)}…` : text);
}

/** Seconds up to ten minutes: whole minutes hide what differs. */
function span(ms: number): string {
  return ms >= 1_000 && ms < 600_000 ? `${(ms / 1_000).toFixed(1)} s` : duration(ms);
}

// --- courses ----------------------------------------------------------------------------------------

export function policyText(report: PolicyReport, view: View): string {
  const { where, firstIdx, lastIdx, startAt, endAt, changes, courses } = report;
  const { columns, colors } = view;
  const [recorded] = courses;
  const what = `batches ${formatCount(firstIdx)} to ${formatCount(lastIdx)} ${where}, ${duration(endAt - startAt)} from ${formatTime(startAt)}`;
  const estimated = courses.filter((course) => course.estimated > 0);
  return [
    labelled("journal", what, columns),
    labelled(
      "columns",
      "recorded: what happened; replayed: the same rules in the model; then the changes",
      columns,
    ),
    ...(changes === "" ? [] : [labelled("changed", `${changes}, in each column after replayed`, columns)]),
    ...estimated.map(({ name, estimated: count }) =>
      labelled(
        "estimated",
        `${name}: ${counted(count, "attempt")} without a recorded end took the mean duration of the kind`,
        columns,
      ),
    ),
    "",
    figuresTable(courses, view),
    ...(recorded === undefined ? [] : groupTables(courses, view)),
    "",
    colors.dim(
      "fairness: Jain's index of grants over entitlements while users compete, 1 is even (docs/replay.md)",
    ),
  ].join("\n");
}

function figuresTable(courses: readonly CourseReport[], view: View): string {
  const all = courses.map(({ figures }) => figures);
  const row = (label: string, text: (figures: CourseFigures) => string) => [label, ...all.map(text)];
  const count = (label: string, of: (figures: CourseFigures) => number) =>
    all.some((figures) => of(figures) > 0) ? [row(label, (figures) => formatCount(of(figures)))] : [];
  const rows = [
    row("tasks completed", ({ tasks }) => `${formatCount(tasks.completed)}/${formatCount(tasks.submitted)}`),
    ...count("  failed", ({ tasks }) => tasks.failed),
    ...count("  cancelled", ({ tasks }) => tasks.cancelled),
    ...count("  expired", ({ tasks }) => tasks.expired),
    ...count("  unfinished", ({ tasks }) => tasks.unfinished),
    ...count("  refused", ({ tasks }) => tasks.refused),
    row("wait p50", ({ waitMs }) => span(waitMs.p50)),
    row("     p95", ({ waitMs }) => span(waitMs.p95)),
    row("     p99", ({ waitMs }) => span(waitMs.p99)),
    row("     longest", ({ waitMs }) => span(waitMs.max)),
    row("turnaround p50", ({ turnaroundMs }) => span(turnaroundMs.p50)),
    row("           p95", ({ turnaroundMs }) => span(turnaroundMs.p95)),
    row("fairness", ({ jain }) => jain.toFixed(3)),
    row("makespan", ({ makespanMs }) => span(makespanMs)),
    row("attempts", ({ attempts }) => formatCount(attempts)),
    ...count("  lost", ({ lost }) => lost),
    ...count("tokens", ({ tokens }) => tokens),
    row("cost (weights)", ({ cost }) => formatCount(Math.round(cost))),
  ];
  return renderTable(view, columnsOf("", courses), rows);
}

function groupTables(courses: readonly CourseReport[], view: View): string[] {
  const tables = [
    groupTable("median wait by user", courses, ({ users }) => users, view),
    groupTable("median wait by project", courses, ({ projects }) => projects, view),
    groupTable("median wait by kind", courses, ({ kinds }) => kinds, view),
  ];
  const slots = groupTable("median wait for slots", courses, ({ resources }) => resources, view, 1);
  return [...tables, slots].flatMap((table) => (table === "" ? [] : ["", table]));
}

/** Empty if there are fewer than `least` groups. */
function groupTable(
  head: string,
  courses: readonly CourseReport[],
  groupsOf: (figures: CourseFigures) => readonly GroupFigures[],
  view: View,
  least = 2,
): string {
  const names = [...new Set(courses.flatMap(({ figures }) => groupsOf(figures).map(({ name }) => name)))];
  if (names.length < least) return "";
  const rows = names.slice(0, GROUPS_SHOWN).map((name) => [
    name,
    ...courses.map(({ figures }) => {
      const group = groupsOf(figures).find((one) => one.name === name);
      return group === undefined || group.waitMs.count === 0 ? "—" : span(group.waitMs.p50);
    }),
  ]);
  const more = names.length - GROUPS_SHOWN;
  const table = renderTable(view, columnsOf(head, courses), rows);
  return more > 0 ? `${table}\n${view.colors.dim(`and ${formatCount(more)} more: --json has all`)}` : table;
}

function columnsOf(head: string, courses: readonly CourseReport[]): Column[] {
  return [
    { head, whenNarrow: "whole" },
    ...courses.map(({ name }): Column => ({ head: name, align: "right", whenNarrow: "whole" })),
  ];
}
