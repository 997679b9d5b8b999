// `waggle plan`: what a scheduler would assign on a snapshot. Asks no swarm and changes nothing.
// Not here: the snapshot's shape (plan-snapshot.ts), the rules (scheduling/).

import { Command, Option } from "commander";
import { unreachable } from "../assert.ts";
import { InvalidValueError } from "../errors.ts";
import { parseJson } from "../protocol/codec.ts";
import { schedule } from "../scheduling/exact/budget-scheduler.ts";
import type { AssignAction, BudgetSnapshot } from "../scheduling/exact/budget-snapshot.ts";
import { type RulesName, ruleSets } from "../scheduling/policy.ts";
import { planSnapshot } from "../scheduling/snapshot-plan.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { parseSnapshot } from "./plan-snapshot.ts";
import { errorRecord } from "./report-error.ts";
import { checkFiles, linesOf, nameOf, readSource, textIn } from "./source.ts";
import { UsageError } from "./usage-error.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

interface PlanFlags {
  readonly rules: RulesName;
  readonly lines?: boolean;
}

export function planCommand(program: Program): Command {
  return new Command("plan")
    .summary("print what would be assigned on a snapshot")
    .description(
      "Reads a snapshot of projects, tasks and agents from @FILE or standard input, and prints which idle agent " +
        "would get which ready task. Asks no swarm and changes nothing.",
    )
    .argument("[source]", "@FILE or - (standard input)", "-")
    .addOption(
      new Option("--rules <name>", "waggle: ours · budget: the budget scheduler to the letter")
        .choices(Object.keys(ruleSets))
        .default("waggle"),
    )
    .option("--lines", "read one snapshot per line, print one array per line")
    .addHelpText("after", help)
    .action((source: string, flags: PlanFlags, command: Command) =>
      runVerb(program, command, (context) => plan(context, source, flags)),
    );
}

const help = `
Prints a JSON array of {"agentId", "taskId", "projectId"}, in order of assignment; empty when nothing can be assigned.

A snapshot is one JSON object. Nothing may be left out; null stands for no limit. Other fields are passed over.
  projects   [{id, creditWeight, status, budgetLimit, maxConcurrentAgents}]   assigned from when status is active
  tasks      [{id, projectId, status, priority}]     assigned when status is ready; lower priority goes first
  agents     [{id, state}]                           assigned to when state is idle
  projectTokenUsage, projectActiveAgentCounts, tasksCompletedInWindow         {project: number}; 0 for those not named
  globalBudget, globalTokensUsed                     tokens of all projects

Ours takes a task to cost what one has cost so far: tokens used / tasks completed. It refuses a creditWeight of 0;
a project with maxConcurrentAgents 0 is closed and gets nothing. loco, vapora and lucio need what a snapshot does not hold: see waggle simulate.

With --lines a line that is wrong prints {"line", "error": {"code", "message", "field"}} in its place, an object where
the others are arrays, and the rest goes on; empty lines are passed over. Exit code 2 if any line was wrong.

Examples:
  $ waggle plan < snapshot.json
  $ waggle plan @snapshot.json --rules budget
  $ waggle plan --lines --rules budget < snapshots.ndjson > actions.ndjson`;

async function plan(context: VerbContext, source: string, { rules, lines }: PlanFlags): Promise<ExitCode> {
  const { shell, output } = context;
  checkRules(rules);
  checkSource(source, shell.stdin.isTTY === true);
  await checkFiles([source], shell);
  if (lines === true) return await planLines(context, source, rules);

  const bytes = await readSource(source, shell, context.signal);
  const place = nameOf(source);
  textIn(bytes, place);
  if (bytes.toString("latin1").trim() === "") throw new UsageError(`there is no snapshot: ${place} is empty`);
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

/** Those with something on them. */
function linesIn(bytes: Buffer): Buffer[] {
  const lines = bytes.toString("utf8").split("\n");
  return lines.filter((line) => line.trim() !== "").map((line) => Buffer.from(line));
}

async function planLines(context: VerbContext, source: string, rules: RulesName): Promise<ExitCode> {
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
function actionsFor(snapshot: BudgetSnapshot, rules: RulesName, place: string): AssignAction[] {
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
    throw new UsageError("give it a snapshot: waggle plan < snapshot.json, or waggle plan @snapshot.json");
  }
  if (source === "-" || (source.startsWith("@") && source.length > 1)) return;
  throw new UsageError(`'${source}' is neither @FILE nor -; for the file of that name write @${source}`);
}

/** @throws UsageError for rules that a snapshot does not hold enough for */
function checkRules(rules: RulesName): void {
  switch (rules) {
    case "waggle":
    case "budget":
      return;
    case "loco":
      return refuse(rules, "the weight and age of each task that waits");
    case "vapora":
      return refuse(rules, "success rates and loads of agents");
    case "lucio":
      return refuse(rules, "users and when each was last served");
    default:
      unreachable(rules);
  }
}

function refuse(rules: RulesName, lacking: string): never {
  throw new UsageError(
    `--rules ${rules} decides by ${lacking}, which a snapshot does not hold: plan with waggle or budget, or see ` +
      "waggle simulate --help",
  );
}

/** JSON that a person can read. */
function onePerLine(actions: readonly AssignAction[]): string {
  if (actions.length === 0) return "[]";
  return `[\n${actions.map((action) => `  ${JSON.stringify(action)}`).join(",\n")}\n]`;
}
