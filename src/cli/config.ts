// `waggle config show`: the settings in force on this command line. The verb sends no requests. Not here: precedence
// of sources (config/settings.ts), settings of the swarm (policy.ts, project.ts and similar verbs).

import { Command } from "commander";
import { type SettingInForce, settingsInForce } from "../config/setting-origins.ts";
import type { SettingName, SettingOrigin } from "../config/settings.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import { type Column, renderTable } from "./table.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

export function configCommand(program: Program): Command {
  return new Command("config")
    .description(
      "Settings come from flags, then the environment, then waggle.config.json, then defaults: the first source that " +
        "has a setting wins.",
    )
    .addCommand(showCommand(program))
    .addHelpText("after", examplesOf("config show"));
}

function showCommand(program: Program): Command {
  return new Command("show")
    .summary("show every setting and its value")
    .description(
      "Shows every setting and its value. User names, passwords and tokens within URLs are shown as ***; the files that " +
        "credentials name are not read.",
    )
    .option("--origin", "also the flag, variable or file that each value comes from")
    .addHelpText("after", examplesOf("config show"))
    .action((flags: ShowFlags, command: Command) =>
      runVerb(program, command, (context) => show(context, flags)),
    );
}

interface ShowFlags {
  readonly origin?: boolean;
}

function examplesOf(verb: string): string {
  return `\nExamples:\n  $ waggle ${verb}\n  $ waggle ${verb} --origin\n  $ waggle ${verb} --origin --json`;
}

async function show({ flags: global, shell, output }: VerbContext, { origin }: ShowFlags): Promise<ExitCode> {
  const found = settingsInForce({ flags: global, env: shell.env, cwd: shell.cwd });
  if (output.json) {
    for (const { setting, value, origin: from } of found)
      output.datum(origin === true ? { setting, value, origin: from } : { setting, value }, () => "");
    return exitCodes.ok;
  }
  const heads: Column[] = ["setting", "value", ...(origin === true ? ["origin"] : [])].map((head) => ({
    head,
    whenNarrow: "whole",
  }));
  const rows = found.map((one) => [
    one.setting,
    one.value ?? unsetText(one),
    ...(origin === true ? [originText(one.origin)] : []),
  ]);
  output.datum({}, () => renderTable(output, heads, rows));
  return exitCodes.ok;
}

function originText({ kind, name }: SettingOrigin): string {
  return name ?? kind;
}

/** Text for a setting that has no value. */
function unsetText({ setting }: SettingInForce): string {
  return whenUnset[setting as SettingName] ?? "-";
}

const whenUnset: Partial<Record<SettingName, string>> = {
  nats: "- (broker of the data folder)",
  name: "- (the host's name)",
  logLevel: "- (up, agent: info)",
};
