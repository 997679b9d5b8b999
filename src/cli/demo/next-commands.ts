// Commands to type after the demo: start your own swarm, and look at decisions of the demo.

import { commandName } from "../command-name.ts";
import type { VerbContext } from "../verb.ts";

export interface NextCommands {
  /** In the order to run. */
  readonly own: readonly string[];
  /** Commands on the demo's journal, in the order to run. */
  readonly look: readonly string[];
}

/** @param context settings of the user, not of the demo · @param task an interesting task of the demo */
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
