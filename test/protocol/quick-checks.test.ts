// The checks by hand against their schemas, over many right and wrong messages from one seed.

import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { encode } from "../../src/protocol/codec.ts";
import {
  isPlainDonePush,
  isPlainSubmitResponse,
  type QuickCheck,
  readQuickly,
} from "../../src/protocol/quick-checks.ts";
import { donePushSchema, submitResponseSchema } from "../../src/protocol/schemas.ts";
import { SeededRandom } from "../../src/sim/random.ts";

const MESSAGES = 20_000;
const random = new SeededRandom("quick-checks");

function below(bound: number): number {
  return Math.floor(random.fraction() * bound);
}

function oneOf<Value>(values: readonly Value[]): Value {
  return values[below(values.length)] as Value;
}

const strange: readonly unknown[] = [
  ...[null, true, false, 0, -0, 1, -1, 1.5, 1e300, 2 ** 53, "", "x", "base64", "completed", "ok"],
  ...[[], ["x"], {}, { ok: true }, { ok: true, task: "t" }, { term: 1 }, Number.POSITIVE_INFINITY],
];

/** A subset of the optional fields. */
function some(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(() => random.fraction() < 0.3));
}

function anOutcome(): Record<string, unknown> {
  return {
    ...{ project: "default", task: `t${below(9)}`, attempts: below(4) },
    state: oneOf(["completed", "failed", "cancelled", "expired", "dead-lettered"]),
    ...some({ round: 2, agent: "a1", result: "done", encoding: "base64", tokens: 7, latencyMs: 1.5 }),
    ...some({ failureClass: "invalid", reason: "attempts", error: "no", gone: true }),
  };
}

function anAnswer(): Record<string, unknown> {
  if (random.fraction() < 0.05) return { ok: false, code: "WAGGLE_CONFLICT", message: "other content" };
  const warnings =
    random.fraction() < 0.1 ? { warnings: [{ code: "no-agent-serves-kind", nearMisses: [] }] } : {};
  return { ok: true, task: `t${below(9)}`, ...some({ duplicate: random.fraction() < 0.5 }), ...warnings };
}

function aMessage(list: string, item: () => unknown): Record<string, unknown> {
  return { term: below(9), idx: below(99), [list]: Array.from({ length: below(3) }, item) };
}

/** Changes one field of the message or of an item: another value, no value, or an unknown name. */
function spoilt(message: Record<string, unknown>, list: string): unknown {
  const items = message[list] as Record<string, unknown>[];
  const target = items.length > 0 && random.fraction() < 0.7 ? oneOf(items) : message;
  const name =
    random.fraction() < 0.15 ? oneOf(["later", "__proto__", "constructor"]) : oneOf(Object.keys(target));
  if (random.fraction() < 0.2) delete target[name];
  else Object.defineProperty(target, name, { value: oneOf(strange), enumerable: true, configurable: true });
  if (items.length > 0 && random.fraction() < 0.05) items[0] = oneOf(strange) as Record<string, unknown>;
  return random.fraction() < 0.01 ? oneOf(strange) : message;
}

describe.each([
  ["an answer to submissions", "answers", anAnswer, isPlainSubmitResponse, submitResponseSchema],
  ["a notification of outcomes", "ended", anOutcome, isPlainDonePush, donePushSchema],
] as const)("the check of %s", (_, list, item, isRight, schema) => {
  it(`accepts nothing that the schema refuses or changes, in ${MESSAGES} messages`, () => {
    const counts = { quick: 0, refused: 0 };
    for (let made = 0; made < MESSAGES; made += 1) {
      const right = aMessage(list, item);
      const bytes = encode(made % 2 === 0 ? right : spoilt(right, list));
      const quick: unknown = readQuickly(bytes, isRight as QuickCheck<unknown>);
      const checked = (schema as z.ZodType).safeParse(JSON.parse(Buffer.from(bytes).toString()));
      if (!checked.success) counts.refused += 1;
      if (quick === undefined) continue;
      counts.quick += 1;
      if (!checked.success || !isDeepStrictEqual(quick, checked.data))
        expect.fail(`accepted: ${Buffer.from(bytes).toString()}`);
    }
    expect(counts.quick).toBeGreaterThan(MESSAGES * 0.4);
    expect(counts.refused).toBeGreaterThan(MESSAGES * 0.1);
  });
});

it("a right notification needs no schema, whatever its optional fields", () => {
  for (let made = 0; made < 1_000; made += 1)
    expect(isPlainDonePush(aMessage("ended", anOutcome))).toBe(true);
});

it.each([
  ["no JSON", Buffer.from("{")],
  ["no UTF-8", Buffer.from([0x22, 0xff, 0x22])],
  ["a nest of arrays", Buffer.from("[".repeat(10_000) + "]".repeat(10_000))],
])("%s is left to the schema", (_, bytes) => {
  expect(readQuickly(bytes, isPlainDonePush)).toBeUndefined();
});
