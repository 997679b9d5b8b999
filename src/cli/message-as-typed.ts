// A refusal names a field of a message; the error names the flag that the user typed.

import type { Command, Option } from "commander";
import type { WaggleError } from "../errors.ts";

/** Fields whose flag has a different name. */
const attributeByField: Readonly<Record<string, string>> = {
  "budget.tokens": "budget",
  "budget.windowMs": "budgetWindow",
  "budget.mode": "budgetMode",
  guaranteeMs: "guarantee",
  rememberMs: "remember",
  tokensMax: "tokens",
  timeoutMs: "timeout",
  stallMs: "stall",
  kinds: "kind",
  labels: "label",
  roles: "role",
  types: "type",
  needs: "need",
  inboxUsers: "inboxUser",
  attributes: "attribute",
};

/** The error message for `command`, with the flag in place of the field. The flag comes first if the message of an
 *  invalid value names neither. */
export function messageAsTyped({ code, message, field }: WaggleError, command: Command): string {
  if (field === undefined) return message;
  const option = optionOf(field, command);
  const flag = option?.long;
  if (option === undefined || typeof flag !== "string") return message;
  const named = `${field}: `;
  if (message.startsWith(named)) return `${flag}: ${message.slice(named.length)}`;
  const isTyped = command.getOptionValueSource(option.attributeName()) === "cli";
  const cannotBe = code === "WAGGLE_INVALID_VALUE" && isTyped;
  return cannotBe && !message.includes(named) && !message.includes(flag) ? `${flag}: ${message}` : message;
}

function optionOf(field: string, command: Command): Option | undefined {
  const optionNamed = (attribute: string) =>
    command.options.find((option) => option.attributeName() === attribute);
  // The user that a project permits has a flag of its own: --user is the user who submits.
  return (
    optionNamed(attributeByField[field] ?? field) ?? (field === "user" ? optionNamed("onlyUser") : undefined)
  );
}
