// Updates of a watched task: a line for people, a record for programs.

import { unreachable } from "../assert.ts";
import { describeReceipt, duration } from "../audit/describe.ts";
import type { TaskUpdate } from "../client/task-updates.ts";
import { formatShare, formatTime, hanging } from "./format.ts";
import { type Output, printable } from "./output.ts";

/** Leaves out the end, which is printed as the outcome. */
export function printUpdate(update: TaskUpdate, output: Output): void {
  if (update.type === "ended") return;
  output.datum({ ...update, type: "update", update: update.type }, () => {
    const place = "at" in update ? `${formatTime(update.at)}  ` : " ".repeat("14:03:22.250  ".length);
    const [first = "", ...further] = hanging(`${place}${sentence(update)}`, output.columns);
    return [`${output.colors.dim(place)}${first.slice(place.length)}`, ...further].join("\n");
  });
}

function sentence(update: Exclude<TaskUpdate, { type: "ended" }>): string {
  switch (update.type) {
    case "submitted":
      return "submitted";
    case "retried":
      return `retried: round ${update.round} begins`;
    case "assigned":
      return `#${update.attempt} → ${update.agent} · ${describeReceipt(update.receipt)}`;
    case "running":
      return `#${update.attempt} runs at ${update.agent}`;
    case "progress":
      return `#${update.attempt} ${update.fraction === undefined ? "in progress" : formatShare(update.fraction)} ${printable(update.message ?? "")}`.trimEnd();
    case "attempt-failed": {
      const next =
        update.retryAt === undefined
          ? "waits for an agent again"
          : `again in ${duration(update.retryAt - update.at)}`;
      return `#${update.attempt} ${update.class} at ${update.agent}: ${printable(update.error)}; ${next}`;
    }
    default:
      return unreachable(update);
  }
}
