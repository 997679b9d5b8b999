// Parts that the fairness pages of the present and of the past share. The waterfall shows assignments, coloured by user
// or by project. Besides: the bar of a share, and the columns of queued and running tasks.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import type { FairnessProject, WaterfallRow } from "../../wire.ts";
import { counted, duration, percent, whole } from "../format.ts";
import { html, type View } from "../ui/html.ts";
import { empty, section, segments } from "../ui/states.ts";
import type { Column } from "../ui/table.ts";
import { coloursOf, Waterfall } from "../ui/waterfall.ts";

/** Tasks of a project or a user. */
export const workColumns: readonly Column<Pick<FairnessProject, "queued" | "running">>[] = [
  { title: "Queued", numeric: true, cell: ({ queued }) => whole(queued), by: ({ queued }) => queued },
  {
    title: "Running",
    numeric: true,
    rank: "mid",
    cell: ({ running }) => whole(running),
    by: ({ running }) => running,
  },
];

export interface WaterfallSectionProps {
  readonly rows: readonly WaterfallRow[];
  /** Before the number of assignments. */
  readonly note: string;
  readonly side?: View;
}

export function WaterfallSection({ rows, note, side }: WaterfallSectionProps): View {
  const by = useSignal<"user" | "project">("user");
  const choice = segments(
    "Colours by",
    [
      ["user", "By user"],
      ["project", "By project"],
    ] as const,
    by.value,
    (value) => (by.value = value),
  );
  const text = `${note}${counted(rows.length, "assignment")}, each from its submission to its agent`;
  return section(
    { title: "Waterfall", note: text, side: html`<div class="row">${side}${choice}</div>` },
    drawn(rows, by.value),
  );
}

function drawn(rows: readonly WaterfallRow[], by: "user" | "project"): View {
  if (rows.length === 0)
    return html`<div class="card">
      ${empty({ title: "No assignment yet", text: "With a burst of one user, the colours of the others soon stand between its own." })}
    </div>`;
  const groupOf = (row: WaterfallRow) => (by === "project" ? row.project : `${row.project}/${row.user}`);
  const colours = coloursOf(rows.map(groupOf));
  const bars = rows.map((row) => ({
    from: row.at - row.waitedMs,
    to: row.at,
    group: groupOf(row),
    title: `${row.task} of ${row.project}/${row.user} waited ${duration(row.waitedMs)}, then ${row.agent}${why(row)}`,
  }));
  return html`<div class="card pad">
    ${h(Waterfall, { bars, colours })}
    <p class="key">
      ${[...colours].map(([group, at]) => html`<span key=${group}><i class=${`fill-${at}`}></i>${group}</span>`)}
    </p>
  </div>`;
}

function why({ projectBy, userBy }: WaterfallRow): string {
  const reasons = [projectBy, userBy].filter((by) => by !== "rule");
  return reasons.length === 0 ? "" : `, by ${[...new Set(reasons)].join(" and ").replaceAll("-", " ")}`;
}

/** The bar is the share, and the mark is the target. */
export function shareView({
  share,
  target = 0,
}: {
  readonly share: number;
  readonly target?: number | undefined;
}): View {
  const at = (value: number) => `${Math.min(100, Math.max(0, value * 100))}%`;
  return html`<div class="pair">
    <div class="share" role="img" aria-label=${`share ${percent(share)}, target ${percent(target)}`}>
      <i style=${{ width: at(share) }}></i>
      ${target > 0 && html`<b style=${{ left: at(target) }}></b>`}
    </div>
    <span class="small muted nowrap">${percent(share)}${target > 0 ? ` of ${percent(target)}` : ""}</span>
  </div>`;
}
