// Pauses and resumes the swarm, or a project: no task is assigned meanwhile, and running tasks go on.

import { ask } from "./action-dialog.ts";
import { useDashboard } from "./context.ts";
import { html, type View } from "./ui/html.ts";

export interface PauseButtonProps {
  /** Absent: the whole swarm. */
  readonly project?: string;
  readonly isPaused: boolean;
}

export function PauseButton({ project, isPaused }: PauseButtonProps): View {
  const dashboard = useDashboard();
  if (dashboard.session.isReadOnly) return null;
  const of = project === undefined ? "the swarm" : `project ${project}`;
  const body = project === undefined ? {} : { project };
  const open = () =>
    isPaused
      ? ask(dashboard, {
          ...{ title: `Resume ${of}`, verb: "resume", body, button: "Resume" },
          note: "Its waiting tasks are assigned again.",
        })
      : ask(dashboard, {
          ...{ title: `Pause ${of}`, verb: "pause", body, button: "Pause", isDangerous: true },
          note: "No task is assigned until a resume. Running tasks go on, and new tasks are accepted.",
        });
  return html`<button type="button" class="button" onClick=${open}>${isPaused ? "Resume…" : "Pause…"}</button>`;
}
