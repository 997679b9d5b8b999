// Hints for a command that ends before the swarm has answered: tasks continue, or tasks may have been accepted, and
// the command to check.

import { WaitTimedOutError } from "../client/task-errors.ts";
import { counted } from "../count-text.ts";
import { withoutSecrets } from "../transport/server-address.ts";
import { printable } from "./output.ts";
import type { GlobalFlags, VerbContext } from "./verb.ts";

/** Maximum number of ids in a hint; for more ids it gives their number. */
const IDS_SHOWN_MAX = 20;

/** Prints the hint only if Ctrl-C or the time-out ended the wait. */
export function printContinuing(error: unknown, ids: Iterable<string>, context: VerbContext): void {
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

/** A hint about tasks without an answer: their possible state, and the command to check. */
export function printUnanswered(ids: readonly string[], { output, flags }: VerbContext): void {
  const [first] = ids;
  if (first === undefined) return;
  const check = ["waggle", "task", ids.length === 1 ? quoted(first) : "ID", ...placeFlags(flags)].join(" ");
  if (output.json) {
    output.note(JSON.stringify({ type: "unanswered", taskIds: ids, check: output.asStarted(check) }));
    return;
  }
  const named = shownIds(ids, printable).join(", ");
  output.note(
    ids.length === 1
      ? `no answer for task ${named}: accepted or not, unknown. Check with \`${check}\`. A repeated submit with --id ${named} does not run the task twice`
      : `no answer for ${counted(ids.length, "task")}: accepted or not, unknown. Check with \`${check}\`. A repeated submit with the same ids runs no task twice. Ids: ${named}`,
  );
}

/** The flags that select swarm and project, as given. Hints reach logs, so an address has no password. */
function placeFlags(flags: GlobalFlags): string[] {
  const named = [
    ["--nats", flags.nats && withoutSecrets(flags.nats)],
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
  const plain = flags.insecure === true ? ["--insecure"] : [];
  return [...named.flatMap(([flag, value]) => (value === undefined ? [] : [flag, quoted(value)])), ...plain];
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
