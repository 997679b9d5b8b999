// The last failed attempts, of the swarm or of an agent.

import { h } from "preact";
import type { FailureRow } from "../wire.ts";
import { dateTime } from "./format.ts";
import { href } from "./router.ts";
import { html, type View } from "./ui/html.ts";
import { Table } from "./ui/table.ts";
import { badge } from "./ui/tone.ts";

export function FailureTable({ failures }: { readonly failures: readonly FailureRow[] }): View {
  return h(Table<FailureRow>, {
    label: "Last failures",
    rows: failures,
    id: ({ idx, task, attempt }) => `${idx} ${task} ${attempt}`,
    link: ({ project, task }) => href(["tasks", project, task]),
    columns: [
      {
        title: "Task",
        cell: ({ project, task, attempt }) => html`<div class="stack">
          <a class="strong break" href=${href(["tasks", project, task])}>${task}</a>
          <span class="muted small">${project}, attempt ${attempt}</span>
        </div>`,
      },
      {
        title: "Failure",
        cell: ({ failureClass, isFinal, error }) => html`<div class="stack">
          <span>${badge(isFinal ? `${failureClass}, final` : failureClass, isFinal ? "bad" : "warn")}</span>
          ${error !== "" && html`<span class="muted small clamp" title=${error}>${error}</span>`}
        </div>`,
      },
      {
        title: "Agent",
        rank: "mid",
        cell: ({ agent }) => html`<a href=${href(["agents", agent])}>${agent}</a>`,
      },
      { title: "When", numeric: true, rank: "wide", cell: ({ at }) => dateTime(at) },
    ],
  });
}
