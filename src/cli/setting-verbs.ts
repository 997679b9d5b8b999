// `list`, `show` and `remove` of named settings, and the output of `set`: projects, kinds, resources, rates and grants.
// A `SettingNoun` holds the words of each. Not here: the flags of `set` (project.ts and similar verbs), texts of
// settings (setting-text.ts).

import { type Argument, Command, type Option } from "commander";
import type { AskOptions } from "../client/asker.ts";
import type { Setting } from "../client/operations.ts";
import type { Swarm } from "../client/swarm.ts";
import { WaggleError } from "../errors.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import type { SettingsResponse } from "../protocol/settings-schemas.ts";
import { ask } from "./ask.ts";
import { withSwarm } from "./connect.ts";
import { type ExitCode, exitCodes } from "./exit-code.ts";
import type { Output } from "./output.ts";
import { printRows, printSetting, type SettingLine, settingLines } from "./setting-text.ts";
import { type Program, runVerb, type VerbContext } from "./verb.ts";

type Table = "projects" | "kinds" | "resources" | "rates" | "grants";
type RowOf<Of extends Table> = SettingsResponse[Of][number];
type SettingsOf<Of extends Table> = RowOf<Of>["settings"];

/** One setting: a line of `show`, a column of `list`. */
export interface Aspect<Settings> {
  readonly name: string;
  readonly align?: "right";
  /** @param policy present if the answer contains the policy */
  text(settings: Settings, policy?: SettingsResponse["policy"]): string;
  /** Whether the setting is worth a line. Absent: always. */
  isShown?(settings: Settings): boolean;
}

export interface EntryUse {
  readonly record: object;
  readonly text: string;
}

export interface SettingNoun<Of extends Table> {
  /** The word after `waggle`: `kind`. */
  readonly word: string;
  readonly table: Of;
  /** The name's field in records. */
  readonly key: string & keyof RowOf<Of>;
  /** Title of one entry: `rate of type claude`. */
  readonly titleOf: (name: string) => string;
  readonly argument: () => Argument;
  /** A name for examples. */
  readonly example: string;
  /** Summary of `list` in help. */
  readonly listed: string;
  readonly aspects: readonly Aspect<SettingsOf<Of>>[];
  /** State of an entry, beside its settings. */
  readonly stateOf?: (row: RowOf<Of>, found: SettingsResponse) => string;
  /** Present use of an entry, for `show`: fields for programs, and text for people. */
  readonly useOf?: (name: string, status: StatusResponse, view: Output) => EntryUse | undefined;
  /** Text of an empty `list`. */
  readonly whenNoneIsSet: string;
  /** Default settings of a name without settings, an error for an unknown name, or a sentence if defaults do not apply.
   *  @param status present with `useOf` */
  readonly whenUnset: (
    name: string,
    found: SettingsResponse,
    status: StatusResponse | undefined,
  ) => RowOf<Of> | WaggleError | string;
}

export function listCommand<Of extends Table>(program: Program, noun: SettingNoun<Of>): Command {
  return new Command("list")
    .summary(noun.listed)
    .addHelpText("after", examplesOf(`${noun.word} list`))
    .action((_: unknown, command: Command) => runVerb(program, command, (context) => list(context, noun)));
}

async function list<Of extends Table>(context: VerbContext, noun: SettingNoun<Of>): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const { aspects, key, stateOf, table } = noun;
    const about = aboutOf(context, table);
    const found = await ask(context, (options) => swarm.settings({ ...about, ...options }));
    const state = stateOf === undefined ? [] : [{ head: "state" }];
    const shown = aspects.filter(({ isShown }) =>
      found[table].some((row) => isShown?.(row.settings) ?? true),
    );
    printRows<RowOf<Of>>(context, found[table], {
      columns: [
        { head: key },
        ...shown.map(({ name, align }) => ({ head: name, ...(align === undefined ? {} : { align }) })),
        ...state,
      ],
      cells: (row) => [
        String(row[key]),
        ...shown.map((aspect) => aspect.text(row.settings, found.policy)),
        ...(stateOf === undefined ? [] : [stateOf(row, found)]),
      ],
      empty: noun.whenNoneIsSet,
      omitted: found.omitted?.[table] ?? 0,
    });
    return exitCodes.ok;
  });
}

export function showCommand<Of extends Table>(program: Program, noun: SettingNoun<Of>): Command {
  return new Command("show")
    .summary(`show the settings of one ${noun.word}`)
    .addArgument(noun.argument())
    .addHelpText("after", examplesOf(`${noun.word} show ${noun.example}`))
    .action((name: string, _: unknown, command: Command) =>
      runVerb(program, command, (context) => show(context, noun, name)),
    );
}

async function show<Of extends Table>(
  context: VerbContext,
  noun: SettingNoun<Of>,
  name: string,
): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const about = noun.table === "projects" ? { project: name } : { name };
    const found = await ask(context, (options) => swarm.settings({ ...about, ...options }));
    const set: readonly RowOf<Of>[] = found[noun.table];
    const own = aboutOf(context, noun.table);
    const status = noun.useOf && (await ask(context, (options) => swarm.status({ ...own, ...options })));
    const unset = set.length > 0 ? undefined : noun.whenUnset(name, found, status);
    if (unset instanceof WaggleError) throw unset;
    if (typeof unset === "string") {
      context.output.note(unset);
      return exitCodes.rejected;
    }
    for (const row of unset === undefined ? set : [unset]) {
      const use = status && noun.useOf?.(name, status, context.output);
      const state: SettingLine[] = noun.stateOf === undefined ? [] : [["state", noun.stateOf(row, found)]];
      context.output.datum({ ...row, ...use?.record }, () => {
        const lines = [...state, ...linesOf(noun.aspects, row.settings, found.policy)];
        const text = settingLines(context, noun.titleOf(name), lines);
        return use === undefined ? text : `${text}\n\n${use.text}`;
      });
    }
    return exitCodes.ok;
  });
}

/** The whole swarm; its own project for a user who may not ask about more. */
function aboutOf({ settings }: VerbContext, table: Table): { readonly project?: string } {
  return settings.projectOnly && table === "projects" ? { project: settings.project } : {};
}

export interface Removal<Flags = object> {
  /** Help of `remove`: its effect, and when it is refused. */
  readonly description: string;
  /** Flags that restrict the removal. */
  readonly options?: readonly Option[];
  /** The removed setting, in a sentence. Default: the noun's title. */
  readonly titleOf?: (name: string, flags: Flags) => string;
  readonly remove: (swarm: Swarm, name: string, options: AskOptions, flags: Flags) => Promise<Setting<null>>;
}

export function removeCommand<Of extends Table, Flags extends object>(
  program: Program,
  noun: SettingNoun<Of>,
  removal: Removal<Flags>,
): Command {
  const command = new Command("remove")
    .summary(`remove a ${noun.word}`)
    .description(removal.description)
    .addArgument(noun.argument())
    .addHelpText("after", examplesOf(`${noun.word} remove ${noun.example}`))
    .action((name: string, flags: Flags, given: Command) =>
      runVerb(program, given, (context) => removeNamed(context, noun, removal, name, flags)),
    );
  for (const option of removal.options ?? []) command.addOption(option);
  return command;
}

async function removeNamed<Of extends Table, Flags extends object>(
  context: VerbContext,
  { key, titleOf }: SettingNoun<Of>,
  removal: Removal<Flags>,
  name: string,
  flags: Flags,
): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const { changed, term, idx } = await ask(context, (options) =>
      removal.remove(swarm, name, options, flags),
    );
    const title = removal.titleOf?.(name, flags) ?? titleOf(name);
    const sentence = `${title} ${changed ? "removed" : "was not set"}`;
    context.output.datum({ [key]: name, ...flags, changed, term, idx }, () => sentence);
    return exitCodes.ok;
  });
}

/** Sets something of `name`, and prints the settings, changed or unchanged. */
export async function setNamed<Of extends Table>(
  context: VerbContext,
  noun: SettingNoun<Of>,
  name: string,
  set: (swarm: Swarm, options: AskOptions) => Promise<Setting<SettingsOf<Of>>>,
): Promise<ExitCode> {
  return await withSwarm(context, async (swarm) => {
    const setting = await ask(context, (options) => set(swarm, options));
    printSetting(context, {
      record: { [noun.key]: name },
      heading: noun.titleOf(name),
      setting,
      lines: linesOf(noun.aspects, setting.settings),
    });
    return exitCodes.ok;
  });
}

function linesOf<Settings>(
  aspects: readonly Aspect<Settings>[],
  settings: Settings,
  policy?: SettingsResponse["policy"],
): SettingLine[] {
  const shown = aspects.filter(({ isShown }) => isShown?.(settings) ?? true);
  return shown.map(({ name, text }) => [name, text(settings, policy)]);
}

function examplesOf(line: string): string {
  return `\nExamples:\n  $ waggle ${line}\n  $ waggle ${line} --json`;
}
