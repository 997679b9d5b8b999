// `waggle plan`: what a scheduler would assign on a snapshot. Asks no swarm and changes nothing.
// Not here: the snapshot's shape (plan-snapshot.ts), the rules (scheduling/).

import { Command, InvalidArgumentError, Option } from "commander";
import { InvalidValueError } from "../errors.ts";
import { parseJson } from "../protocol/codec.ts";
import { schedule } from "../scheduling/exact/budget-scheduler.ts";
import type { AssignAction, BudgetSnapshot } from "../scheduling/exact/budget-snapshot.ts";
import { planSnapshot } from "../sim/policy/snapshot-plan.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { parseSnapshot } from "./plan-snapshot.ts";
import { errorRecord } from "./report-error.ts";
import { checkFiles, linesOf, nameOf, readSource, textIn } from "./source.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface PlanFlags {
  readonly rules: "waggle" | "budget";
  readonly lines?: boolean;
}

export function planCommand(program: Program): Command {
  return new Command("plan")
    .description(
      "Reads a snapshot of projects, tasks and agents from @FILE or standard input. Prints the assignments of " +
        "ready tasks to idle agents by a scheduler's rules. Needs no swarm and changes nothing.",
    )
    .argument("[source]", "@FILE or - (standard input)", "-")
    .addOption(
      new Option(
        "--rules <name>",
        "waggle: the planner of the swarm. budget: the published budget scheduler, exactly",
      )
        .choices(["waggle", "budget"])
        .argParser(rulesName)
        .default("waggle"),
    )
    .option("--lines", "read one snapshot per line, and print one array per line")
    .addHelpText("after", help)
    .action((source: string, flags: PlanFlags, command: Command) =>
      runVerb(program, command, (context) => plan(context, source, flags)),
    );
}

const help = `
Prints a JSON array of {"agentId", "taskId", "projectId"}, in order of assignment. It is empty if nothing can be assigned.

A snapshot is one JSON object. Every field is required. null means no limit. Other fields are ignored.
  projects                  list of {id, creditWeight, status, budgetLimit, maxConcurrentAgents}. Only tasks of projects with status active are assigned.
  tasks                     list of {id, projectId, status, priority}. Only tasks with status ready are assigned, lower priority first.
  agents                    list of {id, state}. Only agents with state idle get tasks.
  projectTokenUsage         {project: tokens used}. A project that is not named has 0.
  projectActiveAgentCounts  {project: busy agents}. A project that is not named has 0.
  tasksCompletedInWindow    {project: completed tasks}. A project that is not named has 0.
  globalBudget              token budget of all projects together
  globalTokensUsed          tokens used by all projects together

--rules waggle estimates the cost of a task as tokens used / tasks completed of its project. It refuses a creditWeight of 0. A project with maxConcurrentAgents 0 gets nothing. The rules loco, vapora and lucio need more than a snapshot holds: see waggle simulate.

With --lines, an invalid line prints the object {"line", "error": {"code", "message", "field"}} in place of its array, and the remaining lines are still planned. Empty lines are skipped. Exit code 2 if any line was invalid.

Examples:
  $ waggle plan < snapshot.json
  $ waggle plan @snapshot.json --rules budget
  $ waggle plan --lines --rules budget < snapshots.ndjson > actions.ndjson`;

async function plan(context: VerbContext, source: string, { rules, lines }: PlanFlags): Promise<ExitCode> {
  const { shell, output } = context;
  checkSource(source, shell.stdin.isTTY === true);
  await checkFiles([source], shell);
  if (lines === true) return await planLines(context, source, rules);

  const bytes = await readSource(source, shell, context.signal);
  const place = nameOf(source);
  textIn(bytes, place);
  if (bytes.toString("latin1").trim() === "") throw new UsageError(`no snapshot: ${place} is empty`);
  const actions = actionsFor(onlySnapshot(bytes, place), rules, place);
  output.datum(actions, () => onePerLine(actions));
  return exitCodes.ok;
}

function onlySnapshot(bytes: Buffer, place: string): BudgetSnapshot {
  try {
    return parseSnapshot(bytes, place);
  } catch (error) {
    const [first = Buffer.from(""), ...others] = linesIn(bytes);
    if (others.length === 0 || !parseJson(first).ok) throw error;
    throw new UsageError(`${place} holds one JSON text per line: for one snapshot per line add --lines`, {
      cause: error,
    });
  }
}

/** All lines except blank lines. */
function linesIn(bytes: Buffer): Buffer[] {
  const lines = bytes.toString("utf8").split("\n");
  return lines.filter((line) => line.trim() !== "").map((line) => Buffer.from(line));
}

async function planLines(context: VerbContext, source: string, rules: PlanFlags["rules"]): Promise<ExitCode> {
  const { output, signal } = context;
  let code: ExitCode = exitCodes.ok;
  let line = 0;
  for await (const text of linesOf(source, context.shell, signal)) {
    if (output.closed.aborted) break;
    line += 1;
    if (text.toString().trim() === "") continue;
    const place = `${nameOf(source)}:${line}`;
    try {
      const actions = actionsFor(parseSnapshot(text, place), rules, place);
      output.datum(actions, () => JSON.stringify(actions));
    } catch (error) {
      const record = { line, ...errorRecord(error) };
      code = record.error.exitCode;
      output.datum(record, () => JSON.stringify(record));
      if (!output.json)
        output.note(`${output.noteColors.red(`error ${record.error.code}:`)} ${record.error.message}`);
    }
  }
  signal.throwIfAborted();
  return code;
}

/** @throws InvalidValueError naming the place and the field */
function actionsFor(snapshot: BudgetSnapshot, rules: PlanFlags["rules"], place: string): AssignAction[] {
  try {
    return rules === "budget" ? schedule(snapshot) : planSnapshot(snapshot);
  } catch (error) {
    if (!(error instanceof InvalidValueError)) throw error;
    const field = error.field === undefined ? {} : { field: error.field };
    throw new InvalidValueError(`${place}: ${error.message}`, { ...field, cause: error });
  }
}

function checkSource(source: string, isTerminal: boolean): void {
  if (source === "-" && isTerminal) {
    throw new UsageError(
      "a snapshot is required: waggle plan < snapshot.json, or waggle plan @snapshot.json",
    );
  }
  if (source === "-" || (source.startsWith("@") && source.length > 1)) return;
  throw new UsageError(`'${source}' is neither @FILE nor -; for a file write @${source}`);
}

/** Inputs of the remaining rules, absent from a snapshot. */
const lackingByRules: Readonly<Record<string, string>> = {
  loco: "the weight and age of each waiting task",
  vapora: "success rates and loads of agents",
  lucio: "users and when each was last served",
};

/** @throws InvalidArgumentError for rules in need of more than a snapshot */
function rulesName(text: string): PlanFlags["rules"] {
  if (text === "waggle" || text === "budget") return text;
  const lacking = lackingByRules[text];
  throw new InvalidArgumentError(
    lacking === undefined
      ? "must be waggle or budget"
      : `${text} decides by ${lacking}, which a snapshot does not hold. Use waggle or budget here, or run waggle simulate`,
  );
}

/** Readable JSON: one action per line. */
function onePerLine(actions: readonly AssignAction[]): string {
  if (actions.length === 0) return "[]";
  return `[\n${actions.map((action) => `  ${JSON.stringify(action)}`).join(",\n")}\n]`;
}
