// Fairness at one moment of the past: a batch, an assignment or a time, from a replay of the journal.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useEffect } from "preact/hooks";
import type { FairnessPast } from "../../wire.ts";
import { messageOf } from "../api.ts";
import { useDashboard } from "../context.ts";
import { counted, dateTime, duration, whole } from "../format.ts";
import { type Filters, href } from "../router.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { empty, failure, head, loading, section } from "../ui/states.ts";
import { Table } from "../ui/table.ts";
import { badge } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";
import { standings } from "./task-wait.ts";
import { shareView, WaterfallSection, workColumns } from "./waterfall-section.ts";

const crumb = html`<a href=${href(["fairness"])}>Fairness now</a>`;

export function PastFairnessPage({ moment }: { readonly moment: Filters }): View {
  const { api } = useDashboard();
  useLive("fairness"); // the page says when the swarm is lost, also here
  const found = useSignal<FairnessPast | undefined>(undefined);
  const error = useSignal<string | undefined>(undefined);
  useEffect(() => {
    const ended = new AbortController();
    api.past(moment, ended.signal).then(
      (past) => (found.value = past),
      (thrown: unknown) => {
        if (!ended.signal.aborted) error.value = messageOf(thrown);
      },
    );
    return () => ended.abort();
  }, []);
  const side = h(MomentPicker, {});
  const past = found.value;
  if (error.value !== undefined)
    return html`${head({ title: "Fairness then", crumb, side })}<div class="card">${failure(error.value)}</div>`;
  if (past === undefined)
    return html`${head({ title: "Fairness then", crumb, note: "replaying the journal…", side })}
      <div class="card">${loading("Replaying the journal")}</div>`;
  const { idx, at, firstIdx, waterfall, earlierIdx, projects, users } = past;
  const note = `Batch ${whole(idx)} of ${dateTime(at)}, by replay from batch ${whole(firstIdx)}`;
  const earlier =
    earlierIdx !== undefined &&
    html`<a class="button" href=${href(["fairness"], { idx: String(earlierIdx) })}>Earlier</a>`;
  return html`
    ${head({ title: "Fairness then", crumb, note, side })}
    ${decision(past)}
    ${h(WaterfallSection, { rows: waterfall, note: "up to this moment: ", side: earlier })}
    ${projects.length > 0 && section({ title: "Projects", note: "share of the tokens of the guarantee's window, right before" }, projectTable(projects))}
    ${users.length > 0 && section({ title: "Waiting users", note: "in the queue of the task, right before" }, userTable(users))}
  `;
}

function decision({ decision: of }: FairnessPast): View {
  if (of === undefined)
    return html`<div class="card">
      ${empty({ title: "The batch assigned no task", text: "The waterfall ends with the last assignment before it." })}
    </div>`;
  const { project, user, task, attempt, agent, kind, why, agrees, agents, command } = of;
  return section(
    { title: "The decision", note: `attempt ${attempt}, as ${kind}`, side: h(Command, { text: command }) },
    html`<div class="card" data-part="decision">
      <div class="verdict">
        <span class="mark tone-good" aria-hidden="true">✓</span>
        <p class="sentence">
          <a href=${href(["tasks", project, task])}>${task}</a> of ${project}/${user} went to <a href=${href(["agents", agent])}>${agent}</a>
        </p>
        <div class="rest"><span class="muted break">${why}</span>
          ${agrees ? badge("the replay agrees", "good") : badge("the receipt differs from the replay", "bad")}</div>
      </div>
      ${standings(agents)}
    </div>`,
  );
}

type Project = FairnessPast["projects"][number];

function projectTable(rows: FairnessPast["projects"]): View {
  return h(Table<Project>, {
    ...{ label: "Projects then", rows, id: ({ project }: Project) => project },
    columns: [
      {
        title: "Project",
        cell: ({ project }) => html`<span class="strong break">${project}</span>`,
        by: ({ project }) => project,
      },
      { title: "Share against target", cell: shareView, by: ({ share }) => share },
      ...workColumns,
    ],
  });
}

type User = FairnessPast["users"][number];

function userTable(rows: FairnessPast["users"]): View {
  return h(Table<User>, {
    ...{ label: "Users that waited", rows, id: ({ project, user }: User) => `${project}/${user}` },
    columns: [
      {
        title: "User",
        cell: ({ project, user }) =>
          html`<div class="stack"><span class="strong break">${user}</span><span class="muted small">${project}</span></div>`,
        by: ({ user }) => user,
      },
      {
        title: "Waiting",
        numeric: true,
        cell: ({ waiting }) => counted(waiting, "task"),
        by: ({ waiting }) => waiting,
      },
      {
        title: "Oldest",
        numeric: true,
        cell: ({ oldestMs }) => duration(oldestMs),
        by: ({ oldestMs }) => oldestMs,
      },
    ],
  });
}

/** Asks for a batch, a task or a time. */
export function MomentPicker(): View {
  const { router } = useDashboard();
  const text = useSignal("");
  const time = useSignal("");
  const show = () => {
    const name = text.value.trim();
    const at = time.value === "" ? Number.NaN : new Date(time.value).getTime();
    if (name !== "") router.go(href(["fairness"], /^\d+$/.test(name) ? { idx: name } : { task: name }));
    else if (!Number.isNaN(at)) router.go(href(["fairness"], { at: String(at) }));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter") show();
  };
  const typed = (event: InputEvent) => (event.target as HTMLInputElement).value;
  return html`<div class="row moment" role="group" aria-label="A moment of the past">
    <input type="search" placeholder="Batch or task" aria-label="Batch index or task id" value=${text.value}
      onInput=${(event: InputEvent) => (text.value = typed(event))} onKeyDown=${onKeyDown} />
    <input type="datetime-local" step="1" aria-label="Time" value=${time.value}
      onInput=${(event: InputEvent) => (time.value = typed(event))} onKeyDown=${onKeyDown} />
    <button type="button" class="button" onClick=${show}>Show then</button>
  </div>`;
}
