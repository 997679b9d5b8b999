// Checks of arguments from callers outside, with the field's name in the refusal. For the package's public functions:
// code run once per candidate must not call the checks.

import { headOf } from "../cut-text.ts";
import { InvalidValueError } from "../errors.ts";

/** @throws InvalidValueError unless the value is a finite number ≥ 0 */
export function checkAmount(value: number, field: string): void {
  checkFinite(value, field);
  if (value < 0) refuse(field, `must be 0 or more, not ${value}`);
}

/** @throws InvalidValueError unless the value is a finite number > 0 */
export function checkPositive(value: number, field: string): void {
  if (!(Number.isFinite(value) && value > 0)) refuse(field, `must be a number above 0, not ${said(value)}`);
}

/** @throws InvalidValueError unless the value is a finite number */
export function checkFinite(value: number, field: string): void {
  if (!Number.isFinite(value)) refuse(field, `must be a number, not ${said(value)}`);
}

/** @throws InvalidValueError unless the value is a whole number ≥ `least` */
export function checkWhole(value: number, field: string, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  refuse(field, `must be a whole number from ${least}, not ${said(value)}`);
}

/** @throws InvalidValueError unless the value is a string with at least one character */
export function checkText(value: string, field: string): void {
  if (typeof value !== "string" || value === "") refuse(field, `must be text, not ${said(value)}`);
}

/** @throws InvalidValueError unless the value is an object; a list is no object */
export function checkObject(value: object, field: string): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  refuse(field, `must be an object, not ${said(value)}`);
}

/**
 * Refuses unknown fields. Types catch a misspelt name in TypeScript; plain JavaScript would ignore the field.
 * @throws InvalidValueError naming the first field with a value outside `known`
 */
export function checkNames(value: object, known: readonly string[], what: string): void {
  for (const [name, given] of Object.entries(value)) {
    if (given === undefined || known.includes(name)) continue;
    refuse(name, `is unknown; ${what} has the fields ${known.join(", ")}`);
  }
}

/** @throws InvalidValueError unless the value is a list of objects */
export function checkObjects(list: readonly object[], field: string): void {
  checkEach(list, field, checkObject);
}

/** @throws InvalidValueError unless the value is a list of finite numbers ≥ 0 */
export function checkAmounts(list: readonly number[], field: string): void {
  checkEach(list, field, checkAmount);
}

function checkEach<Member>(
  list: readonly Member[],
  field: string,
  check: (member: Member, field: string) => void,
): void {
  if (!Array.isArray(list)) refuse(field, `must be a list, not ${said(list)}`);
  for (const [at, member] of list.entries()) check(member, `${field}[${at}]`);
}

/** @throws InvalidValueError always */
export function refuse(field: string, sentence: string): never {
  throw new InvalidValueError(`${field}: ${sentence}`, { field });
}

/** A short description of any value; never throws. */
export function said(value: unknown): string {
  if (typeof value === "string") return value === "" ? "empty text" : `the text '${headOf(value, 40)}'`;
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
