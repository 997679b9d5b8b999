// Events as rows of the page: one line of text each, without payloads and results.

import { describe } from "../audit/describe.ts";
import { agentOf, taskOf } from "../audit/filter.ts";
import type { JournaledEvent } from "../audit/journaled-event.ts";
import { projectOf } from "../core/effect.ts";
import { defined } from "../defined.ts";
import { NO_PROJECT, taskKey } from "../ids.ts";
import type { EventFilter } from "./requests.ts";
import type { EventRow } from "./wire.ts";

/** A row, and the kind of its task if known. */
export interface KnownRow {
  readonly row: EventRow;
  readonly kind: string | undefined;
}

export function rowOf(
  { idx, term, at, event, isChanged }: JournaledEvent,
  kindOf: (key: string) => string | undefined,
): KnownRow {
  const project = projectOf(event);
  const task = taskOf(event);
  const text = describe(event);
  const key = task === undefined ? undefined : taskKey({ project, task });
  return {
    row: {
      ...{ id: `${idx}.${hashOf(`${event.type} ${text}`)}`, idx, term, at, type: event.type, text },
      ...defined({
        project: project === NO_PROJECT ? undefined : project,
        task,
        agent: agentOf(event),
        isChanged,
      }),
    },
    kind: kindIn(event) ?? (key === undefined ? undefined : kindOf(key)),
  };
}

/** Events without a decision are shown only by request. An idle leader renews its term each second. Each agent confirms
 *  new assignments by a heartbeat. Confirmations are shown if the filter names an agent. */
export function isWanted({ row, kind }: KnownRow, filter: EventFilter): boolean {
  const { types, task, agent, project, text } = filter;
  const isRoutine =
    row.type === "TermRenewed" || (row.type === "AssignmentsConfirmed" && agent === undefined);
  if (types === undefined ? isRoutine : !types.includes(row.type)) return false;
  if (task !== undefined && row.task !== task) return false;
  if (agent !== undefined && row.agent !== agent) return false;
  if (project !== undefined && row.project !== project) return false;
  if (filter.kind !== undefined && kind !== filter.kind) return false;
  return text === undefined || row.text.toLowerCase().includes(text.toLowerCase());
}

function kindIn(event: JournaledEvent["event"]): string | undefined {
  if (event.type === "TaskSubmitted" || event.type === "TaskRetried") return event.task.kind;
  return "kind" in event ? event.kind : undefined;
}

/** FNV-1a, 32 bits: tells the events of one batch apart, the same wherever the batch was read. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}
