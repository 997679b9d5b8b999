// The form for a new task, or for a copy of a task.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import type { ActionBodies } from "../wire.ts";
import { refusalNote } from "./action-dialog.ts";
import { ApiFailure, messageOf } from "./api.ts";
import { type Dashboard, useDashboard } from "./context.ts";
import { href } from "./router.ts";
import { Command } from "./ui/command.ts";
import { Dialog } from "./ui/dialog.ts";
import { html, type View } from "./ui/html.ts";

type NewTask = ActionBodies["submit"]["task"];

export function openSubmit({ overlay }: Pick<Dashboard, "overlay">, task: Partial<NewTask>): void {
  overlay.value = (close) => h(SubmitDialog, { task, close });
}

type Fields = { readonly [Name in keyof NewTask]?: string };

const numeric = ["weight", "priority", "tokens", "maxAttempts", "timeoutMs"] as const;

interface SubmitDialogProps {
  readonly task: Partial<NewTask>;
  readonly close: () => void;
}

function SubmitDialog({ task, close }: SubmitDialogProps): View {
  const { api, notices, router, session } = useDashboard();
  const fields = useSignal<Fields>(
    Object.fromEntries(Object.entries(task).map(([name, value]) => [name, String(value)])),
  );
  const error = useSignal<ApiFailure | undefined>(undefined);
  const command = useSignal<string | undefined>(undefined);
  const isBusy = useSignal(false);
  const refusal = session.refusals.submit;

  const send = async (isDryRun: boolean) => {
    isBusy.value = true;
    error.value = undefined;
    try {
      const answer = await api.act("submit", {
        task: taskOf(fields.peek()),
        ...(isDryRun ? { dryRun: true } : {}),
      });
      if (isDryRun) {
        command.value = answer.command;
        return;
      }
      notices.say(answer.text, { isBad: !answer.ok });
      close();
      const [result] = answer.results ?? [];
      if (result?.ok)
        router.go(href(["tasks", result.project ?? fields.peek().project ?? session.project, result.task]));
    } catch (thrown) {
      error.value =
        thrown instanceof ApiFailure
          ? thrown
          : new ApiFailure({ code: "WAGGLE_ERROR", message: messageOf(thrown) });
    } finally {
      isBusy.value = false;
    }
  };
  const input = (name: keyof NewTask, label: string, hint: string, type = "text") => html`<label>
    ${label}
    <input
      name=${name}
      type=${type}
      value=${fields.value[name] ?? ""}
      onInput=${(event: InputEvent) => {
        fields.value = { ...fields.peek(), [name]: (event.target as HTMLInputElement).value };
        command.value = undefined;
      }}
    />
    <small class=${isWrong(error.value, name) ? "error-text" : ""}>${isWrong(error.value, name) ? wrongText(error.value) : hint}</small>
  </label>`;
  const submit = (event: Event) => {
    event.preventDefault();
    void send(false);
  };

  return h(Dialog, {
    ...{ title: task.kind === undefined ? "New task" : "Copy of a task", close },
    note: "Only the kind is required",
    children: html`<form onSubmit=${submit} novalidate>
      <div class="body">
        ${refusal !== undefined && refusalNote(refusal)}
        <div class="form">
          ${input("kind", "Kind", "which agents may run it")}
          ${input("project", "Project", `default ${session.project}`)}
          <label class="all">
            Payload
            <textarea
              name="payload"
              class="mono"
              onInput=${(event: InputEvent) => {
                fields.value = { ...fields.peek(), payload: (event.target as HTMLTextAreaElement).value };
                command.value = undefined;
              }}
              value=${fields.value.payload ?? ""}
            ></textarea>
            <small>text for the agent, at most 256 KiB</small>
          </label>
          ${input("user", "User", session.user === undefined ? "whose turn it uses" : `default ${session.user}`)}
          ${input("id", "Id", "the same id and content is the same task")}
        </div>
        <details>
          <summary>More</summary>
          <div class="form section">
            ${input("role", "Role", "only agents of this role")}
            ${input("priority", "Priority", "lower runs first; default 100", "number")}
            ${input("weight", "Weight", "cost of the task; default 1", "number")}
            ${input("tokens", "Tokens", "estimate, for budgets", "number")}
            ${input("maxAttempts", "Attempts", "at most", "number")}
            ${input("timeoutMs", "Timeout", "of one attempt, ms", "number")}
          </div>
        </details>
        ${
          error.value !== undefined &&
          !Object.keys(fields.value)
            .concat("kind")
            .some((name) => isWrong(error.value, name)) &&
          html`<p class="error-text" role="alert">${error.value.message}</p>`
        }
        ${command.value !== undefined && h(Command, { text: command.value })}
      </div>
      <footer>
        <button type="button" class="button quiet" disabled=${isBusy.value} onClick=${() => void send(true)}>Show the command</button>
        <button type="button" class="button" onClick=${close}>Close</button>
        <button type="submit" class="button primary" disabled=${isBusy.value || refusal !== undefined}>Submit</button>
      </footer>
    </form>`,
  });
}

/** Without the path of the field, which stands above the text. */
function wrongText(error: ApiFailure | undefined): string {
  const { message = "", field = "" } = error ?? {};
  return message.startsWith(`${field}: `) ? message.slice(field.length + 2) : message;
}

function isWrong(error: ApiFailure | undefined, name: string): boolean {
  return error?.field !== undefined && error.field.split(".").at(-1) === name;
}

function taskOf(fields: Fields): NewTask {
  const given = Object.entries(fields).filter(([, value]) => value !== "");
  const read = given.map(([name, value]) => [
    name,
    (numeric as readonly string[]).includes(name) ? Number(value) : value,
  ]);
  return { kind: "", ...Object.fromEntries(read) };
}
