// `waggle serve synadia`: a kind of tasks as an agent of the Synadia Agent Protocol for NATS.

import { Command } from "commander";
import { EndpointCounts } from "../adapters/nats-service/micro-service.ts";
import { PromptServer } from "../adapters/synadia/prompt-server.ts";
import { serveAgent, tokenFor } from "../adapters/synadia/served-agent.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { openWire, type ServeFlags, untilInterrupted, withServeOptions } from "./serving.ts";
import { UsageError } from "./usage-error.ts";
import { kindName, subjectToken } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface SynadiaFlags extends ServeFlags {
  readonly kind?: string;
  readonly owner?: string;
  readonly name?: string;
}

export function serveSynadiaCommand(program: Program): Command {
  const command = new Command("synadia")
    .summary("be an agent of the Synadia Agent Protocol")
    .description(
      "Registers as an agent of the Synadia Agent Protocol for NATS 0.3, and answers each prompt with the result of a " +
        "task of --kind. Chunks of the result are sent as they come. Several may run.",
    )
    .option("--kind <kind>", "kind of the tasks; the prompt is the payload. Required", kindName)
    .option("--owner <owner>", "owner in the agent's subjects; default: the user", subjectToken)
    .option("--name <name>", "name in the agent's subjects; default: the kind", subjectToken);
  return withServeOptions(command, "then the task expires, and the answer ends with an error")
    .addHelpText("after", examples)
    .action((flags: SynadiaFlags, of: Command) =>
      runVerb(program, of, (context) => serveSynadia(context, flags), { logLevel: "info", logIsData: true }),
    );
}

const examples = `
The agent is called waggle. Its prompt subject is agents.prompt.waggle.<owner>.<name>. An error ends the
answer: 400 malformed prompt or invalid input, 404 no agent serves the kind, 429 a queue is full or a
budget is used up (with retry_after_s), 500 any other. Attachments are refused.

Ctrl-C once: takes no new prompts, and answers the open ones. Twice: ends at once.

Examples:
  $ waggle serve synadia --kind review --owner ann
  $ nats request agents.prompt.waggle.ann.review 'review the last commit' --wait-for-empty
  $ nats micro info agents`;

async function serveSynadia(context: VerbContext, flags: SynadiaFlags): Promise<ExitCode> {
  const { kind, timeout: timeoutMs } = flags;
  if (kind === undefined) throw new UsageError("--kind KIND is required; see waggle serve synadia --help");
  const { settings, logger, signal } = context;
  return await withSwarm(context, async (swarm) => {
    const id = systemRandom.id(16);
    const wire = await openWire(context, `waggle-serve-synadia-${id}`);
    const counts = new EndpointCounts();
    const server = new PromptServer({ swarm, kind, timeoutMs, counts, clock: systemClock });
    const agent = serveAgent({
      ...{ wire, clock: systemClock, id, version: packageVersion(), swarm: settings.swarm, kind, counts },
      owner: flags.owner ?? tokenFor(settings.user),
      name: flags.name ?? tokenFor(kind),
      onPrompt: (request) => server.take(request),
    });
    await wire.flush();
    logger.info(`serving ${kind} on ${agent.promptSubject}`);
    try {
      await untilInterrupted(signal, wire.closed, swarm.closed);
      logger.info("answering the open prompts (Ctrl-C again ends at once)");
      agent.stop();
      await server.idle();
    } finally {
      agent.stop();
      await wire.close();
    }
    const { num_requests: count, num_errors: errors } = counts.stats();
    logger.info(`answered ${count} prompts, ${errors} of them with an error`);
    return exitCodes.ok;
  });
}
