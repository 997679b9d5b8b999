// What to say when a command ends before the swarm has told all: tasks go on, or tasks may have been accepted, and the
// command that tells.

import { WaitTimedOutError } from "../client/task-errors.ts";
import { counted } from "./format.ts";
import { printable } from "./output.ts";
import type { GlobalFlags, VerbContext } from "./verb.ts";

/** Ids that a command line names; more are told by their number. */
const IDS_SHOWN_MAX = 20;

/** Nothing where the wait ended otherwise than by Ctrl-C or its own time-out. */
export function tellGoingOn(error: unknown, ids: Iterable<string>, context: VerbContext): void {
  const { output, signal } = context;
  if (!signal.aborted && !(error instanceof WaitTimedOutError)) return;
  const open = [...ids];
  if (open.length === 0) return;
  const again = waitAgain(open, context);
  if (output.json)
    output.note(JSON.stringify({ type: "going-on", taskIds: open, again: output.asStarted(again) }));
  else output.note(`${goingOnText(open)}. To wait again: ${again}`);
}

function goingOnText(ids: readonly string[]): string {
  const [only] = ids;
  return ids.length === 1
    ? `task ${printable(only ?? "")} continues`
    : `${counted(ids.length, "task")} continue`;
}

function waitAgain(ids: readonly string[], { flags }: VerbContext): string {
  return ["waggle", "wait", ...shownIds(ids, quoted), ...placeFlags(flags)].join(" ");
}

function shownIds(ids: readonly string[], written: (id: string) => string): string[] {
  return [...ids.slice(0, IDS_SHOWN_MAX).map(written), ...(ids.length > IDS_SHOWN_MAX ? ["…"] : [])];
}

/** Of tasks that were sent and have no answer: what is known of them, and how to learn more. */
export function tellUnanswered(ids: readonly string[], { output, flags }: VerbContext): void {
  const [first] = ids;
  if (first === undefined) return;
  const tell = ["waggle", "task", ids.length === 1 ? quoted(first) : "ID", ...placeFlags(flags)].join(" ");
  if (output.json) {
    output.note(JSON.stringify({ type: "unanswered", taskIds: ids, tell: output.asStarted(tell) }));
    return;
  }
  const named = shownIds(ids, printable).join(", ");
  output.note(
    ids.length === 1
      ? `no answer for task ${named}: accepted or not, unknown. Check with \`${tell}\`. A repeated submit with --id ${named} does not run the task twice`
      : `no answer for ${counted(ids.length, "task")}: accepted or not, unknown. Check with \`${tell}\`. A repeated submit with the same ids runs no task twice. Ids: ${named}`,
  );
}

/** The flags that say which swarm and project the tasks are in, as they were given. */
function placeFlags(flags: GlobalFlags): string[] {
  const named = [
    ["--nats", flags.nats],
    ["--nats-context", flags.natsContext],
    ["--creds", flags.creds],
    ["--nkey", flags.nkey],
    ["--tls-ca", flags.tlsCa],
    ["--tls-cert", flags.tlsCert],
    ["--tls-key", flags.tlsKey],
    ["--inbox-prefix", flags.inboxPrefix],
    ["--swarm", flags.swarm],
    ["--data-folder", flags.dataFolder],
    ["--config", flags.config],
    ["--project", flags.project],
  ] as const;
  return named.flatMap(([flag, value]) => (value === undefined ? [] : [flag, quoted(value)]));
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
