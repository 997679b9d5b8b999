// `waggle leader transfer`: transfers the lead to a standby, for maintenance of the leader's machine.

import { Command } from "commander";
import { duration } from "../audit/describe.ts";
import { WaggleError } from "../errors.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function leaderCommand(program: Program): Command {
  return new Command("leader")
    .description(
      "One coordinator of a swarm is the leader, and the others are standbys. With a journal in JetStream, " +
        "each further `waggle up` is a standby. `waggle status` shows the leader and the standbys. Before the " +
        "machine of the leader is shut down, transfer the leadership: clients and agents do not notice.",
    )
    .addCommand(transferCommand(program))
    .addHelpText("after", examples);
}

interface TransferFlags {
  readonly to?: string;
}

function transferCommand(program: Program): Command {
  return new Command("transfer")
    .summary("transfer the leadership to a standby")
    .description(
      "The leader finishes its open requests, steps down and becomes a standby. Another coordinator takes over " +
        "at once. No task is lost, and no attempt runs twice because of it. Exit code 5 if there is no standby, " +
        "or if the coordinator of --to does not answer; the leader then keeps the lead.",
    )
    .option("--to <id>", "id of the standby that becomes leader; default: any standby")
    .allowExcessArguments()
    .addHelpText("after", examples)
    .action((flags: TransferFlags, command: Command) =>
      runVerb(program, command, (context) => {
        refuseBareId(command.args[0]);
        return transfer(context, flags);
      }),
    );
}

/** Other verbs take ids as arguments. Here the id is a flag, because an argument would appear in the help of `leader`.
 */
function refuseBareId(id: string | undefined): void {
  if (id === undefined) return;
  throw new UsageError(`give the id of the next leader with --to: waggle leader transfer --to ${id}`);
}

const examples = `
Examples:
  $ waggle leader transfer
  $ waggle leader transfer --to db2-k3xw`;

async function transfer(context: VerbContext, { to }: TransferFlags): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const before = await ask(context, (options) => swarm.status(options));
    const startedMs = performance.now();
    const lead = await ask(context, (options) =>
      swarm.transferLead({ ...options, ...(to === undefined ? {} : { to }) }),
    );
    const tookMs = Math.round(performance.now() - startedMs);
    const { leader, term } = lead;
    const transferred = { leader, term, from: before.leader, to, tookMs };
    if (leader === before.leader && to !== leader)
      throw new WaggleError("WAGGLE_NO_STANDBY", notTransferredText(transferred));
    context.output.datum({ ...lead, from: before.leader, tookMs }, () => transferText(transferred));
    return exitCodes.ok;
  });
}

export interface Transferred {
  /** Leads now. */
  readonly leader: string;
  readonly term: number;
  /** Led before. */
  readonly from: string;
  /** The chosen standby; undefined: any standby. */
  readonly to?: string | undefined;
  readonly tookMs: number;
}

export function transferText({ leader, term, from, tookMs }: Transferred): string {
  if (leader === from) return `${leader} leads already`;
  return `${leader} leads in place of ${from} (term ${term}, after ${duration(tookMs)})`;
}

export function notTransferredText({ leader, to }: Pick<Transferred, "leader" | "to">): string {
  const silent = to === undefined ? "The chosen standby" : `${to}`;
  return `${leader} leads again: no standby took over. ${silent} did not answer: see its log; \`waggle status\` lists the standbys`;
}
