// The environment of a command that runs attempts. A task's text may reach the command's shell or a model's tools. So
// secrets of the agent's environment, such as NATS credentials, reach the command only by name.

/** Names that every command gets, besides `WAGGLE_…`. */
const ALWAYS = ["PATH", "HOME", "LANG", "TMPDIR"];

/** PATH, HOME, LANG, TMPDIR and `WAGGLE_…` of `env`, and the variables of the given names. */
export function execEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[] = [],
): Record<string, string> {
  const passed = new Set([...ALWAYS, ...names]);
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && (passed.has(entry[0]) || entry[0].startsWith("WAGGLE_")),
    ),
  );
}
