// The fields that a property test has covered: a missing field is reported, and a schema that hides fields is refused.

import { expect, it } from "vitest";
import * as z from "zod";
import { FieldCoverage, fieldsOf } from "./field-coverage.ts";
import { Mutator } from "./mutator.ts";

const schema = z.object({
  term: z.int(),
  others: z
    .array(z.union([z.object({ agent: z.string() }), z.object({ code: z.string().nullable() })]))
    .min(1)
    .optional(),
  labels: z.record(z.string(), z.string()).default({}),
});

it("names the fields of objects, lists, unions and optional values", () => {
  expect(fieldsOf(schema)).toEqual([
    ...["term", "others", "others[]", "others[].agent", "others[].code", "labels"],
  ]);
});

it("refuses a schema that hides its fields", () => {
  expect(() => fieldsOf(z.object({ tasks: z.array(z.unknown()) }))).toThrow("unknown");
  expect(() => fieldsOf(z.object({ any: z.custom<string>() }))).toThrow("custom");
});

it("tells which fields were never made and never changed", () => {
  const coverage = new FieldCoverage(schema);
  coverage.noteMade({ term: 1, others: [{ agent: "a" }], labels: { gpu: "a100" } });
  for (const path of ["term", "others", "others[]", "labels"]) coverage.noteChanged([path]);
  coverage.noteChanged(["others[].agent", "term"]);
  coverage.noteChanged([]);
  expect(coverage.missing).toEqual([
    "others[].code: never made",
    "others[].agent: never changed alone",
    "others[].code: never changed alone",
  ]);
});

it("a mutator names what it changes, and reaches every field", () => {
  const mutator = new Mutator(1, [null, "x"]);
  const coverage = new FieldCoverage(schema);
  for (let count = 0; count < 500; count += 1) {
    const message = { term: 1, others: [{ agent: "a" }, { code: null }], labels: {} };
    coverage.noteMade(message);
    coverage.noteChanged(mutator.mutated(message).changed);
  }
  expect(coverage.missing).toEqual([]);
});
