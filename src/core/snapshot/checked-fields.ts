// Reads the fields of a row as what they must be. Every field is read once, and what nobody reads is refused: a
// field that this version does not know would be forgotten, and the state be another than the one that was written.
// Not here: which line it is; whoever opens the lines adds that (decode.ts).

import { headOf } from "../../cut-text.ts";
import { JournalDamagedError } from "../../errors.ts";
import { limits } from "../../limits.ts";

/** @throws JournalDamagedError */
export function refuse(found: string, field?: string): never {
  throw new JournalDamagedError(found, field === undefined ? {} : { field });
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

export class Fields {
  readonly #value: Readonly<Record<string, unknown>>;
  readonly #name: string;
  #unread: number;

  /** @param name for errors: of the row, or of the field that holds these */
  constructor(value: unknown, name: string) {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      refuse(`${name} has no fields`, name);
    this.#value = value as Readonly<Record<string, unknown>>;
    this.#name = name;
    this.#unread = Object.keys(value).length;
  }

  has(name: string): boolean {
    return this.#value[name] !== undefined;
  }

  /** A string with at least one character, or with none where that `mayBeEmpty`. */
  text<Text extends string>(name: string, { mayBeEmpty = false } = {}): Text {
    const value = this.#read(name);
    if (typeof value !== "string" || (value === "" && !mayBeEmpty)) this.#refuse(name, "a text", value);
    return value as Text;
  }

  optionalText<Text extends string>(name: string): Text | undefined {
    return this.has(name) ? this.text<Text>(name) : undefined;
  }

  /** A whole number in a range; `min` is 0 unless told. */
  whole<Whole extends number>(name: string, { min = 0, max = Number.MAX_SAFE_INTEGER }: Range = {}): Whole {
    const value = this.#read(name);
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
      this.#refuse(name, `a whole number from ${min} to ${max}`, value);
    return value as Whole;
  }

  optionalWhole<Whole extends number>(name: string, range: Range = {}): Whole | undefined {
    return this.has(name) ? this.whole<Whole>(name, range) : undefined;
  }

  /** A finite number in a range; `min` is 0 unless told. */
  amount(name: string, { min = 0, max = Number.MAX_VALUE }: Range = {}): number {
    const value = this.#read(name);
    if (typeof value !== "number" || !(value >= min && value <= max))
      this.#refuse(name, `a number from ${min} to ${max}`, value);
    return value;
  }

  optionalAmount(name: string, range: Range = {}): number | undefined {
    return this.has(name) ? this.amount(name, range) : undefined;
  }

  flag(name: string): boolean {
    const value = this.#read(name);
    if (typeof value !== "boolean") this.#refuse(name, "true or false", value);
    return value;
  }

  oneOf<Choice extends string | number>(name: string, choices: readonly Choice[]): Choice {
    const value = this.#read(name);
    if (!choices.includes(value as Choice)) this.#refuse(name, `one of ${choices.join(", ")}`, value);
    return value as Choice;
  }

  list(name: string): readonly unknown[] {
    const value = this.#read(name);
    if (!Array.isArray(value)) this.#refuse(name, "a list", value);
    return value;
  }

  /** A list of texts, none twice. */
  names<Name extends string>(name: string): readonly Name[] {
    const list = this.list(name);
    if (list.length === 0) return [];
    const isFine = list.every((item) => typeof item === "string" && item !== "");
    if (!isFine || new Set(list).size !== list.length) this.#refuse(name, "a list of different names", list);
    return list as readonly Name[];
  }

  /** None where the field is absent, and at least one where it is there: each list is written in one way. */
  optionalNames<Name extends string>(name: string): readonly Name[] {
    if (!this.has(name)) return [];
    const names = this.names<Name>(name);
    if (names.length === 0) this.#refuse(name, "one name at least, or absent", names);
    return names;
  }

  /** What another reader makes of the fields within a field. */
  within<Value>(name: string, read: (fields: Fields) => Value): Value {
    const fields = new Fields(this.#read(name), `${this.#name}.${name}`);
    const value = read(fields);
    fields.end();
    return value;
  }

  optionalWithin<Value>(name: string, read: (fields: Fields) => Value): Value | undefined {
    return this.has(name) ? this.within(name, read) : undefined;
  }

  /** The object itself, once a reader that passes no value on has looked at all of it: with its fields in the order
   *  in which they stood, which shows wherever it is written again. */
  checked<Value extends object>(name: string, look: (fields: Fields) => void): Value {
    this.within(name, look);
    return this.#value[name] as Value;
  }

  optionalChecked<Value extends object>(name: string, look: (fields: Fields) => void): Value | undefined {
    return this.has(name) ? this.checked<Value>(name, look) : undefined;
  }

  /** An object of texts, whatever their names. */
  texts(name: string): Readonly<Record<string, string>> {
    const value = this.#read(name);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (!isObject || !Object.values(value).every((text) => typeof text === "string"))
      this.#refuse(name, "texts by name", value);
    return value as Readonly<Record<string, string>>;
  }

  /** All that was to be read has been. */
  end(): void {
    if (this.#unread !== 0) refuse(`${this.#name} has fields that this version does not know`, this.#name);
  }

  #read(name: string): unknown {
    const value = this.#value[name];
    if (value !== undefined) this.#unread -= 1;
    return value;
  }

  #refuse(name: string, wanted: string, found: unknown): never {
    const field = `${this.#name}.${name}`;
    const shown =
      found === undefined ? "missing" : headOf(JSON.stringify(found) ?? "", limits.errorFieldCharactersMax);
    refuse(`${field} is ${shown}, not ${wanted}`, field);
  }
}

/** All members of a union: the compiler asks for one that is added. */
export function allOf<Choice extends string>(choices: Readonly<Record<Choice, true>>): readonly Choice[] {
  return Object.keys(choices) as Choice[];
}

/** Puts what is not there yet into a map. */
export function addNew<Key, Value>(
  map: { readonly size: number; set(key: Key, value: Value): unknown },
  key: Key,
  value: Value,
  what: string,
  name = String(key),
): void {
  const { size } = map;
  map.set(key, value);
  if (map.size === size) refuse(`${what} ${name} stands there twice`);
}

/** @throws JournalDamagedError when nothing of that name was read before */
export function known<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key, what: string): Value {
  const value = map.get(key);
  if (value === undefined) refuse(`there is no ${what} ${String(key)}`);
  return value;
}
