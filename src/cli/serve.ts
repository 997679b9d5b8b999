// `waggle serve`: kinds of tasks as services of another protocol. `serve nats`: a NATS service, by request and reply.

import { Command } from "commander";
import { EndpointCounts, MicroService } from "../adapters/nats-service/micro-service.ts";
import { openRequestWire } from "../adapters/nats-service/nats.ts";
import { KindServer } from "../adapters/nats-service/serve-kind.ts";
import { findBroker } from "../broker/find-broker.ts";
import { systemClock, systemRandom } from "../clock.ts";
import { UnreachableError } from "../errors.ts";
import { limits } from "../limits.ts";
import { logServerError } from "../transport/server-error.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { durationBetween } from "./setting-flags.ts";
import { UsageError } from "./usage-error.ts";
import { kindName, subjectToken } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface NatsFlags {
  readonly kind?: string;
  readonly subject?: string;
  readonly queue: string;
  readonly name?: string;
  readonly timeout: number;
}

export function serveCommand(program: Program): Command {
  const nats = new Command("nats")
    .summary("answer NATS requests with results of tasks")
    .description(
      "Answers each request on --subject with the result of a task of --kind, whose payload is the request. Joins a " +
        "queue group, so start as many as you like. Is found by `nats micro ls` and similar tools.",
    )
    .option("--kind <kind>", "kind of the tasks. Required", kindName)
    .option("--subject <subject>", "subject of the requests; may have wildcards. Required")
    .option("--queue <group>", "queue group: each request goes to one member", subjectToken, "q")
    .option("--name <name>", "name of the service; default waggle-<kind>", subjectToken)
    .option(
      "--timeout <duration>",
      "longest time from the request to the reply; then the task expires, and the reply is the error 504. Default 5m",
      durationBetween(1, limits.attemptTimeoutMsMax),
      limits.servedTimeoutMs,
    )
    .option("--project <name>", "project of the tasks (WAGGLE_PROJECT; default: default)")
    .option("--user <name>", "user of the tasks (WAGGLE_USER; default: the account's name)")
    .addHelpText("after", examples)
    .action((flags: NatsFlags, command: Command) =>
      runVerb(program, command, (context) => serveNats(context, flags), {
        logLevel: "info",
        logIsData: true,
      }),
    );
  return new Command("serve")
    .summary("serve a kind of tasks over another protocol")
    .description("Serves a kind of tasks as a service of another protocol.")
    .addHelpText("after", serveExamples)
    .addCommand(nats);
}

const serveExamples = `
Examples:
  $ waggle serve nats --kind count --subject svc.count`;

const examples = `
The reply is the result, with the header Waggle-Task: the task's id. An error is an empty reply with the
headers Nats-Service-Error and Nats-Service-Error-Code: 400 invalid input, 404 no agent serves the kind,
429 a queue is full or a budget is used up (with Retry-After, in seconds), 503 no leader, 504 time-out,
500 any other.

Ctrl-C once: takes no new requests, and answers the open ones. Twice: ends at once.

Examples:
  $ waggle serve nats --kind count --subject svc.count
  $ nats request svc.count 'how many words'
  $ waggle serve nats --kind review --subject 'review.*' --project acme --user bot --timeout 30s`;

async function serveNats(context: VerbContext, flags: NatsFlags): Promise<ExitCode> {
  const { kind, subject, queue, timeout: timeoutMs } = flags;
  if (kind === undefined || subject === undefined)
    throw new UsageError("--kind KIND and --subject SUBJECT are required; see waggle serve nats --help");
  checkSubject(subject);
  const { settings, logger, shell, signal } = context;
  return await withSwarm(context, async (swarm) => {
    const { address, inboxPrefix } = await findBroker({ mode: "find-only", ...settings, env: shell.env });
    const id = systemRandom.id(16);
    const wire = await openRequestWire({
      ...address,
      ...(inboxPrefix === undefined ? {} : { inboxPrefix }),
      ...{ name: `waggle-serve-${kind}-${id}`, signal, onError: (error) => logServerError(logger, error) },
    });
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
      await untilInterrupted(signal, wire.closed);
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

/** @throws UnreachableError when the connection ends for good */
async function untilInterrupted(signal: AbortSignal, closed: Promise<Error | undefined>): Promise<void> {
  const interrupted = new Promise<"interrupted">((resolve) => {
    if (signal.aborted) resolve("interrupted");
    else signal.addEventListener("abort", () => resolve("interrupted"), { once: true });
  });
  const end = await Promise.race([interrupted, closed]);
  if (end !== "interrupted") throw new UnreachableError("the connection to the server ended", { cause: end });
}

/** A service on the swarm's own subjects would answer in place of the leader. */
function checkSubject(subject: string): void {
  const isOwn = /^(?:\$|_INBOX|waggle\.|>|\*)/.test(subject);
  if (isOwn)
    throw new UsageError(
      `--subject ${subject} reaches subjects of NATS or of the swarm: choose one such as svc.count`,
      { field: "--subject" },
    );
}
