// Asks for the earliest start of a task.

import { useSignal } from "@preact/signals";
import { h } from "preact";
import { ask } from "./action-dialog.ts";
import { type Dashboard, useDashboard } from "./context.ts";
import { dateTime } from "./format.ts";
import { Dialog } from "./ui/dialog.ts";
import { html, type View } from "./ui/html.ts";

export interface NamedTask {
  readonly task: string;
  readonly project: string;
}

export function openReschedule({ overlay }: Pick<Dashboard, "overlay">, named: NamedTask): void {
  overlay.value = (close) => h(RescheduleDialog, { named, close });
}

function RescheduleDialog({ named, close }: { readonly named: NamedTask; readonly close: () => void }): View {
  const dashboard = useDashboard();
  const chosen = useSignal(localText(Date.now()));
  const go = (event: Event) => {
    event.preventDefault();
    const notBeforeAt = new Date(chosen.peek()).getTime();
    if (Number.isNaN(notBeforeAt)) return;
    ask(dashboard, {
      ...{
        title: `Reschedule ${named.task}`,
        verb: "reschedule",
        body: { ...named, notBeforeAt },
        button: "Reschedule",
      },
      note: `It starts no earlier than ${dateTime(notBeforeAt)}.`,
    });
  };
  return h(Dialog, {
    ...{ title: `Reschedule ${named.task}`, note: "The earliest start, in your time zone", close },
    children: html`<form onSubmit=${go}>
      <div class="body">
        <input
          type="datetime-local"
          aria-label="Not before"
          step="1"
          value=${chosen.value}
          onInput=${(event: InputEvent) => (chosen.value = (event.target as HTMLInputElement).value)}
        />
      </div>
      <footer>
        <button type="button" class="button" onClick=${close}>Close</button>
        <button type="submit" class="button primary">Go on</button>
      </footer>
    </form>`,
  });
}

/** In the format of the field: `2026-11-27T14:03:07`, in the reader's zone. */
function localText(at: number): string {
  const offset = new Date(at).getTimezoneOffset() * 60_000;
  return new Date(at - offset).toISOString().slice(0, 19);
}
