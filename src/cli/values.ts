// Parsers for values of flags: durations, times, counts, JSON. Each error says what the value must be, without the flag
// and the value (wrong-value.ts adds both). Not here: valid tasks (protocol/schemas.ts; the coordinator checks again).

import { InvalidArgumentError } from "commander";
import { durationIn } from "../config/duration.ts";
import { nextClockTime, timeIn } from "../config/time.ts";
import { headOf } from "../cut-text.ts";
import { NAME_PATTERN, SUBJECT_TOKEN_PATTERN } from "../ids.ts";
import { type ListenAddress, listenAddressIn } from "../metrics/listen-address.ts";
import { check } from "../protocol/codec.ts";
import { kindSchema, LABEL_PATTERN, labelsSchema, needsSchema } from "../protocol/schemas.ts";

/** `500ms`, `30s`, `5m`, `2h`, `1d`, `1h30m` in milliseconds. @throws InvalidArgumentError */
export function parseDuration(text: string): number {
  const ms = durationIn(text);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError("must be a duration with a unit (500ms, 30s, 5m, 2h, 1d)");
}

/** An ISO 8601 time, or relative to now: `+5m`, `-10m`. @throws InvalidArgumentError */
export function parseTime(text: string, now: number = Date.now()): Date {
  const time = timeIn(text, now) ?? nextClockTime(text, now);
  if (time !== undefined) return time;
  throw new InvalidArgumentError(
    "must be a time (2026-11-20T18:00:00Z; 18:00 local time, today or tomorrow; +5m from now)",
  );
}

/** Where `events` begins: `start`, a batch index, or a time. @throws InvalidArgumentError */
export function parseFrom(text: string): number | Date | "start" {
  if (text === "start") return "start";
  if (/^\d+$/.test(text)) {
    const idx = Number(text);
    if (idx >= 1 && Number.isSafeInteger(idx)) return idx;
    throw new InvalidArgumentError("must be a batch index from 1");
  }
  const time = timeIn(text, Date.now());
  if (time !== undefined) return time;
  throw new InvalidArgumentError("must be start, a batch index, or a time (2026-11-20T18:00:00Z, -10m)");
}

/** Names of environment variables, one per flag. @throws InvalidArgumentError */
export function variableList(text: string, before: readonly string[] = []): readonly string[] {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(text)) return [...before, text];
  throw new InvalidArgumentError("must be the name of an environment variable, like OPENAI_API_KEY");
}

/** A parser of whole numbers within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^[+-]?\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}`);
  };
}

/** A parser of numbers within bounds. */
export function numberBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== "" && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`must be a number from ${min} to ${max}`);
  };
}

/** Parses a flag that may be repeated, or hold several names separated by commas. */
export function nameList(text: string, before: readonly string[] | undefined): readonly string[] {
  const names = text.split(",").map((name) => name.trim());
  if (names.includes("")) throw new InvalidArgumentError("must not have an empty name");
  return [...(before ?? []), ...names];
}

/** The same for kinds. */
export function kindList(text: string, before: readonly string[] | undefined): readonly string[] {
  const kinds = nameList(text, before);
  for (const kind of kinds) kindName(kind);
  return kinds;
}

/** A kind. @throws InvalidArgumentError */
export function kindName(text: string): string {
  const checked = check(text, kindSchema);
  if (checked.ok) return text;
  throw new InvalidArgumentError(checked.message.replace(/^.*?: /, ""));
}

/** A name with printable characters and without spaces. @throws InvalidArgumentError */
export function plainName(text: string): string {
  if (NAME_PATTERN.test(text)) return text;
  throw new InvalidArgumentError("must be 1–128 printable characters without spaces");
}

/** Collects the names of a repeated flag. @throws InvalidArgumentError */
export function plainNames(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), plainName(text)];
}

/** Collects `--label name=value`. @throws InvalidArgumentError */
export function labelMap(
  text: string,
  before: Readonly<Record<string, string>> | undefined,
): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("must be name=value");
  const labels = { ...before, [text.slice(0, at)]: text.slice(at + 1) };
  const checked = check(labels, labelsSchema);
  if (checked.ok) return labels;
  throw new InvalidArgumentError(namesAndValues(checked.message));
}

/** Collects `--need label=value`, also with several values separated by commas. @throws InvalidArgumentError */
export function needMap(
  text: string,
  before: Readonly<Record<string, readonly string[]>> | undefined,
): Record<string, readonly string[]> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("must be label=value, like gpu=a100");
  const label = text.slice(0, at);
  const values = text
    .slice(at + 1)
    .split(",")
    .map((value) => value.trim());
  if (values.includes(""))
    throw new InvalidArgumentError("must not have an empty value; name one, like gpu=a100");
  const needs = { ...before, [label]: [...(before?.[label] ?? []), ...values] };
  const checked = check(needs, needsSchema);
  if (checked.ok) return needs;
  throw new InvalidArgumentError(namesAndValues(checked.message));
}

/** The schema speaks of a name or of a value, without saying which. */
function namesAndValues(message: string): string {
  return message.replace(/^.*?: /, "").replace(/^must be (?=\d)/, "must have a name and a value of ");
}

/** Collects `--attribute name=value`. @throws InvalidArgumentError */
export function attributeMap(
  text: string,
  before: Readonly<Record<string, string>> | undefined,
): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("must be name=value");
  const name = text.slice(0, at);
  if (before !== undefined && Object.hasOwn(before, name))
    throw new InvalidArgumentError(
      `the attribute ${headOf(name, 40)} is given twice: an attribute has one value`,
    );
  if (LABEL_PATTERN.test(name)) return { ...before, [name]: text.slice(at + 1) };
  throw new InvalidArgumentError("must have a name of 1–64 characters of A–Z a–z 0–9 _ . / -");
}

/** `HOST:PORT` to listen on. @throws InvalidArgumentError */
export function listenAddress(text: string): ListenAddress {
  const address = listenAddressIn(text);
  if (address !== undefined) return address;
  throw new InvalidArgumentError(
    "must be HOST:PORT, an address and a port up to 65535, like 127.0.0.1:9464 or [::1]:9464",
  );
}

/** An id that is a token of a subject: swarm, project, agent. @throws InvalidArgumentError */
export function subjectToken(text: string): string {
  if (SUBJECT_TOKEN_PATTERN.test(text)) return text;
  throw new InvalidArgumentError("must be 1–64 characters of A–Z a–z 0–9 _ -");
}
