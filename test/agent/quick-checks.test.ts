// The checks by hand of an agent's messages accept a message if and only if its schema accepts it as it is.

import { describe, expect, it } from "vitest";
import { readPush } from "../../src/agent/quick-checks.ts";
import { decode, encode, encodeText } from "../../src/protocol/codec.ts";
import { agentPushSchema } from "../../src/protocol/schemas.ts";
import { Mutator } from "../support/mutator.ts";
import { expectEqualToSchema } from "../support/quick-check-trial.ts";
import { agentTrials } from "./quick-check-trials.ts";

/** Of each of the ten sorts: 10⁵ together. */
const MESSAGES = 10_000;

describe.each(agentTrials)("the check of $name", (trial) => {
  it(
    `decides as the schema, in ${MESSAGES} messages`,
    () => expectEqualToSchema(trial, MESSAGES, 1),
    200_000,
  );
});

describe("a push", () => {
  const assignment = { number: 1, project: "p", task: "t", attempt: 1, token: "1.1", kind: "k", user: "u" };
  const push = {
    ...{ type: "assign", term: 1, incarnation: "life" },
    assignments: [{ ...assignment, payload: "", timeoutMs: 1, maxAttempts: 1 }],
  };

  it("that is wrong is refused in the words of the schema", () => {
    const bytes = encodeText('{"type":"assign","term":1,"incarnation":"a","assignments":[{}]}');
    expect(readPush(bytes)).toMatchObject({ ok: false, field: "assignments[0].number" });
    expect(readPush(encodeText("{"))).toMatchObject({ ok: false });
    expect(readPush(Uint8Array.of(0x22, 0xff, 0x22))).toMatchObject({ ok: false });
  });

  it("loses its unknown fields", () => {
    const [first] = push.assignments;
    const newer = { ...push, later: 1, assignments: [{ ...first, later: {} }] };
    expect(readPush(encode(newer))).toEqual({ ok: true, value: push });
  });

  it("is refused for an unknown field that is nested too deeply", () => {
    const bytes = encodeText(
      `{"later":${"[".repeat(100)}${"]".repeat(100)},${JSON.stringify(push).slice(1)}`,
    );
    expect(readPush(bytes)).toMatchObject({ ok: false, message: expect.stringContaining("nested deeper") });
  });

  it("is read as by its schema", () => {
    const pushes = agentTrials.filter(({ schema }) => schema === agentPushSchema);
    expect(pushes).toHaveLength(2);
    for (const { make, strange } of pushes) {
      const mutator = new Mutator(3, strange);
      for (let count = 0; count < 2_000; count += 1) {
        const bytes = encode(mutator.mutated(make(mutator)).message);
        expect(readPush(bytes)).toStrictEqual(decode(bytes, agentPushSchema));
      }
    }
  });
});
