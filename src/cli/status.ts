// `waggle status`: the current state of the swarm; with --watch, each second. Not here: the live view at a terminal
// (live/).

import { Command } from "commander";
import type { StatusOptions, Swarm } from "../client/swarm.ts";
import { limits } from "../limits.ts";
import type { StatusResponse, StatusTable } from "../protocol/schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { askAbout, onlyProject, typedProject } from "./find-project.ts";
import { withJournalTrouble } from "./journal-trouble.ts";
import { hasScreen } from "./live/screen.ts";
import { watchLive } from "./live/watch-status.ts";
import { renderStatus, type StatusView } from "./status-view.ts";
import { parseDuration, subjectToken } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { wait } from "./wait.ts";

interface StatusFlags {
  readonly watch?: boolean;
  readonly interval?: number;
  readonly all?: boolean;
  /** `--project` */
  readonly typed?: string | undefined;
}

export function statusCommand(program: Program): Command {
  return new Command("status")
    .description(
      "Shows the swarm's state at the leader. First a summary: agents online, tasks, why tasks wait, leader " +
        "and journal. Then queues, agents, resources, users, budgets and rates: of each the 20 rows that matter " +
        "most. At the end metrics, bottlenecks and alerts.",
    )
    .option("--project <name>", "only the tasks, users and budget of this project", subjectToken)
    .option(
      "--watch",
      "live view at a terminal, with keys to sort and filter (? lists them); else refresh until Ctrl-C",
    )
    .option("--interval <duration>", "time between two refreshes; implies --watch; default 1s", parseDuration)
    .option("--all", "show every row of every table, and offline agents; default: 20 rows per table")
    .addHelpText("after", examples)
    .action((flags: StatusFlags, command: Command) =>
      runVerb(program, command, (context) =>
        status(context, { ...flags, typed: typedProject(command, context.settings) }),
      ),
    );
}

const examples = `
Examples:
  $ waggle status
  $ waggle status --all
  $ waggle status --project acme
  $ waggle status --watch                live; q quits, ? lists the keys
  $ waggle status --json | jq '.agents[] | {id, load}'
  $ waggle status --json | jq '{metrics, observed}'
  $ waggle status --watch --json         one record per second`;

async function status(context: VerbContext, flags: StatusFlags): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    if (flags.watch === true || flags.interval !== undefined) return await watch(swarm, context, flags);
    const { answer, project } = await askStatus(swarm, context, flags);
    if (project !== flags.typed) context.output.note(onlyProject(project));
    context.output.datum(answer, () => renderStatus(answer, viewOf(context, flags, project)));
    return exitCodes.ok;
  });
}

interface Asked {
  readonly answer: StatusResponse;
  /** Undefined: the answer is about the whole swarm. */
  readonly project: string | undefined;
}

/** An answer about one project holds the most relevant of its users; further pages exist for the swarm alone. */
async function askStatus(swarm: Swarm, context: VerbContext, { all, typed }: StatusFlags): Promise<Asked> {
  const page = async (rows: NonNullable<StatusOptions["rows"]>) =>
    await ask(context, (options) => swarm.status({ ...options, rows }));
  return await withJournalTrouble(context, async () => {
    const asked = await askAbout(context, typed, (options) => swarm.status(options));
    const { answer, project } = asked;
    if (all !== true || answer.omitted === undefined || project !== undefined) return asked;
    return { answer: await wholeStatus(answer, page), project };
  });
}

/** Replaces the tables that did not fit one answer by whole tables. */
async function wholeStatus(
  answer: StatusResponse,
  ask: (rows: NonNullable<StatusOptions["rows"]>) => Promise<StatusResponse>,
): Promise<StatusResponse> {
  const { omitted = {}, ...whole } = answer;
  const isCut = (table: string) =>
    Object.entries<number>(omitted).some(([name, count]) => name === table && count > 0);
  const pagesOf = async (table: StatusTable, countOf: (page: StatusResponse) => number) => {
    const pages: StatusResponse[] = [];
    for (let from = 0; ; ) {
      const page = await ask({ table, from });
      pages.push(page);
      from += countOf(page);
      if (page.omitted === undefined || countOf(page) === 0) return pages;
    }
  };
  if (isCut("agents"))
    whole.agents = (await pagesOf("agents", ({ agents }) => agents.length)).flatMap(({ agents }) => agents);
  if (isCut("queues"))
    whole.queues = (await pagesOf("queues", ({ queues }) => queues.length)).flatMap(({ queues }) => queues);
  if (isCut("resources"))
    whole.resources = (await pagesOf("resources", ({ resources }) => resources.length)).flatMap(
      ({ resources }) => resources,
    );
  if (isCut("rates"))
    whole.rates = (await pagesOf("rates", ({ rates = [] }) => rates.length)).flatMap(
      ({ rates = [] }) => rates,
    );
  if (isCut("projects") || isCut("users")) {
    const projects = await pagesOf("projects", (page) => page.projects.length);
    const users = await pagesOf("users", (page) => page.projects.flatMap((project) => project.users).length);
    whole.projects = withUsers(projects, users);
  }
  return whole;
}

function withUsers(
  projects: readonly StatusResponse[],
  users: readonly StatusResponse[],
): StatusResponse["projects"] {
  const byName = new Map(
    projects.flatMap((page) => page.projects.map((row) => [row.project, { ...row, users: [...row.users] }])),
  );
  for (const row of users.flatMap((page) => page.projects)) byName.get(row.project)?.users.push(...row.users);
  return [...byName.values()];
}

function viewOf({ output }: VerbContext, { all }: StatusFlags, project: string | undefined): StatusView {
  const { columns, colors, asStarted } = output;
  return { columns, colors, asStarted, showsAll: all === true, project };
}

/** Ends when the reader of the output is gone, or by the signal; the live view also with `q`. */
async function watch(swarm: Swarm, context: VerbContext, flags: StatusFlags): Promise<ExitCode> {
  const { output, shell, signal } = context;
  const { interval: intervalMs = limits.statusWatchMs } = flags;
  if (!output.json && hasScreen(shell))
    return await watchLive(context, {
      ask: (asking, { all }) => askStatus(swarm, asking, { ...flags, all }),
      intervalMs,
      showsAll: flags.all === true,
    });
  const ended = AbortSignal.any([signal, output.closed]);
  while (!output.closed.aborted) {
    const { answer, project } = await askStatus(swarm, context, flags);
    const text = () => renderStatus(answer, viewOf(context, flags, project));
    if (output.json || output.columns === undefined) output.datum(answer, () => `${text()}\n`);
    else output.page(text());
    await wait(intervalMs, ended);
    signal.throwIfAborted();
  }
  return exitCodes.ok;
}
