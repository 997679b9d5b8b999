// Holds a check by hand equal to its schema, over many right and wrong messages from one seed. It compares what a
// reader of the bytes gets from the check and from `decode`.

import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import type { z } from "zod";
import { limits } from "../../src/limits.ts";
import { decode, encodeText, parseText } from "../../src/protocol/codec.ts";
import { type QuickCheck, readQuickly } from "../../src/protocol/quick-checks.ts";
import { FieldCoverage } from "./field-coverage.ts";
import { Mutator } from "./mutator.ts";

export interface Trial {
  readonly name: string;
  readonly isRight: (value: unknown) => boolean;
  readonly schema: z.ZodType;
  /** The part of the schema that the check is about. Absent: the schema. */
  readonly part?: z.ZodType;
  /** Any message that the part allows. */
  readonly make: (mutator: Mutator) => object;
  /** Values that a field may wrongly have. */
  readonly strange: readonly unknown[];
  /** Whether the check leaves a right message to the schema. Absent: it leaves none. */
  readonly isLeft?: (message: never) => boolean;
}

/** Numbers of JSON that `JSON.stringify` does not write. */
const NEGATIVE_ZERO = "the number -0";
const INFINITE = "the number 1e999";

function deepArray(depth: number): unknown {
  return depth === 0 ? [] : [deepArray(depth - 1)];
}

/** Values of JSON that a field of any message may wrongly have. */
export const strangeValues: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 1.5, 1e300, 2 ** 53 - 1, 2 ** 53, -(2 ** 53), NEGATIVE_ZERO, INFINITE],
  ...["", "x", "1", "base64", "ok", [], ["x"], [null], {}, { ok: true }, { ok: true, task: "t" }, { a: "x" }],
  ...[{ ok: false, code: "WAGGLE_GONE", message: "gone" }, { sha256: "0f", bytes: 4, later: 1 }, { a: 1 }],
  ...[JSON.parse('{"__proto__":"x"}'), deepArray(limits.jsonDepthMax)],
];

/** Makes `count` messages, each with up to three changes. The check must accept a message if and only if the schema
 *  accepts the message unchanged. The check must not accept a right message for which `isLeft` is true. */
export function expectEqualToSchema(trial: Trial, count: number, seed: number): void {
  const mutator = new Mutator(seed, trial.strange);
  const coverage = new FieldCoverage(trial.part ?? trial.schema);
  let quick = 0;
  let wrong = 0;
  for (let made = 0; made < count; made += 1) {
    const right = trial.make(mutator);
    coverage.noteMade(right);
    const { message, changed } = mutator.mutated(right);
    coverage.noteChanged(changed);
    const reading = read(trial, bytesOf(message));
    if (reading === "quick") quick += 1;
    if (reading === "wrong") wrong += 1;
  }
  expect(coverage.missing).toEqual([]);
  expect(quick).toBeGreaterThan(count / 10);
  expect(wrong).toBeGreaterThan(count / 10);
}

function read({ isRight, schema, isLeft }: Trial, bytes: Uint8Array): "quick" | "left" | "wrong" {
  const quick: unknown = readQuickly(bytes, isRight as QuickCheck<unknown>);
  const decoded = decode(bytes, schema);
  if (quick !== undefined) {
    if (!decoded.ok || !isDeepStrictEqual(quick, decoded.value)) return unlike("accepted", bytes);
    if (isLeft?.(quick as never) === true) return unlike("accepted, and not left to the schema", bytes);
    return "quick";
  }
  if (!decoded.ok) return "wrong";
  const isAsItIs = isDeepStrictEqual(parseText(bytes), decoded.value);
  if (isAsItIs && isLeft?.(decoded.value as never) !== true) return unlike("not accepted", bytes);
  return "left";
}

function unlike(what: string, bytes: Uint8Array): never {
  throw new Error(`${what}: ${Buffer.from(bytes).toString()}`);
}

function bytesOf(message: unknown): Uint8Array {
  const text = JSON.stringify(message);
  return encodeText(text.replaceAll(`"${NEGATIVE_ZERO}"`, "-0").replaceAll(`"${INFINITE}"`, "1e999"));
}
