// The page of a task: waits and attempts over time, receipts, and the reason for a wait. Payload and result are read on
// demand. Every action shows the equal command.

import { useSignal } from "@preact/signals";
import { Fragment, h } from "preact";
import type { AttemptView, TaskContents, TaskDetail, TextContent, WaterfallBar } from "../../wire.ts";
import { ask } from "../action-dialog.ts";
import { messageOf } from "../api.ts";
import { useDashboard } from "../context.ts";
import { bytes, counted, dateTime, duration, whole } from "../format.ts";
import { openReschedule } from "../reschedule-dialog.ts";
import { href } from "../router.ts";
import { openSubmit } from "../submit-dialog.ts";
import { Command } from "../ui/command.ts";
import { html, type View } from "../ui/html.ts";
import { type Span, type SpanRow, Spans } from "../ui/spans.ts";
import { empty, failure, head, loading, section } from "../ui/states.ts";
import { badge, plainBadge, taskBadge } from "../ui/tone.ts";
import { useLive } from "../use-live.ts";
import { waitSection } from "./task-wait.ts";

export interface TaskPageProps {
  readonly id: string;
  readonly project: string;
}

export function TaskDetailPage({ id, project }: TaskPageProps): View {
  const { data, refused } = useLive("task", { id, project });
  const crumb = html`<a href=${href(["tasks"])}>Tasks</a> / <a href=${href(["tasks"], { project })}>${project}</a>`;
  if (refused.value !== undefined)
    return html`${head({ title: id, crumb })}
      <div class="card">${empty({ title: `No task ${id} in project ${project}`, text: refused.value.message })}</div>`;
  const detail = data.value;
  if (detail === undefined)
    return html`${head({ title: id, crumb, note: "…" })}<div class="card">${loading("Loading the task")}</div>`;
  return html`
    ${head({ title: id, crumb, note: noteOf(detail), side: h(Actions, { detail }) })}
    ${outcome(detail)}
    ${detail.wait !== undefined && waitSection(detail.wait, detail.commands.explain)}
    ${detail.isReading ? reading() : history(detail)}
    ${section({ title: "Payload and result" }, h(Contents, { id, project, key: `${project}/${id}/${detail.task.round}/${detail.task.state}` }))}
    ${section({ title: "Facts" }, facts(detail))}
  `;
}

/** Shown while thousands of batches are read: the rest of the page is useful already. */
function reading(): View {
  return section(
    { title: "Time line", note: "reading the journal since the submission…" },
    html`<div class="card">${loading("Reading the task's history")}</div>`,
  );
}

function history(detail: TaskDetail): View {
  return html`
    ${section({ title: "Time line", note: spanText(detail) }, html`<div class="card pad">${timeline(detail)}</div>`)}
    ${section({ title: "Attempts", note: attemptsNote(detail) }, attempts(detail))}
  `;
}

function noteOf({ task, submittedAt }: TaskDetail): string {
  const round = task.round > 1 ? `, round ${task.round}` : "";
  const when = submittedAt === undefined ? "" : `, submitted ${dateTime(submittedAt)}`;
  return `${task.kind} of ${task.user} in ${task.project}${round}${when}`;
}

function isLive(state: TaskDetail["task"]["state"]): boolean {
  return state === "queued" || state === "delayed" || state === "assigned" || state === "running";
}

function outcome({ task, deadLetterReason, attempts: all }: TaskDetail): View {
  const last = all.at(-1);
  const isBad = task.state === "failed" || task.state === "dead-lettered";
  return html`<div class="row">
    ${taskBadge(task.state)}
    ${task.agent !== undefined && html`<span class="muted">at <a href=${href(["agents", task.agent])}>${task.agent}</a></span>`}
    <span class="muted">${isLive(task.state) ? `for ${duration(task.ageMs)}` : `${duration(task.ageMs)} ago`}</span>
    ${deadLetterReason !== undefined && plainBadge(deadLetterReason.replaceAll("-", " "), "bad")}
    ${isBad && last?.error !== undefined && html`<span class="error-text">${last.error}</span>`}
  </div>`;
}

function Actions({ detail }: { readonly detail: TaskDetail }): View {
  const dashboard = useDashboard();
  const { api, notices, session } = dashboard;
  if (session.isReadOnly) return null;
  const { task, can, spec } = detail;
  const { task: name, project, round } = task;
  const one = { tasks: [{ task: name, project, round }] };
  const copy = async () => {
    const payload = await api.contents(name, project).then(
      (contents) => contents.payload,
      (error: unknown) => {
        notices.say(`The payload could not be read: ${messageOf(error)}`, { isBad: true });
        return undefined;
      },
    );
    openSubmit(dashboard, {
      ...{ kind: task.kind, project, user: task.user },
      ...(payload === undefined || payload.isCut ? {} : { payload: payload.text }),
      ...(payload?.encoding === undefined ? {} : { encoding: payload.encoding }),
      ...(spec === undefined
        ? {}
        : { weight: spec.weight, priority: spec.priority, maxAttempts: spec.maxAttempts }),
      ...(spec?.role === undefined ? {} : { role: spec.role }),
    });
  };
  return html`
    ${
      can.retry &&
      html`<button type="button" class="button primary" onClick=${() =>
        ask(dashboard, {
          ...{ title: `Retry ${name}`, verb: "retry", body: one, button: "Retry" },
          note: `Opens round ${round + 1}, with the same payload. Failures count from 0.`,
        })}>Retry…</button>`
    }
    ${can.reschedule && html`<button type="button" class="button" onClick=${() => openReschedule(dashboard, { task: name, project })}>Reschedule…</button>`}
    ${
      can.revoke &&
      html`<button type="button" class="button" onClick=${() =>
        ask(dashboard, {
          ...{
            title: `Revoke the attempt of ${name}`,
            verb: "revoke",
            body: { task: name, project },
            button: "Revoke",
            isDangerous: true,
          },
          note: "Takes the open attempt from its agent. The task is tried again.",
        })}>Revoke…</button>`
    }
    ${
      can.cancel &&
      html`<button type="button" class="button danger" onClick=${() =>
        ask(dashboard, {
          ...{
            title: `Cancel ${name}`,
            verb: "cancel",
            body: one,
            button: "Cancel the task",
            isDangerous: true,
          },
          note: "The task ends. An attempt in flight is taken back.",
        })}>Cancel…</button>`
    }
    <button type="button" class="button" onClick=${copy}>Copy…</button>
  `;
}

function spanText({ waterfall, nowAt }: TaskDetail): string {
  const [first] = waterfall;
  if (first === undefined) return "";
  const end = Math.max(...waterfall.map(({ toAt = nowAt }) => toAt));
  return `${duration(end - first.fromAt)} in total`;
}

const toneOfEnd: Readonly<Record<string, Span["tone"]>> = {
  completed: "good",
  cancelled: "idle",
  expired: "warn",
};

function timeline({ waterfall, nowAt }: TaskDetail): View {
  const [first] = waterfall;
  if (first === undefined) return empty({ title: "The journal no longer keeps its beginning" });
  const to = Math.max(...waterfall.map(({ toAt = nowAt }) => toAt), first.fromAt + 1);
  const rows: SpanRow[] = waterfall.map((bar) => ({ label: labelOf(bar), spans: [spanOf(bar, nowAt)] }));
  return html`
    ${h(Spans, { label: "Waits and attempts of the task over time", rows, from: first.fromAt, to, axis: "since" })}
    <p class="key">
      <span><i class="fill-idle"></i>waits</span><span><i class="fill-3"></i>delayed or starting</span>
      <span><i class="fill-accent"></i>runs</span><span><i class="fill-2"></i>completed</span><span><i class="fill-4"></i>failed</span>
    </p>
  `;
}

function labelOf({ what, attempt, agent = "" }: WaterfallBar): string {
  return attempt === undefined ? what : `${attempt}: ${agent}`;
}

function spanOf({ what, fromAt, toAt, ended, agent, attempt }: WaterfallBar, nowAt: number): Span {
  const to = toAt ?? nowAt;
  const took = duration(to - fromAt);
  const who = agent === undefined ? "" : ` at ${agent}`;
  const number = attempt === undefined ? "" : `, attempt ${attempt}`;
  return {
    from: fromAt,
    to,
    tone: toneOf(what, ended),
    title: `${what}${who}${number}: ${took}${ended === undefined ? "" : `, ${ended}`}`,
    text:
      ended === undefined ? `${attempt === undefined ? "" : `${what} `}${took}` : `${ended} after ${took}`,
  };
}

function toneOf(what: WaterfallBar["what"], ended: string | undefined): Span["tone"] {
  if (what === "queued") return "idle";
  if (ended !== undefined) return toneOfEnd[ended] ?? "bad";
  return what === "running" ? "accent" : "warn";
}

function attemptsNote({ attempts: all, attemptsOmitted, spec }: TaskDetail): string {
  const most = spec === undefined ? "" : ` of at most ${spec.maxAttempts} a round`;
  const lost = attemptsOmitted > 0 ? `; the journal no longer keeps ${attemptsOmitted}` : "";
  return `${all.length}${most}${lost}`;
}

function attempts(detail: TaskDetail): View {
  const { attempts: all, wait } = detail;
  if (all.length === 0)
    return html`<div class="card">
      ${empty({ title: "No agent had it yet", ...(wait === undefined ? {} : { text: "The section above says why it waits." }) })}
    </div>`;
  return h(
    Fragment,
    null,
    [...all]
      .reverse()
      .map(
        (attempt) =>
          html`<article class="card pad" key=${attempt.attempt} style=${{ marginBottom: "10px" }}>${attemptView(attempt, detail)}</article>`,
      ),
  );
}

function attemptView(attempt: AttemptView, { nowAt, task: { task, project } }: TaskDetail): View {
  const of = { task, project };
  const {
    attempt: number,
    agent,
    ended,
    endedAt,
    assignedAt,
    error,
    why,
    tokens,
    tokensCharged,
    receipt,
    runsAs,
    holdsCapacity,
  } = attempt;
  const tone =
    ended === undefined ? "accent" : ended === "completed" ? "good" : ended === "cancelled" ? "warn" : "bad";
  return html`
    <div class="row">
      <strong>Attempt ${number}</strong>
      ${badge(ended ?? (attempt.runningAt === undefined ? "assigned" : "running"), tone)}
      <a href=${href(["agents", agent])}>${agent}</a>
      <span class="muted">${duration((endedAt ?? nowAt) - assignedAt)}</span>
      ${runsAs !== undefined && plainBadge(`ran as ${runsAs}`)}
      ${tokens !== undefined && html`<span class="muted">${whole(tokens)} tokens</span>`}
      ${tokensCharged !== undefined && tokensCharged !== tokens && html`<span class="muted">${whole(tokensCharged)} charged</span>`}
      ${holdsCapacity && plainBadge("still occupies the agent", "warn")}
      <span class="grow"></span>
      <span class="muted small">${dateTime(assignedAt)}, batch ${whole(attempt.assignedIdx)}</span>
    </div>
    ${error !== undefined && html`<p class="error-text section-head" style=${{ marginTop: "6px" }}>${error}</p>`}
    <p class="muted" style=${{ marginTop: "6px" }}>Why ${agent}: ${why}</p>
    ${receipt.candidates.length > 0 && candidates(receipt)}
    <p class="small" style=${{ marginTop: "6px" }}><a href=${href(["fairness"], { idx: String(attempt.assignedIdx), ...of })}>All agents, shares and turns at that moment</a></p>
  `;
}

function candidates({ candidates: all, ineligible }: AttemptView["receipt"]): View {
  const reasons = Object.entries(ineligible).map(
    ([reason, number]) => `${number} ${reason.replaceAll("-", " ")}`,
  );
  return html`<details style=${{ marginTop: "6px" }}>
    <summary>Receipt: ${counted(all.length, "candidate")}${reasons.length > 0 ? `; not eligible: ${reasons.join(", ")}` : ""}</summary>
    <div class="scroll-x">
      <table>
        <thead><tr><th>Agent</th><th class="number">Score</th><th class="number">Success</th><th class="number">Load</th><th class="number mid">Backlog</th><th class="number mid">Speed</th></tr></thead>
        <tbody>
          ${all.map(
            ({ agent, score, successRate, load, backlog = 0, speed = 1 }, at) => html`<tr key=${agent}>
              <td class=${at === 0 ? "strong" : ""}>${agent}</td>
              <td class="number">${score.toFixed(3)}</td><td class="number">${successRate.toFixed(3)}</td>
              <td class="number">${load.toFixed(2)}</td><td class="number mid">${backlog.toFixed(2)}</td><td class="number mid">${speed.toFixed(2)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </details>`;
}

interface ContentsProps {
  readonly id: string;
  readonly project: string;
}

function Contents({ id, project }: ContentsProps): View {
  const { api } = useDashboard();
  const contents = useSignal<TaskContents | undefined>(undefined);
  const error = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const read = async () => {
    isBusy.value = true;
    error.value = undefined;
    try {
      contents.value = await api.contents(id, project);
    } catch (thrown) {
      error.value = messageOf(thrown);
    } finally {
      isBusy.value = false;
    }
  };
  const found = contents.value;
  if (error.value !== undefined)
    return html`<div class="card">${failure(error.value, () => void read())}</div>`;
  if (found === undefined)
    return html`<div class="card pad row">
      <button type="button" class="button" disabled=${isBusy.value} onClick=${read}>${isBusy.value ? "Reading…" : "Show"}</button>
      <span class="muted">Payloads may be private, so they are read only when asked for.</span>
    </div>`;
  return html`<div class="card pad" style=${{ display: "grid", gap: "16px" }}>
    ${content("Payload", found.payload, found.missing.payload)}
    ${content("Result", found.result, found.missing.result)}
    ${found.logs.map(
      (log) => html`<div class="stack" key=${log.attempt}>
        <h3>Output of attempt ${log.attempt} at ${log.agent}</h3>
        ${
          log.text === undefined || log.text === ""
            ? html`<p class="muted">${log.missing ?? "none"}</p>`
            : html`<pre class="text">${log.text}</pre>`
        }
      </div>`,
    )}
  </div>`;
}

function content(title: string, found: TextContent | undefined, missing: string | undefined): View {
  const size =
    found === undefined
      ? ""
      : `${bytes(found.bytes)}${found.encoding === undefined ? "" : ", base64"}${found.isCut ? ", its beginning" : ""}`;
  return html`<div class="stack">
    <h3>${title} <span class="muted small">${size}</span></h3>
    ${found === undefined ? html`<p class="muted">${missing ?? "none"}</p>` : html`<pre class="text" data-content=${title.toLowerCase()}>${found.text}</pre>`}
  </div>`;
}

function optional(name: string, command: string | undefined): readonly (readonly [string, string])[] {
  return command === undefined ? [] : [[name, command]];
}

function facts({ spec, commands, task, isReading }: TaskDetail): View {
  const more: readonly (readonly [string, string | undefined])[] =
    spec === undefined
      ? [["Submission", isReading ? "being read from the journal" : "the journal no longer keeps it"]]
      : [
          ["Role", spec.role ?? "any"],
          ["Needs", spec.needs],
          ["Affinity", spec.affinity],
          ["Weight, priority", `${spec.weight}, ${spec.priority}`],
          ["Payload", bytes(spec.payloadBytes)],
          ["Timeout", duration(spec.timeoutMs)],
          ["Stall limit", spec.stallMs === undefined ? undefined : duration(spec.stallMs)],
          ["Not before", spec.notBeforeAt === undefined ? undefined : dateTime(spec.notBeforeAt)],
          ["Deadline", spec.deadlineAt === undefined ? undefined : dateTime(spec.deadlineAt)],
          ["Estimated tokens", spec.tokens === undefined ? undefined : whole(spec.tokens)],
        ];
  const shown: readonly (readonly [string, string])[] = [
    ["Its story", commands.show],
    ["Why", commands.explain],
    ["Its events", commands.events],
    ...optional("Cancel", commands.cancel),
    ...optional("Retry", commands.retry),
    ...optional("Revoke", commands.revoke),
    ...optional("Reschedule", commands.reschedule),
  ];
  return html`<div class="columns">
    <div class="card pad">
      <dl class="facts">
        <dt>Project</dt><dd>${task.project}</dd><dt>User</dt><dd>${task.user}</dd><dt>Kind</dt><dd>${task.kind}</dd>
        ${more.flatMap(([name, value]) => (value === undefined ? [] : [html`<dt key=${name}>${name}</dt><dd>${value}</dd>`]))}
        ${Object.entries(spec?.attributes ?? {}).map(([name, value]) => {
          const attribute = `${name}=${value}`;
          return html`<dt key=${`attribute ${name}`}>${name}</dt><dd><a href=${href(["tasks"], { attribute })}>${value}</a></dd>`;
        })}
      </dl>
    </div>
    <div class="card pad">
      <dl class="facts">${shown.map(([name, text]) => html`<dt key=${name}>${name}</dt><dd>${h(Command, { text })}</dd>`)}</dl>
    </div>
  </div>`;
}
