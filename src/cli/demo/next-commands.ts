// What to type after the demo: a swarm of one's own, and a look at what the demo decided.

import { commandName } from "../command-name.ts";
import type { VerbContext } from "../verb.ts";

export interface NextCommands {
  /** In the order in which they work. */
  readonly own: readonly string[];
  /** On the demo's journal, in the order in which they work. */
  readonly look: readonly string[];
}

/** @param context as the user gave it, not the demo's own settings · @param task of which there is something to see */
export function nextCommands(
  { shell, settings, flags }: VerbContext,
  demo: { readonly dataFolder: string; readonly swarm: string; readonly task: string | undefined },
): NextCommands {
  const waggle = commandName(shell);
  const own = [
    flags.swarm === undefined ? "" : ` --swarm ${settings.swarm}`,
    flags.dataFolder === undefined ? "" : ` --data-folder ${flags.dataFolder}`,
    flags.config === undefined ? "" : ` --config ${flags.config}`,
  ].join("");
  const look = ` --swarm ${demo.swarm} --data-folder ${demo.dataFolder}`;
  return {
    own: [
      `${waggle} up${own}`,
      `${waggle} agent${own} --kind count --exec 'wc -w'`,
      `${waggle} submit${own} --kind count --text 'how many words are these' --wait`,
    ],
    look: demo.task === undefined ? [] : [`${waggle} up${look}`, `${waggle} task ${demo.task}${look}`],
  };
}
