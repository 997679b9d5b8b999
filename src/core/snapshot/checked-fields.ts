// Reads and checks the fields of a row. Every field is read once, and unread fields are refused: dropping a field of a
// newer version would change the state. Not here: the number of the line, which the decoder adds (decode.ts).

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

  /** @param name for errors: of the row, or of the field around these fields */
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

  /** A string with at least one character, or possibly none with `mayBeEmpty`. */
  text<Text extends string>(name: string, { mayBeEmpty = false } = {}): Text {
    const value = this.#read(name);
    if (typeof value !== "string" || (value === "" && !mayBeEmpty)) this.#refuse(name, "a text", value);
    return value as Text;
  }

  optionalText<Text extends string>(name: string): Text | undefined {
    return this.has(name) ? this.text<Text>(name) : undefined;
  }

  /** Absent, or true. */
  optionalTrue(name: string): void {
    if (!this.has(name)) return;
    const value = this.#read(name);
    if (value !== true) this.#refuse(name, "true", value);
  }

  /** A whole number in a range; `min` defaults to 0. */
  whole<Whole extends number>(name: string, { min = 0, max = Number.MAX_SAFE_INTEGER }: Range = {}): Whole {
    const value = this.#read(name);
    if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
      this.#refuse(name, `a whole number from ${min} to ${max}`, value);
    return value as Whole;
  }

  optionalWhole<Whole extends number>(name: string, range: Range = {}): Whole | undefined {
    return this.has(name) ? this.whole<Whole>(name, range) : undefined;
  }

  /** A finite number in a range; `min` defaults to 0. */
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

  /** A list of different texts. */
  names<Name extends string>(name: string): readonly Name[] {
    const list = this.list(name);
    if (list.length === 0) return [];
    const isFine = list.every((item) => typeof item === "string" && item !== "");
    if (!isFine || new Set(list).size !== list.length) this.#refuse(name, "a list of different names", list);
    return list as readonly Name[];
  }

  /** Empty when the field is absent. A present list must have members, so that each list has one written form. */
  optionalNames<Name extends string>(name: string): readonly Name[] {
    if (!this.has(name)) return [];
    const names = this.names<Name>(name);
    if (names.length === 0) this.#refuse(name, "one name at least, or absent", names);
    return names;
  }

  /** The result of a reader for the fields within a field. */
  within<Value>(name: string, read: (fields: Fields) => Value): Value {
    const fields = new Fields(this.#read(name), `${this.#name}.${name}`);
    const value = read(fields);
    fields.end();
    return value;
  }

  optionalWithin<Value>(name: string, read: (fields: Fields) => Value): Value | undefined {
    return this.has(name) ? this.within(name, read) : undefined;
  }

  /**
   * The object itself, once a reader has checked all its fields. The object keeps the order of its fields, because the
   * order shows when the object is written again.
   */
  checked<Value extends object>(name: string, look: (fields: Fields) => void): Value {
    this.within(name, look);
    return this.#value[name] as Value;
  }

  optionalChecked<Value extends object>(name: string, look: (fields: Fields) => void): Value | undefined {
    return this.has(name) ? this.checked<Value>(name, look) : undefined;
  }

  /** An object of texts, with any field names. */
  texts(name: string): Readonly<Record<string, string>> {
    const value = this.#read(name);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (!isObject || !Object.values(value).every((text) => typeof text === "string"))
      this.#refuse(name, "texts by name", value);
    return value as Readonly<Record<string, string>>;
  }

  optionalTexts(name: string): Readonly<Record<string, string>> | undefined {
    return this.has(name) ? this.texts(name) : undefined;
  }

  /** An object of lists of texts, with any field names and no list empty. */
  optionalLists(name: string): Readonly<Record<string, readonly string[]>> | undefined {
    if (!this.has(name)) return undefined;
    const value = this.#read(name);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    const isList = (list: unknown) =>
      Array.isArray(list) && list.length > 0 && list.every((text) => typeof text === "string");
    if (!isObject || !Object.values(value).every(isList)) this.#refuse(name, "lists of texts by name", value);
    return value as Readonly<Record<string, readonly string[]>>;
  }

  /** Requires that all fields were read. */
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

/** All members of a union: the compiler reports a missing member. */
export function allOf<Choice extends string>(choices: Readonly<Record<Choice, true>>): readonly Choice[] {
  return Object.keys(choices) as Choice[];
}

/** Adds a key that is not in the map yet. */
export function addNew<Key, Value>(
  map: { readonly size: number; set(key: Key, value: Value): unknown },
  key: Key,
  value: Value,
  what: string,
  name = String(key),
): void {
  const { size } = map;
  map.set(key, value);
  if (map.size === size) refuse(`${what} ${name} stands twice`);
}

/** @throws JournalDamagedError when no row of the name was read before */
export function known<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key, what: string): Value {
  const value = map.get(key);
  if (value === undefined) refuse(`there is no ${what} ${String(key)}`);
  return value;
}
