// `waggle bridge`: agents of another protocol as agents of the swarm. `bridge synadia`: the agents of the Synadia Agent
// Protocol for NATS, such as sessions of Claude Code, Codex, OpenCode and Pi with a channel for it.

import { Command, Option } from "commander";
import { agentIdFor } from "../adapters/synadia/agent-id.ts";
import { SynadiaBridge } from "../adapters/synadia/bridge.ts";
import { decideBy, denyAll } from "../adapters/synadia/decision.ts";
import { findAgents } from "../adapters/synadia/find-agents.ts";
import type { ForeignAgent } from "../adapters/synadia/messages.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { limits } from "../limits.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { openWire, untilInterrupted } from "./serving.ts";
import { durationBetween } from "./setting-flags.ts";
import { type Column, renderTable } from "./table.ts";
import { nameList, subjectToken } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface SynadiaFlags {
  readonly agent?: readonly string[];
  readonly owner?: readonly string[];
  readonly group?: string;
  readonly decide?: string;
  readonly idleTimeout: number;
  readonly list?: boolean;
}

export function bridgeCommand(program: Program): Command {
  const synadia = new Command("synadia")
    .summary("adopt the agents of the Synadia Agent Protocol")
    .description(
      "Finds the agents of the Synadia Agent Protocol for NATS 0.3 on the server, and joins each to the swarm. Each " +
        "runs one task at a time, of the kinds prompt and prompt.<agent>. The payload is the prompt, the answer the result.",
    )
    .option(
      "--agent <names>",
      "only agents of the named harnesses, such as claude-code, separated by commas",
      nameList,
    )
    .option("--owner <names>", "only agents of these owners, separated by commas", nameList)
    .option(
      "--group <group>",
      "group of the joined agents, which share a credential: subjects are agent.<group>.<id>.…; default none",
      subjectToken,
    )
    .option(
      "--decide <command>",
      "command that answers an agent's questions, through sh -c: the question on standard input, the answer on " +
        "standard output. Default: the answer is no",
    )
    .addOption(
      new Option(
        "--idle-timeout <duration>",
        "maximum silence of an agent during a prompt; then the attempt fails",
      )
        .argParser(durationBetween(1, limits.attemptTimeoutMsMax))
        .default(limits.promptIdleMs, "60s"),
    )
    .option("--list", "print the agents that answer now and would be adopted, and end")
    .addHelpText("after", examples)
    .action((flags: SynadiaFlags, command: Command) =>
      runVerb(program, command, (context) => bridgeSynadia(context, flags), {
        logLevel: "info",
        logIsData: flags.list !== true,
      }),
    );
  return new Command("bridge")
    .description("Joins agents of another protocol to the swarm.")
    .addHelpText("after", "\nExamples:\n  $ waggle bridge synadia --owner ann")
    .addCommand(synadia);
}

const examples = `
The agents must be in the NATS account of the swarm. Their ids are synadia-<agent>-<owner>-<session>. An
agent that misses three heartbeats drains, and joins again with the next one.

Error 429: the agent is on hold, for retry_after_s if given. 409 and no listener: the task runs again
without counting the attempt. Other 4xx: invalid input. 5xx, and silence: the attempt has failed, because
a prompt may have changed files. The protocol has no cancel: an aborted prompt keeps the agent busy until
its answer ends, or for --idle-timeout.

Ctrl-C once: the agents finish their prompts and leave. Twice: ends at once.

Examples:
  $ waggle bridge synadia --list
  $ waggle bridge synadia --owner ann --decide 'grep -q "^Read " && echo yes'
  $ waggle submit --kind prompt.claude-code --text 'summarize the open issues' --wait --stream`;

async function bridgeSynadia(context: VerbContext, flags: SynadiaFlags): Promise<ExitCode> {
  const isWanted = wantedBy(flags);
  const { settings, logger, signal } = context;
  if (flags.list === true) return await listAgents(context, isWanted);
  return await withSwarm(context, async (swarm) => {
    const wire = await openWire(context, `waggle-bridge-synadia-${systemRandom.id(8)}`);
    const bridge = new SynadiaBridge({
      ...{ wire, clock: systemClock, logger, swarm: settings.swarm, isWanted },
      join: (options) =>
        swarm.agent({ ...options, ...(flags.group === undefined ? {} : { group: flags.group }) }),
      idleMs: flags.idleTimeout,
      decide: flags.decide === undefined ? denyAll : decideBy(flags.decide),
    });
    try {
      bridge.start();
      await Promise.race([wire.flush(), bridge.failed]);
      logger.info("looking for agents of the Synadia Agent Protocol");
      await Promise.race([untilInterrupted(signal, wire.closed, swarm.closed), bridge.failed]);
      logger.info("the agents finish their prompts and leave (Ctrl-C again ends at once)");
      await bridge.stop();
    } finally {
      await wire.close();
    }
    return exitCodes.ok;
  });
}

function wantedBy({ agent: agents, owner: owners }: SynadiaFlags): (agent: ForeignAgent) => boolean {
  return ({ agent, owner }) => (agents?.includes(agent) ?? true) && (owners?.includes(owner) ?? true);
}

/** @param foreign answers from outside of the swarm */
function whyNone(answers: number, foreign: number): string {
  if (answers === 0) return "no agent of the Synadia Agent Protocol has answered";
  return foreign === 0
    ? "only served kinds of this swarm have answered, and they are not adopted"
    : "agents have answered, and none is of the given --agent and --owner";
}

const columns: readonly Column[] = [
  { head: "ID", whenNarrow: "whole" },
  { head: "AGENT" },
  { head: "OWNER" },
  { head: "SESSION" },
  { head: "PROMPT SUBJECT" },
  { head: "INSTANCE", whenNarrow: "drop" },
];

async function listAgents(
  context: VerbContext,
  isWanted: (agent: ForeignAgent) => boolean,
): Promise<ExitCode> {
  const { output, logger, settings } = context;
  const wire = await openWire(context, `waggle-bridge-list-${systemRandom.id(8)}`);
  try {
    const found = await findAgents(wire, systemClock);
    for (const why of found.leftOut) logger.warn(`an agent is left out: ${why}`);
    const foreign = found.agents.filter(({ swarm }) => swarm !== settings.swarm);
    const rows = foreign.filter(isWanted).map((agent) => ({
      ...{ id: agentIdFor(agent, new Set()), agent: agent.agent, owner: agent.owner, session: agent.session },
      ...{ subject: agent.promptSubject, instance: agent.instance },
    }));
    if (output.json) for (const row of rows) output.datum(row, () => "");
    else if (rows.length === 0) output.note(whyNone(found.agents.length, foreign.length));
    else
      output.raw(
        renderTable(
          output,
          columns,
          rows.map((row) => Object.values(row)),
        ),
      );
    return exitCodes.ok;
  } finally {
    await wire.close();
  }
}
