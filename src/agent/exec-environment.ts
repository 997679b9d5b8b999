// The environment of a command that runs attempts. A task's text may reach the command's shell or a model's tools. So
// secrets of the agent's environment, such as NATS credentials, reach the command only by name.

/** Names that every command gets, besides `WAGGLE_…`. */
const ALWAYS = ["PATH", "HOME", "LANG", "TMPDIR"];
/** Whoever has it may change the swarm. */
const SECRET = "WAGGLE_DASHBOARD_TOKEN";

/** PATH, HOME, LANG, TMPDIR and `WAGGLE_…` of `env` but the dashboard's token, and the variables of the given names. */
export function execEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[] = [],
): Record<string, string> {
  const passed = new Set([...ALWAYS, ...names]);
  return Object.fromEntries(
    Object.entries(env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined &&
        (passed.has(entry[0]) || (entry[0].startsWith("WAGGLE_") && entry[0] !== SECRET)),
    ),
  );
}
