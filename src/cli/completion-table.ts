// The words that can follow each verb, read from the command tree. No list of verbs or flags is kept by hand. Not
// here: the scripts of the shells (completion-scripts.ts).

import type { Argument, Command, Option } from "commander";

/** Completions of a value: `choices`, a file, a folder, `@` and a file, or none. */
export type ValueKind = { readonly choices: readonly string[] } | "file" | "folder" | "source" | "any";

export interface CompletedWord {
  readonly word: string;
  /** First clause of the help text. */
  readonly description: string;
}

export interface CompletedFlag extends CompletedWord {
  /** One-letter form of the flag: `-f`. */
  readonly short?: string;
  /** Absent: the flag takes no value. */
  readonly value?: ValueKind;
}

export interface CompletedCommand {
  /** Words between the command's name and the cursor: `project set`; empty at the root. */
  readonly path: string;
  readonly verbs: readonly CompletedWord[];
  readonly flags: readonly CompletedFlag[];
  readonly arguments: readonly { readonly value: ValueKind; readonly isVariadic: boolean }[];
}

export interface CompletionTable {
  readonly globalFlags: readonly CompletedFlag[];
  readonly commands: readonly CompletedCommand[];
}

export function completionTable(root: Command): CompletionTable {
  return { globalFlags: root.options.map(flagOf), commands: commandsUnder(root, "") };
}

function commandsUnder(command: Command, path: string): CompletedCommand[] {
  const inner = command.createHelp().visibleCommands(command);
  const own: CompletedCommand = {
    path,
    verbs: inner.map((verb) => ({
      word: verb.name(),
      description: clause(verb.summary() || verb.description()),
    })),
    flags: command.parent === null ? [] : command.options.map(flagOf),
    arguments: command.registeredArguments.map((argument) => ({
      value: argumentValue(argument),
      isVariadic: argument.variadic,
    })),
  };
  const helped = { choices: command.commands.map((verb) => verb.name()) };
  return [
    own,
    ...inner.flatMap((verb): CompletedCommand[] => {
      const at = `${path} ${verb.name()}`.trim();
      if (command.commands.includes(verb)) return commandsUnder(verb, at);
      return [{ path: at, verbs: [], flags: [], arguments: [{ value: helped, isVariadic: false }] }];
    }),
  ];
}

function flagOf(option: Option): CompletedFlag {
  const word = option.long ?? option.flags;
  const { short, description, argChoices: choices, flags } = option;
  const value = choices === undefined ? namedValue(flags.match(/<(.*?)>/)?.[1] ?? "") : { choices };
  return {
    word,
    description: clause(description),
    ...(short === undefined ? {} : { short }),
    ...(option.required ? { value } : {}),
  };
}

function argumentValue(argument: Argument): ValueKind {
  return argument.argChoices === undefined ? namedValue(argument.name()) : { choices: argument.argChoices };
}

/** The placeholder names the value type of flags and arguments with files: `--creds <file>`. */
function namedValue(placeholder: string): ValueKind {
  if (placeholder === "file" || placeholder === "folder") return placeholder;
  return placeholder.startsWith("source") ? "source" : "any";
}

/** Up to the first full stop or semicolon: a list of candidates has one line for each. */
function clause(description: string): string {
  return description.replace(/(?:;|[.:] |\.$).*$/s, "").replace(/\s+/g, " ");
}
