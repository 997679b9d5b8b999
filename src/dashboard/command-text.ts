// The command line that equals an action or a page, quoted for a POSIX shell, to copy. Durations are written as flags
// take them.

import type { Widened } from "../defined.ts";
import { DEFAULT_PROJECT } from "../ids.ts";
import type { ActionBodies, TaskFilter } from "./wire.ts";

/** `waggle cancel t1 --project acme`. @param parts undefined parts are left out */
export function commandOf(...parts: readonly (string | undefined)[]): string {
  return ["waggle", ...parts.filter((part) => part !== undefined).map(quoted)].join(" ");
}

export function taskCommand(
  verb: string,
  { task, project }: { readonly task: string; readonly project: string },
  ...more: readonly string[]
): string {
  const options = [...(project === DEFAULT_PROJECT ? [] : ["--project", project]), ...more];
  // an id may begin with a dash
  return task.startsWith("-") ? commandOf(verb, ...options, "--", task) : commandOf(verb, task, ...options);
}

export function tasksCommand(
  verb: string,
  tasks: readonly { readonly task: string; readonly project: string }[],
): string {
  const projects = [...new Set(tasks.map(({ project }) => project))];
  return projects
    .map((project) => {
      const ids = tasks.filter((each) => each.project === project).map(({ task }) => task);
      const options = project === DEFAULT_PROJECT ? [] : ["--project", project];
      const isPlain = ids.every((id) => !id.startsWith("-"));
      return isPlain ? commandOf(verb, ...ids, ...options) : commandOf(verb, ...options, "--", ...ids);
    })
    .join(" && ");
}

/** `waggle tasks --state failed,expired --kind count`. */
export function filterCommand(verb: string, filter: Widened<TaskFilter>, ...more: readonly string[]): string {
  const { state, kind, project, user, agent, attributes, olderThanMs } = filter;
  const flag = (name: string, values: readonly string[] | undefined) =>
    values === undefined ? [] : [`--${name}`, values.join(",")];
  return commandOf(
    verb,
    ...flag("state", state),
    ...flag("kind", kind),
    ...flag("project", project === undefined ? undefined : [project]),
    ...flag("user", user),
    ...flag("agent", agent),
    ...attributeFlags(attributes),
    ...(olderThanMs === undefined ? [] : ["--older-than", durationFlag(olderThanMs)]),
    ...more,
  );
}

function attributeFlags(attributes: Readonly<Record<string, string>> = {}): string[] {
  return Object.entries(attributes).flatMap(([name, value]) => ["--attribute", `${name}=${value}`]);
}

function needFlags(needs: ActionBodies["submit"]["task"]["needs"] = {}): string[] {
  return Object.entries(needs).flatMap(([label, values]) => ["--need", `${label}=${values}`]);
}

export function submitCommand({ task }: ActionBodies["submit"]): string {
  const { payload, encoding } = task;
  const flag = (name: string, value: string | number | undefined) =>
    value === undefined ? [] : [`--${name}`, String(value)];
  const time = (value: number | undefined) =>
    value === undefined ? undefined : new Date(value).toISOString();
  const duration = (value: number | undefined) => (value === undefined ? undefined : durationFlag(value));
  const command = commandOf(
    "submit",
    ...flag("kind", task.kind),
    ...flag("id", task.id),
    ...flag("project", task.project),
    ...flag("user", task.user),
    ...flag("role", task.role),
    ...needFlags(task.needs),
    ...flag("affinity", task.affinity),
    ...attributeFlags(task.attributes),
    ...flag("weight", task.weight),
    ...flag("priority", task.priority),
    ...flag("tokens", task.tokens),
    ...flag("deadline", time(task.deadlineAt)),
    ...flag("not-before", time(task.notBeforeAt)),
    ...flag("max-attempts", task.maxAttempts),
    ...flag("timeout", duration(task.timeoutMs)),
    ...flag("stall", duration(task.stallMs)),
    ...(payload === undefined || encoding !== undefined ? [] : ["--text", payload]),
  );
  // The command line reads bytes from a file or from standard input.
  if (payload === undefined || encoding === undefined) return command;
  return `printf %s ${quoted(payload)} | base64 -d | ${command} -`;
}

/** `1500ms`, `30s`, `2h`: exact. */
export function durationFlag(ms: number): string {
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ] as const;
  for (const [unit, length] of units) if (ms >= length && ms % length === 0) return `${ms / length}${unit}`;
  return `${ms}ms`;
}

function quoted(part: string): string {
  if (/^[\w@%+=:,./-]+$/.test(part)) return part;
  return `'${part.replaceAll("'", "'\\''")}'`;
}
