// All tasks: combined filters in the address, a list of any length, and changes to the chosen or to all matching tasks.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { type TaskCounts, type TaskFilter, type TaskRow, type TaskState, taskStates } from "../../wire.ts";
import { ask } from "../action-dialog.ts";
import { TYPING_MS } from "../bounds.ts";
import { type Dashboard, useDashboard } from "../context.ts";
import { counted, duration, whole } from "../format.ts";
import { type Filters, href } from "../router.ts";
import { openSubmit } from "../submit-dialog.ts";
import { keyOf, TaskList, type TaskListState } from "../task-list.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { empty, failure, head, loading, refusedView } from "../ui/states.ts";
import { taskBadge } from "../ui/tone.ts";
import { type Placement, VirtualList } from "../ui/virtual-list.ts";
import { useLive } from "../use-live.ts";

const filterNames = ["text", "state", "kind", "project", "user", "agent", "attribute", "sort"] as const;
const sorts = [
  ["", "Newest first"],
  ["oldest", "Oldest first"],
  ["submitted", "As submitted"],
  ["attempts", "Most attempts"],
] as const;
const ROW = 46;

export function TasksPage(): View {
  const dashboard = useDashboard();
  const { api, live, router, session } = dashboard;
  const { filters } = router.route.value;
  const { data: counts, refused } = useLive("tasks");
  const query = Object.fromEntries(filterNames.map((name) => [name, filters[name]]));
  const key = JSON.stringify(query);
  // The key stands for the query.
  const list = useMemo(() => new TaskList(api, query), [key, api]);
  const chosen = useSignal<ReadonlyMap<string, TaskRow>>(new Map());
  const { value: idx } = live.idx;
  useEffect(() => () => list.stop(), [list]);
  // A new batch is the occasion.
  useEffect(() => list.changed(), [idx, list]);
  if (refused.value !== undefined) return refusedView("Tasks", refused.value.message);

  const state = list.state.value;
  const done = () => {
    chosen.value = new Map();
    void list.reload();
  };
  const submit = () => openSubmit(dashboard, {});
  return html`
    ${head({
      title: "Tasks",
      note: noteOf(state, counts.value),
      side: session.isReadOnly
        ? undefined
        : html`<button type="button" class="button primary" onClick=${submit}>New task</button>`,
    })}
    ${h(FilterBar, { counts: counts.value })}
    ${actions(dashboard, { state, filters: query, chosen: chosen.value, done, clear: () => (chosen.value = new Map()) })}
    <div class="card table-card">
      ${rowsOf(state, {
        query,
        chosen: chosen.value,
        choose: (row, isChosen) => {
          const next = new Map(chosen.peek());
          if (isChosen) next.set(keyOf(row), row);
          else next.delete(keyOf(row));
          chosen.value = next;
        },
        open: (address) => router.go(address),
        more: () => void list.more(),
        reload: () => void list.reload(),
      })}
    </div>
    ${
      state.command !== undefined &&
      html`<p class="row section"><span class="muted small">The same in a terminal</span>${h(Command, { text: state.command })}</p>`
    }
  `;
}

function noteOf({ total, rows, isLoading }: TaskListState, counts: TaskCounts | undefined): string {
  const live = ["queued", "delayed", "assigned", "running"].reduce(
    (sum, state) => sum + (counts?.tasks[state] ?? 0),
    0,
  );
  const match =
    total === undefined ? `${counted(rows.length, "task")} read` : `${counted(total, "task")} match`;
  return isLoading && rows.length === 0 ? "…" : `${match}; ${whole(live)} in the swarm have not ended`;
}

function FilterBar({ counts }: { readonly counts: TaskCounts | undefined }): View {
  const { router } = useDashboard();
  const { filters } = router.route.value;
  const text = useSignal(filters["text"] ?? "");
  const typed = useMemo(() => laterOnly(), []);
  const attribute = useSignal("");
  useEffect(() => {
    attribute.value = filters["attribute"] ?? "";
  }, [filters["attribute"]]);
  const choose = (name: string) => (event: Event) =>
    router.filter({ [name]: (event.target as HTMLInputElement).value });
  const isFiltered = filterNames.some((name) => name !== "sort" && filters[name]);
  const clear = () => {
    text.value = "";
    router.filter(Object.fromEntries(filterNames.map((name) => [name, undefined])));
  };
  return html`<div class="filters">
    <input
      class="search"
      type="search"
      maxlength="128"
      placeholder="Part of an id, kind, user or agent"
      aria-label="Search tasks"
      value=${text.value}
      onInput=${(event: InputEvent) => {
        text.value = (event.target as HTMLInputElement).value;
        typed(() => router.filter({ text: text.peek() }));
      }}
    />
    ${select({ name: "state", any: "Any state", values: stateChoices(filters["state"]), filters, choose })}
    ${select({ name: "kind", any: "Any kind", values: counts?.kinds, filters, choose })}
    ${select({ name: "project", any: "Any project", values: counts?.projects, filters, choose })}
    ${select({ name: "user", any: "Any user", values: counts?.users, filters, choose })}
    ${select({ name: "agent", any: "Any agent", values: counts?.agents, filters, choose })}
    <input
      type="search"
      placeholder="name=value"
      title="An attribute of the task"
      aria-label="attribute"
      value=${attribute.value}
      onInput=${(event: InputEvent) => (attribute.value = (event.target as HTMLInputElement).value)}
      onChange=${choose("attribute")}
    />
    <select aria-label="Order" onChange=${choose("sort")}>
      ${sorts.map(([value, label]) => html`<option value=${value} selected=${(filters["sort"] ?? "") === value}>${label}</option>`)}
    </select>
    ${isFiltered && html`<button type="button" class="button quiet" onClick=${clear}>Clear</button>`}
  </div>`;
}

/** Runs only the last of several within a moment. */
function laterOnly(): (work: () => void) => void {
  const timer: { now?: ReturnType<typeof setTimeout> } = {};
  return (work) => {
    clearTimeout(timer.now);
    timer.now = setTimeout(work, TYPING_MS);
  };
}

/** A link may name several states, as an additional choice. */
function stateChoices(present: string | undefined): readonly string[] {
  const single: readonly string[] = taskStates;
  return present === undefined || present === "" || single.includes(present) ? single : [present, ...single];
}

function select({
  name,
  any,
  values = [],
  filters,
  choose,
}: {
  readonly name: string;
  readonly any: string;
  readonly values: readonly string[] | undefined;
  readonly filters: Filters;
  readonly choose: (name: string) => (event: Event) => void;
}): View {
  const present = filters[name] ?? "";
  const all = present === "" || values.includes(present) ? values : [present, ...values];
  return html`<select aria-label=${name} onChange=${choose(name)}>
    <option value="" selected=${present === ""}>${any}</option>
    ${all.map((value) => html`<option value=${value} selected=${value === present}>${value.replaceAll(",", ", ")}</option>`)}
  </select>`;
}

interface Actions {
  readonly state: TaskListState;
  readonly filters: Filters;
  readonly chosen: ReadonlyMap<string, TaskRow>;
  readonly done: () => void;
  readonly clear: () => void;
}

const liveStates: readonly string[] = ["queued", "delayed", "assigned", "running"];
const retryable: readonly string[] = ["failed", "cancelled", "expired", "dead-lettered"];

/** Changes of the chosen or of all matching tasks. */
function actions(dashboard: Dashboard, { state, filters, chosen, done, clear }: Actions): View {
  if (dashboard.session.isReadOnly) return null;
  const rows = [...chosen.values()];
  if (rows.length > 0) {
    const tasks = (of: readonly string[]) =>
      rows
        .filter((row) => of.includes(row.state))
        .map(({ task, project, round }) => ({ task, project, round }));
    const live = tasks(liveStates);
    const ended = tasks(retryable);
    return html`<div class="row" data-bar="chosen" style=${{ minHeight: "46px" }}>
      <strong>${counted(rows.length, "task")} chosen</strong>
      <button type="button" class="button danger" disabled=${live.length === 0} onClick=${() =>
        ask(dashboard, {
          ...{
            title: `Cancel ${counted(live.length, "task")}`,
            verb: "cancel",
            body: { tasks: live },
            button: "Cancel them",
            isDangerous: true,
            done,
          },
          note: "Their attempts are taken back.",
        })}>
        Cancel ${live.length}
      </button>
      <button type="button" class="button" disabled=${ended.length === 0} onClick=${() =>
        ask(dashboard, {
          ...{
            title: `Retry ${counted(ended.length, "task")}`,
            verb: "retry",
            body: { tasks: ended },
            button: "Retry them",
            done,
          },
          note: "Each opens its next round, with the same payload.",
        })}>
        Retry ${ended.length}
      </button>
      <button type="button" class="button quiet" onClick=${clear}>Choose none</button>
    </div>`;
  }
  const filter = filterOf(filters);
  return html`<div class="row" data-bar="all" style=${{ minHeight: "46px" }}>
    ${
      filter === undefined
        ? html`<span class="muted small">
            ${filters["text"] ? "Choose tasks by their boxes to change them" : "Filter, or choose tasks by their boxes, to cancel or retry many at once"}
          </span>`
        : html`<span class="muted small">All that match:</span>
            <button type="button" class="button danger" disabled=${state.total === 0} onClick=${() =>
              ask(dashboard, {
                ...{
                  title: "Cancel all that match",
                  verb: "cancel",
                  body: { filter },
                  button: "Cancel",
                  isDangerous: true,
                  done,
                },
                note: `Live tasks with ${words(filters)}.`,
              })}>
              Cancel all…
            </button>
            <button type="button" class="button" disabled=${state.total === 0} onClick=${() =>
              ask(dashboard, {
                ...{ title: "Retry all that match", verb: "retry", body: { filter }, button: "Retry", done },
                note: `Ended tasks with ${words(filters)}, completed ones excepted.`,
              })}>
              Retry all…
            </button>`
    }
    <span class="grow"></span>
    ${state.isOld && html`<button type="button" class="button quiet" onClick=${done}>Show the present tasks</button>`}
  </div>`;
}

function words(filters: Filters): string {
  return ["state", "kind", "project", "user", "agent", "attribute"]
    .flatMap((name) => (filters[name] ? [`${name} ${filters[name]?.replaceAll(",", " or ")}`] : []))
    .join(", ");
}

/** Filter for an action on all matching tasks; undefined without a condition. */
function filterOf(filters: Filters): TaskFilter | undefined {
  const { text, state, kind, project, user, agent, attribute } = filters;
  const [name, ...value] = attribute?.split("=") ?? [];
  const filter: TaskFilter = {
    ...(state ? { state: state.split(",") as TaskState[] } : {}),
    ...(kind ? { kind: kind.split(",") } : {}),
    ...(project ? { project } : {}),
    ...(user ? { user: user.split(",") } : {}),
    ...(agent ? { agent: agent.split(",") } : {}),
    ...(name ? { attributes: { [name]: value.join("=") } } : {}),
  };
  const isUnclear = Boolean(text) || (Boolean(attribute) && value.length === 0);
  return isUnclear || Object.keys(filter).length === 0 ? undefined : filter;
}

interface RowDeps {
  readonly query: Filters;
  readonly chosen: ReadonlyMap<string, TaskRow>;
  readonly choose: (row: TaskRow, isChosen: boolean) => void;
  readonly open: (address: string) => void;
  readonly more: () => void;
  readonly reload: () => void;
}

function rowsOf(state: TaskListState, deps: RowDeps): View {
  const { rows, error, isLoading } = state;
  if (error !== undefined && rows.length === 0) return failure(error, deps.reload);
  if (isLoading && rows.length === 0) return loading("Loading tasks");
  if (rows.length === 0)
    return Object.values(deps.query).some(Boolean)
      ? empty({
          title: "No task matches",
          text: "Ended tasks are listed for as long as the policy remembers them.",
        })
      : empty({
          title: "No task was submitted yet",
          text: "Submit one here, or in a terminal:",
          command: "waggle submit --kind count --text 'the quick brown fox' --wait",
        });
  return html`
    <div class="vhead task-grid" aria-hidden="true">
      <span></span><span>Task</span><span>State</span><span class="mid">Kind</span>
      <span class="wide">User</span><span class="mid">Agent</span><span class="wide number">Attempts</span><span class="number">Age</span>
    </div>
    ${h(VirtualList<TaskRow>, {
      ...{ label: "Tasks", rows, rowPixels: ROW, pixelsMax: listPixels(), more: deps.more },
      draw: (row, style) => taskRow(row, { ...deps, style }),
    })}
  `;
}

function listPixels(): number {
  return Math.max(8 * ROW, innerHeight - 330);
}

function taskRow(
  row: TaskRow,
  { style, chosen, choose, open }: RowDeps & { readonly style: Placement },
): View {
  const address = href(["tasks", row.project, row.task]);
  const isChosen = chosen.has(keyOf(row));
  const click = (event: MouseEvent) => {
    if ((event.target as Element).closest("a, input") === null) open(address);
  };
  return html`<div class="vrow task-grid" role="listitem" key=${keyOf(row)} style=${style} onClick=${click}>
    <input
      type="checkbox"
      aria-label=${`Choose ${row.task}`}
      checked=${isChosen}
      onChange=${() => choose(row, !isChosen)}
    />
    <span class="stack" style=${{ minWidth: "0" }}>
      <a class="strong cut" href=${address} title=${row.task}>${row.task}</a>
      <span class="muted small cut">${row.project}${row.round > 1 ? `, round ${row.round}` : ""}</span>
    </span>
    <span>${taskBadge(row.state)}</span>
    <span class="mid cut" title=${row.kind}>${row.kind}</span>
    <span class="wide cut" title=${row.user}>${row.user}</span>
    <span class="mid cut" title=${row.agent ?? ""}>${row.agent ?? html`<span class="muted">–</span>`}</span>
    <span class="wide number">${row.attempts}</span>
    <span class="number nowrap">${duration(row.ageMs)}</span>
  </div>`;
}
