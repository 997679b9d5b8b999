// `waggle serve`: kinds of tasks as services of another protocol, one verb for each protocol.

import { Command } from "commander";
import { serveA2aCommand } from "./serve-a2a.ts";
import { serveNatsCommand } from "./serve-nats.ts";
import { serveSynadiaCommand } from "./serve-synadia.ts";
import type { Program } from "./verb.ts";

export function serveCommand(program: Program): Command {
  return new Command("serve")
    .description("Serves a kind of tasks as a service of another protocol.")
    .addHelpText("after", examples)
    .addCommand(serveNatsCommand(program))
    .addCommand(serveSynadiaCommand(program))
    .addCommand(serveA2aCommand(program));
}

const examples = `
Examples:
  $ waggle serve nats --kind count --subject svc.count
  $ waggle serve synadia --kind review
  $ waggle serve a2a --kind review,summary`;
