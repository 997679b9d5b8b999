// What to say when a wait ends before its tasks do: that they go on, and the command that waits again.

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
  return ids.length === 1 ? `task ${printable(only ?? "")} goes on` : `${counted(ids.length, "task")} go on`;
}

function waitAgain(ids: readonly string[], { flags }: VerbContext): string {
  const shown = ids.slice(0, IDS_SHOWN_MAX).map(quoted);
  return ["waggle", "wait", ...shown, ...(ids.length > shown.length ? ["…"] : []), ...placeFlags(flags)].join(
    " ",
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
