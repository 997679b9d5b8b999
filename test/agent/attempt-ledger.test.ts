// The agent's record of assignments, whatever the network loses or repeats. The model is a set of numbers.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AttemptLedger } from "../../src/agent/attempt-ledger.ts";
import { limits } from "../../src/limits.ts";
import type { Assignment } from "../../src/protocol/schemas.ts";

function anAssignment(number: number): Assignment {
  return {
    number,
    task: `t${number}`,
    attempt: 1,
    token: `1.${number}`,
    kind: "k",
    project: "p",
    user: "u",
    payload: "",
    timeoutMs: 1,
    maxAttempts: 3,
  };
}

const number = fc.integer({ min: 1, max: 12 });
const step = fc.oneof(
  fc.record({ type: fc.constant("deliver" as const), numbers: fc.array(number, { maxLength: 6 }) }),
  fc.record({ type: fc.constantFrom("revoke" as const, "end" as const, "release" as const), number }),
);

describe("the ledger", () => {
  it("starts each assignment once, holds it until released, and sees no further than the first gap", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const ledger = new AttemptLedger("session");
        const delivered = new Set<number>();
        const released = new Set<number>();
        const ended = new Set<number>();
        const started: string[] = [];
        const keyOf = (n: number) => `session.${n}`;

        for (const each of steps) {
          if (each.type === "deliver") {
            const arrivals = ledger.receive(each.numbers.map(anAssignment), 0);
            started.push(...arrivals.map(({ held }) => held.task));
            for (const n of each.numbers) delivered.add(n);
          } else if (each.type === "revoke") {
            const isReported =
              ledger.revoke([{ project: "p", task: `t${each.number}`, attempt: 1 }]).length === 1;
            expect(!isReported || (delivered.has(each.number) && !ended.has(each.number))).toBe(true);
          } else if (each.type === "end") {
            const isFirst = delivered.has(each.number) && !ended.has(each.number);
            expect(ledger.end(keyOf(each.number)) !== undefined).toBe(isFirst);
            if (isFirst) ended.add(each.number);
          } else {
            ledger.release(keyOf(each.number));
            if (delivered.has(each.number)) ended.add(each.number) && released.add(each.number);
          }

          let seen = 0;
          while (delivered.has(seen + 1)) seen += 1;
          expect(ledger.seen).toBe(seen);
          const held = [...delivered].filter((n) => !released.has(n)).map((n) => `t${n}`);
          expect(
            ledger
              .held()
              .map(({ task }) => task)
              .sort(),
          ).toEqual(held.sort());
          expect(ledger.running).toBe([...delivered].filter((n) => !ended.has(n)).length);
          expect(ledger.isEmpty).toBe(held.length === 0);
        }
        expect(started.length).toBe(new Set(started).size);
        expect(new Set(started)).toEqual(new Set([...delivered].map((n) => `t${n}`)));
      }),
      { numRuns: 500 },
    );
  });

  it("ignores assignments too far ahead: they are sent again", () => {
    const ledger = new AttemptLedger("session");
    const far = anAssignment(limits.assignmentsAheadMax + 1);
    expect(ledger.receive([far], 0)).toEqual([]);
    ledger.receive([anAssignment(1)], 0);
    expect(ledger.receive([far], 0)).toHaveLength(1);
  });

  it("tells attempts of one task id apart, by project and number", () => {
    const ledger = new AttemptLedger("session");
    const names = [
      { project: "p", task: "t", attempt: 1 },
      { project: "q", task: "t", attempt: 1 },
      { project: "p", task: "t", attempt: 2 },
    ];
    const held = names.map((name, at) => ledger.receive([{ ...anAssignment(at + 1), ...name }], 0)[0]?.held);
    expect(held).toMatchObject(names);
    expect(
      ledger.receive(
        names.map((name, at) => ({ ...anAssignment(at + 4), ...name })),
        0,
      ),
    ).toEqual([]);
    ledger.release(held[0]?.key ?? "");
    expect(names.map((name) => ledger.revoke([name]))).toEqual([[], [held[1]], [held[2]]]);
    ledger.release(held[1]?.key ?? "");
    ledger.release(held[2]?.key ?? "");
    const arrivals = ledger.receive(
      names.map((name, at) => ({ ...anAssignment(at + 7), ...name })),
      0,
    );
    expect(arrivals.map(({ held }) => held.isRevoked)).toEqual([true, false, false]);
  });

  it("starts no assignment marked as revoked", () => {
    const [arrival] = new AttemptLedger("session").receive([{ ...anAssignment(1), revoked: true }], 0);
    expect(arrival?.held.isRevoked).toBe(true);
  });

  it("forgets the oldest of too many early revokes", () => {
    const ledger = new AttemptLedger("session");
    const count = limits.earlyRevokesMax + 1;
    for (let n = 1; n <= count; n += 1) ledger.revoke([{ project: "p", task: `t${n}`, attempt: 1 }]);
    const [oldest, newest] = ledger.receive([anAssignment(1), anAssignment(count)], 0);
    expect(oldest?.held.isRevoked).toBe(false);
    expect(newest?.held.isRevoked).toBe(true);
  });
});
