// The error of a flag or an argument with a wrong value: `--priority: must be a whole number from 1 to 9, not "high"`.
// Parsers throw an InvalidArgumentError that says what the value must be; the name and the value are added here.

import { type Argument, type Command, InvalidArgumentError, type Option } from "commander";
import { headOf } from "../cut-text.ts";
import { UsageError } from "./usage-error.ts";

const VALUE_CHARACTERS_SHOWN = 40;

/** Makes each parser of the command throw a UsageError that names the flag or the argument. Commander would put a
 *  sentence of its own before the parser's. */
export function nameWrongValues({ options, registeredArguments }: Command): void {
  for (const option of options) name(option, option.long ?? option.flags);
  for (const argument of registeredArguments) name(argument, argument.name());
}

function name(part: Option | Argument, called: string): void {
  const { parseArg, argChoices } = part;
  if (parseArg === undefined) return;
  part.parseArg = <Value>(text: string, previous: Value): Value => {
    try {
      return parseArg.call(part, text, previous) as Value;
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      const isChoice = argChoices !== undefined && error.message.startsWith("Allowed choices are ");
      const reason = isChoice ? new InvalidArgumentError(mustBeOneOf(argChoices)) : error;
      throw new UsageError(`${called}: ${wrongValueText(reason, text)}`, { cause: error, field: called });
    }
  };
}

/** The parser's message. Shows the value behind a message that says what the value must be, and not what it must not
 *  be. */
export function wrongValueText({ message }: InvalidArgumentError, value: string): string {
  if (!message.startsWith("must ") || message.startsWith("must not ")) return message;
  const head = headOf(value, VALUE_CHARACTERS_SHOWN);
  return `${message}, not ${JSON.stringify(head === value ? value : `${head}…`)}`;
}

function mustBeOneOf(choices: readonly string[]): string {
  return `must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
}
