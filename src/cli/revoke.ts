// `waggle revoke`: takes running attempts from their agents.

import { Command } from "commander";
import { revocableStates } from "../client/revokes.ts";
import { addBulkFlags, type BulkFlags, type BulkRequest, touch } from "./bulk.ts";
import type { ExitCode } from "./exit-code.ts";
import { plainNames } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function revokeCommand(program: Program): Command {
  const command = new Command("revoke")
    .description(
      "Takes the running attempt of tasks from their agents, which are notified to stop. The task goes back to its " +
        "queue; another agent is preferred. The attempt counts against the task's maximum number of attempts, not " +
        "against the agent. Give ids, or filters. With filters it asks for the number of tasks to confirm.",
    )
    .argument("[ids...]", "ids of tasks", plainNames);
  return addBulkFlags(command, revocableStates)
    .addHelpText("after", examples)
    .action((ids: string[], flags: BulkFlags, command: Command) =>
      runVerb(program, command, (context) => revoke(context, { ids, flags, command })),
    );
}

const examples = `
Prints each task with its state: queued, or dead-lettered if that was its last attempt. The agent's capacity stays
occupied until the agent confirms that the attempt has stopped. A task that is not running is refused.

Examples:
  $ waggle revoke t1
  $ waggle revoke --agent a7 --dry-run
  $ waggle revoke --state running --kind summarize --older-than 1h --yes`;

async function revoke(context: VerbContext, request: BulkRequest): Promise<ExitCode> {
  return await touch(context, request, (swarm) => ({
    name: "revoke",
    states: revocableStates,
    touch: async (tasks, asked) =>
      (await swarm.revoke(tasks, asked)).map((each) =>
        each.ok ? { ...each, text: revokedText(each) } : each,
      ),
  }));
}

function revokedText({
  attempt,
  revoked,
  state,
}: {
  readonly attempt: number;
  readonly revoked: boolean;
  readonly state: string;
}): string {
  return revoked ? `attempt ${attempt} revoked; ${state}` : `attempt ${attempt} had ended before; ${state}`;
}
