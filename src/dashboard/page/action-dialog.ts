// The confirmation of a change. First a dry run tells the effect and the equal command; a second click performs the
// change. An action on all matching tasks sends the confirmed count, and a different count changes nothing.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import { useEffect } from "preact/hooks";
import type { ActionAnswer, ActionBodies, ActionVerb, TaskFilter } from "../wire.ts";
import { messageOf } from "./api.ts";
import { type Dashboard, useDashboard } from "./context.ts";
import { counted } from "./format.ts";
import { Command } from "./ui/command.ts";
import { Dialog } from "./ui/dialog.ts";
import { html, type View } from "./ui/html.ts";
import { loading } from "./ui/states.ts";
import { taskBadge } from "./ui/tone.ts";

export interface Change<Verb extends ActionVerb = ActionVerb> {
  /** `Cancel task t1`. */
  readonly title: string;
  /** The consequence. */
  readonly note: string;
  readonly verb: Verb;
  /** Without `dryRun`; for all matching tasks: `{ filter }`. */
  readonly body: Omit<ActionBodies[Verb], "dryRun"> | { readonly filter: TaskFilter };
  /** Text of the button: `Cancel`. */
  readonly button: string;
  readonly isDangerous?: boolean;
  readonly done?: () => void;
}

export function ask<Verb extends ActionVerb>(
  { overlay }: Pick<Dashboard, "overlay">,
  change: Change<Verb>,
): void {
  overlay.value = (close) => h(ActionDialog, { change: change as unknown as Change, close });
}

interface ActionDialogProps {
  readonly change: Change;
  readonly close: () => void;
}

function ActionDialog({ change, close }: ActionDialogProps): View {
  const { api, notices, session } = useDashboard();
  const { verb, body, title, note, button, isDangerous, done } = change;
  const plan = useSignal<ActionAnswer | undefined>(undefined);
  const error = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);

  const run = async (more: object): Promise<ActionAnswer | undefined> => {
    isBusy.value = true;
    error.value = undefined;
    try {
      return await api.act(verb, { ...body, ...more } as ActionBodies[typeof verb]);
    } catch (thrown) {
      error.value = messageOf(thrown);
      return undefined;
    } finally {
      isBusy.value = false;
    }
  };
  const prepare = async () => {
    plan.value = await run({ dryRun: true });
  };
  // Once for each opened dialog.
  useEffect(() => void prepare(), []);
  const confirm = async () => {
    const answer = await run("filter" in body ? { expected: plan.peek()?.count ?? 0 } : {});
    if (answer === undefined) {
      if ("filter" in body) plan.value = undefined;
      return;
    }
    notices.say(answer.text, { isBad: !answer.ok });
    done?.();
    close();
  };

  const planned = plan.value;
  const refusal = session.refusals[verb];
  const isEmpty = planned !== undefined && planned.count === 0;
  return h(Dialog, {
    ...{ title, note, close },
    children: html`
      <div class="body">
        ${refusal !== undefined && refusalNote(refusal)}
        ${error.value !== undefined && html`<p class="error-text" role="alert">${error.value}</p>`}
        ${planned === undefined && error.value === undefined && loading("Asking what it would change")}
        ${planned !== undefined && planOf(planned)}
      </div>
      <footer>
        <button type="button" class="button" onClick=${close}>Keep as it is</button>
        ${
          planned === undefined && error.value !== undefined
            ? html`<button type="button" class="button primary" onClick=${prepare}>Look again</button>`
            : html`<button
                type="button"
                class=${`button ${isDangerous ? "danger" : "primary"}`}
                disabled=${planned === undefined || isEmpty || isBusy.value || refusal !== undefined}
                onClick=${confirm}
              >
                ${planned !== undefined && "filter" in body ? `${button} ${counted(planned.count, "task")}` : button}
              </button>`
        }
      </footer>
    `,
  });
}

/** The button below is disabled. */
export function refusalNote(refusal: string): View {
  return html`<p class="refusal" role="alert">${refusal.replace(/\.?$/, ".")}</p>`;
}

function planOf({ text, command, sample = [], count }: ActionAnswer): View {
  return html`
    <p class="break">${text}</p>
    ${
      sample.length > 0 &&
      html`<ul class="stack small">
        ${sample.slice(0, 6).map(
          ({ task, project, state }) => html`<li class="row" key=${`${project} ${task}`}>
            ${taskBadge(state)} <span class="break">${task}</span> <span class="muted">${project}</span>
          </li>`,
        )}
        ${count > 6 && html`<li class="muted">and ${counted(count - Math.min(6, sample.length), "other")}</li>`}
      </ul>`
    }
    <div class="stack"><span class="muted small">The same in a terminal</span>${h(Command, { text: command })}</div>
  `;
}
