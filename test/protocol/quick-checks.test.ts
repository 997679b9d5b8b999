// The checks by hand of a client's messages accept a message if and only if its schema accepts it as it is.

import { describe, expect, it } from "vitest";
import { isPlainDonePush, readQuickly } from "../../src/protocol/quick-checks.ts";
import { expectEqualToSchema } from "../support/quick-check-trial.ts";
import { protocolTrials } from "./quick-check-trials.ts";

/** Of each of the ten sorts: 10⁵ together. */
const MESSAGES = 10_000;

describe.each(protocolTrials)("the check of $name", (trial) => {
  it(
    `decides as the schema, in ${MESSAGES} messages`,
    () => expectEqualToSchema(trial, MESSAGES, 1),
    200_000,
  );
});

it.each([
  ["no JSON", Buffer.from("{")],
  ["no UTF-8", Buffer.from([0x22, 0xff, 0x22])],
  ["a nest of arrays", Buffer.from("[".repeat(10_000) + "]".repeat(10_000))],
])("%s is left to the schema", (_, bytes) => {
  expect(readQuickly(bytes, isPlainDonePush)).toBeUndefined();
});
