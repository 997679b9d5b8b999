// `waggle serve nats`: a kind of tasks as a NATS service, by request and reply.

import { Command } from "commander";
import { EndpointCounts, MicroService } from "../adapters/nats-service/micro-service.ts";
import { KindServer } from "../adapters/nats-service/serve-kind.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { isServiceSubject } from "../protocol/service-permissions.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { openWire, type ServeFlags, untilInterrupted, withServeOptions } from "./serving.ts";
import { UsageError } from "./usage-error.ts";
import { kindName, subjectToken } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface NatsFlags extends ServeFlags {
  readonly kind?: string;
  readonly subject?: string;
  readonly queue: string;
  readonly name?: string;
}

export function serveNatsCommand(program: Program): Command {
  const command = new Command("nats")
    .summary("answer NATS requests with results of tasks")
    .description(
      "Answers each request on --subject with the result of a task of --kind, whose payload is the request. Joins a " +
        "queue group, so several may run. `nats micro ls` and similar tools find the service.",
    )
    .option("--kind <kind>", "kind of the tasks. Required", kindName)
    .option("--subject <subject>", "subject of the requests; may have wildcards. Required")
    .option("--queue <group>", "queue group: each request goes to one member", subjectToken, "q")
    .option("--name <name>", "name of the service; default waggle-<kind>", subjectToken);
  return withServeOptions(command, "then the task expires, and the reply is the error 504")
    .addHelpText("after", examples)
    .action((flags: NatsFlags, of: Command) =>
      runVerb(program, of, (context) => serveNats(context, flags), { logLevel: "info", logIsData: true }),
    );
}

const examples = `
The reply is the result, with the header Waggle-Task: the task's id. An error is an empty reply with the
headers Nats-Service-Error and Nats-Service-Error-Code: 400 invalid input, 404 no agent serves the kind,
429 a queue is full or a budget is used up (with Retry-After, in seconds), 503 no leader, 504 time-out,
500 any other.

A request with the header Waggle-Stream: 1 gets chunks of the result as replies before the last one, with
the headers Waggle-Chunk (from 0) and Waggle-Attempt. A new attempt voids the chunks before it. The last reply
has the whole result, and no Waggle-Chunk.

Ctrl-C once: takes no new requests, and answers the open ones. Twice: ends at once.

Examples:
  $ waggle serve nats --kind count --subject svc.count
  $ nats request svc.count 'how many words'
  $ nats request svc.count 'how many words' -H Waggle-Stream:1 --replies 0 --timeout 10s
  $ waggle serve nats --kind review --subject 'review.*' --project acme --user bot --timeout 30s`;

async function serveNats(context: VerbContext, flags: NatsFlags): Promise<ExitCode> {
  const { kind, subject, queue, timeout: timeoutMs } = flags;
  if (kind === undefined || subject === undefined)
    throw new UsageError("--kind KIND and --subject SUBJECT are required; see waggle serve nats --help");
  checkSubject(subject);
  const { settings, logger, signal } = context;
  return await withSwarm(context, async (swarm) => {
    const id = systemRandom.id(16);
    const wire = await openWire(context, `waggle-serve-${kind}-${id}`);
    const counts = new EndpointCounts();
    const server = new KindServer({ swarm, kind, timeoutMs, counts, clock: systemClock });
    const requests = wire.serve(subject, queue, (request) => server.take(request));
    const service = new MicroService({
      ...{ wire, clock: systemClock, id, version: packageVersion() },
      name: flags.name ?? `waggle-${kind.replace(/[^A-Za-z0-9_-]+/g, "-")}`,
      description: `Tasks of kind ${kind} of the swarm ${settings.swarm}`,
      metadata: { swarm: settings.swarm, kind },
      endpoints: () => [{ name: "run", subject, queueGroup: queue, counts }],
    });
    await wire.flush();
    logger.info(`serving ${kind} on ${subject}, in the queue group ${queue}`);
    try {
      await untilInterrupted(signal, wire.closed, swarm.closed);
      logger.info("answering the open requests (Ctrl-C again ends at once)");
      requests.unsubscribe();
      await server.idle();
    } finally {
      service.stop();
      await wire.close();
    }
    const { num_requests: count, num_errors: errors } = counts.stats();
    logger.info(`answered ${count} requests, ${errors} of them with an error`);
    return exitCodes.ok;
  });
}

/** A service on the swarm's own subjects would answer in place of the leader. */
function checkSubject(subject: string): void {
  if (!isServiceSubject(subject))
    throw new UsageError(
      `--subject ${subject} is no subject, or reaches subjects of NATS or of the swarm: choose one such as svc.count`,
      { field: "--subject" },
    );
}
