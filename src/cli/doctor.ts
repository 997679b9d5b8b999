// `waggle doctor`: checks this machine, the server and the swarm, with advice per check. Changes nothing. Not here:
// the checks (doctor/checks.ts).

import { Command } from "commander";
import type { Check } from "./doctor/check.ts";
import { runChecks } from "./doctor/checks.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { type Output, printable } from "./output.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function doctorCommand(program: Program): Command {
  return new Command("doctor")
    .description(
      "Checks this machine, the server and its version, JetStream, and the streams of the journal (settings, room, " +
        "replicas). Also checks sizes, clocks, the leader, and the durability. Changes nothing.",
    )
    .addHelpText("after", examples)
    .action((_: unknown, command: Command) => runVerb(program, command, doctor));
}

const examples = `
Exit codes: 0 no check failed (warnings do not count), 7 the journal is damaged, 2 a setting is wrong, 3 no broker or no
leader can be reached, 1 any other failure.

Examples:
  $ waggle doctor
  $ waggle doctor --nats nats://127.0.0.1:4222
  $ waggle doctor --json | jq 'select(.status != "ok")'`;

/** A damaged journal comes before any other failure. */
const worstFirst: readonly ExitCode[] = [exitCodes.journalDamaged, exitCodes.usage, exitCodes.unreachable];

async function doctor(context: VerbContext): Promise<ExitCode> {
  const { output } = context;
  const failures = new Set<ExitCode>();
  for await (const check of runChecks(context)) {
    if (check.status === "fail") failures.add(check.exitCode ?? exitCodes.unexpected);
    output.datum(check, () => output.asStarted(checkText(check, output)));
  }
  return (
    worstFirst.find((code) => failures.has(code)) ?? (failures.size > 0 ? exitCodes.unexpected : exitCodes.ok)
  );
}

const NAME_WIDTH = 12;

function checkText({ name, status, found, advice }: Check, { colors }: Output): string {
  const tone = { ok: colors.green, warn: colors.yellow, fail: colors.red }[status];
  const line = `${tone(status.padEnd(4))}  ${name.padEnd(NAME_WIDTH)}  ${printable(found)}`;
  return advice === undefined
    ? line
    : `${line}\n${" ".repeat(NAME_WIDTH + 8)}${colors.dim(printable(advice))}`;
}
