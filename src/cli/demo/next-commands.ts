// What to type after the demo. Each works as it stands, on the same broker, swarm and journal.

import { commandName } from "../command-name.ts";
import type { VerbContext } from "../verb.ts";
import type { EndedTask } from "./asking.ts";

export interface DemoEnding {
  readonly ended: readonly EndedTask[];
  /** Whether a broker of the data folder outlives the demo. */
  readonly goesOn: boolean;
}

/** In the order in which they work: a coordinator first, then what needs one. */
export function nextCommands(
  { shell, settings, flags }: VerbContext,
  { ended, goesOn }: DemoEnding,
): string[] {
  const waggle = commandName(shell);
  const where = [
    settings.swarm === "default" ? "" : ` --swarm ${settings.swarm}`,
    flags.dataFolder === undefined ? "" : ` --data-folder ${flags.dataFolder}`,
    flags.config === undefined ? "" : ` --config ${flags.config}`,
  ].join("");
  const retried = ended.find(({ outcome }) => outcome.attempts > 1) ?? ended[0];
  return [
    `${waggle} up${where}`,
    `${waggle} agent${where} --kind count --exec 'wc -w' --max-concurrent 4`,
    `${waggle} submit${where} --kind count --text 'how many words are these' --wait`,
    `${waggle} task${where} ${retried?.task.id ?? ""}`,
    `${waggle} events${where} --type AttemptFailed`,
    `${waggle} status${where} --watch`,
    ...(goesOn ? [`${waggle} down${where}`] : []),
  ];
}
