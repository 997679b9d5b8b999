// `waggle agent`: an agent that runs a command or calls a URL for each attempt. Ctrl-C once drains the agent: running
// attempts finish, then the agent leaves. Ctrl-C twice ends the agent at once, and its attempts run elsewhere.

import { Command, InvalidArgumentError } from "commander";
import { loadA2aClient } from "../adapters/a2a/load-sdk.ts";
import type { Agent, AgentOptions } from "../agent/agent.ts";
import { execHandler } from "../agent/exec.ts";
import { execEnvironment } from "../agent/exec-environment.ts";
import type { Handler } from "../agent/handler.ts";
import type { HoldScopeOption } from "../agent/hold-options.ts";
import { httpHandler } from "../agent/http.ts";
import type { RunnerCounts } from "../agent/runner.ts";
import { counted, formatCount } from "../count-text.ts";
import { NAME_PATTERN } from "../ids.ts";
import { limits } from "../limits.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { headersIn, urlIn } from "./http-files.ts";
import { joinAgent } from "./join-agent.ts";
import { tokenIn } from "./token-file.ts";
import { UsageError } from "./usage-error.ts";
import { kindList, labelMap, plainName, subjectToken, variableList, wholeNumber } from "./values.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";
import { packageVersion } from "./version.ts";

interface AgentFlags {
  readonly kind?: readonly string[];
  readonly exec?: string;
  readonly env?: readonly string[];
  readonly http?: string;
  readonly httpUrlFile?: string;
  readonly httpHeaderFile?: string;
  readonly mcp?: string;
  readonly tool?: string;
  readonly a2a?: string;
  readonly skill?: string;
  readonly tokenFile?: string;
  readonly holdScope?: HoldScopeOption;
  readonly id?: string;
  readonly maxConcurrent: number;
  readonly prefetch?: number;
  readonly role?: string;
  readonly type?: string;
  readonly group?: string;
  readonly label?: Readonly<Record<string, string>>;
  /** False with --no-error-text. */
  readonly errorText: boolean;
}

export function agentCommand(program: Program): Command {
  return new Command("agent")
    .description(
      "Joins the swarm as an agent for tasks of --kind. A command (--exec), an HTTP endpoint (--http), a tool of an " +
        "MCP server (--mcp), or an A2A agent (--a2a) runs the tasks.",
    )
    .option(
      "--kind <kinds>",
      "kinds of tasks that the agent serves, separated by commas; may be repeated. Required",
      kindList,
    )
    .option("--exec <command>", "command that runs each attempt, through sh -c")
    .option(
      "--env <name>",
      "environment variable that the command gets besides PATH, HOME, LANG, TMPDIR and WAGGLE_…; may be repeated",
      variableList,
    )
    .option("--http <url>", "URL that receives each attempt as an HTTP POST")
    .option("--http-url-file <file>", "file with the URL, for a URL with a key")
    .option("--http-header-file <file>", "file with headers of each request, one `Name: value` per line")
    .option("--mcp <command>", "command of an MCP server, through sh -c: runs once for all attempts")
    .option("--tool <name>", "tool of the MCP server that runs each attempt. Required with --mcp")
    .option("--a2a <url>", "URL of an A2A 1.0 agent that runs each attempt, without the path of its card")
    .option("--skill <id>", "skill of the A2A agent, sent as metadata.skill")
    .option("--token-file <file>", "file with the token for the A2A agent: Authorization: Bearer")
    .option("--id <id>", "id of the agent; default <host>-<kind>-<8 random>", subjectToken)
    .option(
      "--max-concurrent <n>",
      "maximum number of attempts that run at once",
      wholeNumber(1, limits.maxConcurrentMax),
      1,
    )
    .option(
      "--prefetch <n>",
      "attempts assigned in advance, beyond --max-concurrent, so that the next starts at once; default 0",
      wholeNumber(0, limits.maxConcurrentMax),
    )
    .option("--role <role>", "also run tasks with this role", plainName)
    .option(
      "--type <type>",
      "type of the agent, for rates and cheaper types: claude-sonnet, gpu-a100",
      plainName,
    )
    .option(
      "--hold-scope <scope>",
      "what a refused attempt puts on hold (exit code 75, status 429, 503 or 529, an MCP server that ends): the agent, " +
        "all agents of its type, or a resource: agent, type, or resource:NAME. Default: agent; or its type, when " +
        "several agents of the type are refused without a retry time",
      holdScopeIn,
    )
    .option(
      "--group <group>",
      "group of agents that share a credential: subjects are agent.<group>.<id>.…; default none",
      subjectToken,
    )
    .option(
      "--label <name=value>",
      "label for tasks with needs (`submit --need`), shown in status; may be repeated",
      labelMap,
    )
    .option(
      "--no-error-text",
      "report only class and code of an error, without its text: the text is journaled, and may quote the payload",
    )
    .addHelpText("after", examples)
    .action((flags: AgentFlags, command: Command) =>
      runVerb(program, command, (context) => agent(context, flags), { logLevel: "info", logIsData: true }),
    );
}

const examples = `
--exec runs the command once per attempt: payload on standard input, result on standard output.
Exit code 0: completed, 65: invalid input, 75: infrastructure, any other code: failed.
The command gets PATH, HOME, LANG, TMPDIR and WAGGLE_… of this environment, and what --env names.
With code 75 and "retry-after: 30" as the last line of its output, the agent is on hold for 30 s;
without a time after three refusals in a row, for 5 s and then longer.

--http posts the payload to the URL once per attempt. 2xx: completed, 400 and 422: invalid input,
429, 502–504, 529 and no answer: infrastructure, any other status: failed. An answer that breaks off
uses up an attempt. For a task with --max-attempts 1, a request that was sent whole and gets no
answer uses up the attempt, too. 429, 503 and 529 with Retry-After or x-ratelimit-reset… put the
agent on hold until then; without a time as --exec does.

--mcp calls the tool once per attempt: the payload is a JSON object with the tool's arguments, the
content is the result. Refused arguments: invalid input; an error of the tool: failed. A server that
ends is started again, and its calls are infrastructure failures. An aborted attempt cancels its call.

--a2a sends a message once per attempt, and the artifacts of the remote task are the result. Refused
parameters and questions for more input: invalid input; 429, 502–504, 529 and no connection: infrastructure;
a remote task that failed or was rejected: failed. An aborted attempt cancels the remote task.

Budgets charge the tokens that an attempt reports: a command writes their number to descriptor 4,
an endpoint answers with the header waggle-tokens.

Ctrl-C once: takes no new tasks, finishes the running attempts and leaves. Twice: ends at once.

Examples:
  $ waggle agent --kind count --exec 'wc -w' --max-concurrent 4
  $ waggle agent --kind review,summary --http http://127.0.0.1:8000/run --id reviewer-1 --role senior
  $ waggle agent --kind ask --type gpt --exec 'ask-model > answer; cat answer; wc -w < answer >&4'
  $ waggle agent --kind ask --exec ./ask-model --env MODEL_API_KEY --no-error-text
  $ waggle agent --kind ask --http-url-file endpoint.url --http-header-file endpoint.headers
  $ waggle agent --kind search --mcp 'npx -y some-mcp-server' --tool search --max-concurrent 4
  $ waggle agent --kind plan --a2a http://127.0.0.1:41241 --skill plan --max-concurrent 4
  $ waggle agent --kind train --exec './train.sh' --type gpu-a100 --label zone=b`;

async function agent(context: VerbContext, flags: AgentFlags): Promise<ExitCode> {
  const { handler, close } = await handlerOf(flags, context);
  try {
    const joined = await join({ ...profileOf(flags), handler }, context);
    return await untilEnded(joined, context);
  } finally {
    await close?.();
  }
}

/** Waits for a leader. Prints a notice while there is none. Ctrl-C ends the wait; after the join, Ctrl-C drains. */
async function join(options: AgentOptions, context: VerbContext): Promise<Agent> {
  const { logger, settings, shell, signal } = context;
  const givenUp = new AbortController();
  const giveUp = () => givenUp.abort(signal.reason);
  signal.addEventListener("abort", giveUp, { once: true });
  const waiting = setTimeout(
    () =>
      logger.warn(
        "no leader has answered yet: the agent joins as soon as a leader answers (start one with waggle up)",
      ),
    limits.agentWaitNoticeMs,
  );
  try {
    return await joinAgent({ ...options, signal: givenUp.signal }, { settings, logger, env: shell.env });
  } finally {
    clearTimeout(waiting);
    signal.removeEventListener("abort", giveUp);
  }
}

interface Work {
  readonly handler: Handler;
  /** Ends the handler's own process. */
  readonly close?: () => Promise<void>;
}

/** `agent`, `type` or `resource:gpt-4o`. @throws InvalidArgumentError */
function holdScopeIn(given: string): HoldScopeOption {
  if (given === "agent" || given === "type") return given;
  const [word, resource = ""] = given.split(/:(.*)/s);
  if (word === "resource" && NAME_PATTERN.test(resource)) return { resource };
  throw new InvalidArgumentError("must be agent, type, or resource:NAME, like resource:gpt-4o");
}

/** @throws UsageError; InvalidConfigError and MissingPackageError for an MCP server or an A2A agent */
async function handlerOf(flags: AgentFlags, { logger, shell, signal }: VerbContext): Promise<Work> {
  const { kind, exec, env, httpUrlFile, httpHeaderFile, mcp, tool, a2a, skill, tokenFile, holdScope } = flags;
  const missing = (what: string) => new UsageError(`${what}; see waggle agent --help`);
  if (kind === undefined) throw missing("--kind KIND is required: the kinds that the agent serves");
  if ([exec, flags.http, httpUrlFile, mcp, a2a].filter((way) => way !== undefined).length > 1)
    throw missing("--exec, --http, --http-url-file, --mcp and --a2a exclude each other");
  const http = httpUrlFile === undefined ? flags.http : urlIn(httpUrlFile, shell.cwd);
  if (env !== undefined && exec === undefined) throw missing("--env NAME needs --exec COMMAND");
  if (httpHeaderFile !== undefined && http === undefined)
    throw missing("--http-header-file FILE needs --http URL or --http-url-file FILE");
  if ((mcp === undefined) !== (tool === undefined))
    throw missing("--mcp COMMAND and --tool NAME need each other");
  if (a2a === undefined && (skill !== undefined || tokenFile !== undefined))
    throw missing("--skill SKILL and --token-file FILE need --a2a URL");
  const scope = holdScope === undefined ? {} : { holdScope };
  if (exec !== undefined) {
    const unset = env?.find((name) => shell.env[name] === undefined);
    if (unset !== undefined) throw missing(`--env ${unset}: the environment has no ${unset}`);
    return { handler: execHandler({ command: exec, env: execEnvironment(shell.env, env), ...scope }) };
  }
  if (http !== undefined) {
    const headers = httpHeaderFile === undefined ? {} : { headers: headersIn(httpHeaderFile, shell.cwd) };
    return { handler: httpHandler({ url: http, ...headers, ...scope }) };
  }
  if (mcp !== undefined && tool !== undefined) {
    const { openMcpTool } = await (await import("../adapters/mcp/load-client.ts")).loadMcpClient();
    return await openMcpTool({ command: mcp, tool, ...scope, version: packageVersion(), logger, signal });
  }
  if (a2a !== undefined) {
    const { openA2aAgent } = await loadA2aClient();
    const token = tokenFile === undefined ? undefined : tokenIn(tokenFile, shell.cwd);
    return { handler: await openA2aAgent({ url: a2a, skill, token, ...scope, logger, signal }) };
  }
  throw missing(
    "--exec COMMAND, --http URL, --mcp COMMAND or --a2a URL is required: how the agent runs an attempt",
  );
}

function profileOf(flags: AgentFlags) {
  const { kind = [], id, maxConcurrent, prefetch, role, type, group, label, errorText } = flags;
  return {
    kinds: kind,
    maxConcurrent,
    errorText,
    ...(id === undefined ? {} : { id }),
    ...(prefetch === undefined ? {} : { prefetch }),
    ...(role === undefined ? {} : { role }),
    ...(type === undefined ? {} : { type }),
    ...(group === undefined ? {} : { group }),
    ...(label === undefined ? {} : { labels: label }),
  };
}

/** Runs until the agent is drained, fenced, or disconnected for good. @throws WaggleError for an end without drain */
async function untilEnded(joined: Agent, { logger, signal }: VerbContext): Promise<ExitCode> {
  const drain = () => {
    logger.info(
      `draining: ${joined.id} finishes its running attempts and leaves (Ctrl-C again ends the agent at once)`,
    );
    void joined.drain(); // `closed` reports the end and its reason
  };
  if (signal.aborted) drain();
  else signal.addEventListener("abort", drain, { once: true });
  const error = await joined.closed;
  if (error !== undefined) throw error;
  logger.info(`${joined.id} has left: ${endsText(joined.counts())}`);
  return exitCodes.ok;
}

/** `12 attempts completed, 3 did not (1 failed, 2 aborted)`. */
export function endsText({ completed, failed, infrastructure, invalid, aborted }: RunnerCounts): string {
  const others = [
    [failed, "failed"],
    [invalid, "of invalid input"],
    [infrastructure, "refused by infrastructure"],
    [aborted, "aborted"],
  ] as const;
  const done = `${counted(completed, "attempt")} completed`;
  const parts = others.filter(([count]) => count > 0).map(([count, how]) => `${formatCount(count)} ${how}`);
  if (parts.length === 0) return done;
  return `${done}, ${formatCount(failed + infrastructure + invalid + aborted)} did not (${parts.join(", ")})`;
}
