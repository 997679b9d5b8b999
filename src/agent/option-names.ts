// Names of options that there are not. Types catch a misspelt one in TypeScript; plain JavaScript would have it
// passed over. Not for the wire: there, what is unknown may be of a later version.

import { nearMisses } from "../core/near-miss.ts";
import { kind } from "../ids.ts";

export interface OptionNames {
  readonly known: readonly string[];
  /** What people write, and the name it has here, or what to write instead. */
  readonly otherwise?: Readonly<Record<string, string>>;
}

/** Of `otherwise`, where a model is known to the command line only. */
export const weightOfModel = "weight: weightOf(model, prompt.length)";

export interface UnknownOption {
  readonly name: string;
  /** `maxAttempt: is unknown; did you mean maxAttempts?` */
  readonly message: string;
}

/** The first option of `given` that has a value and an unknown name. */
export function unknownOption(
  given: object,
  { known, otherwise = {} }: OptionNames,
): UnknownOption | undefined {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || known.includes(name)) continue;
    const meant = Object.hasOwn(otherwise, name) ? otherwise[name] : undefined;
    const near = meant === undefined ? nearMisses(kind(name), known.map(kind)) : [meant];
    const hint = near.length > 0 ? `did you mean ${near.join(" or ")}?` : `there are ${known.join(", ")}`;
    return { name, message: `${name}: is unknown; ${hint}` };
  }
  return undefined;
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
