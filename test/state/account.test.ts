// The charge of a grant, as in start-time fair queueing: its start, its amount, and the amount carried on.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Account, charge, newAccount } from "../../src/state/account.ts";

function anAccount(overrides: Partial<Account> = {}): Account {
  return { ...newAccount(), ...overrides };
}

describe("a charge", () => {
  it("advances the clock by cost over share, from its previous value", () => {
    const account = anAccount({ clock: 5_000 });
    expect(charge(account, 1_000, 3_000, 2)).toBe(5_000);
    expect(account).toMatchObject({ clock: 6_500, carried: 0 });
  });

  it("starts at virtual time for an account behind virtual time: idle time is no credit", () => {
    const account = anAccount({ clock: 10 });
    expect(charge(account, 9_000, 1_000, 1)).toBe(9_000);
    expect(account.clock).toBe(10_000);
  });

  it("adds an undercharge to the next charge", () => {
    const account = anAccount({ carried: 500 });
    charge(account, 0, 1_000, 1);
    expect(account).toMatchObject({ clock: 1_500, carried: 0 });
  });

  it("returns an overcharge over as many grants as needed, and no clock goes back", () => {
    const account = anAccount({ clock: 4_000, carried: -2_500 });
    const clocks: number[] = [];
    for (let grant = 0; grant < 4; grant += 1) {
      charge(account, 0, 1_000, 1);
      clocks.push(account.clock);
    }
    expect(clocks).toEqual([4_000, 4_000, 4_500, 5_500]);
    expect(account.carried).toBe(0);
  });

  it("never moves a clock back, never starts before virtual time, and loses nothing of a cost", () => {
    const step = fc.record({
      passes: fc.nat(5_000),
      cost: fc.nat(9_000),
      corrected: fc.integer({ min: -9_000, max: 9_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const account = newAccount();
        let virtualTime = 0;
        let [owed, advanced] = [0, 0];
        for (const { passes, cost, corrected } of steps) {
          virtualTime += passes;
          account.carried += corrected;
          const before = account.clock;
          const start = charge(account, virtualTime, cost, 1);
          expect(start).toBe(Math.max(before, virtualTime));
          expect(account.clock).toBeGreaterThanOrEqual(start);
          owed += cost + corrected;
          advanced += account.clock - start;
          expect(advanced + account.carried).toBe(owed);
        }
      }),
    );
  });
});
