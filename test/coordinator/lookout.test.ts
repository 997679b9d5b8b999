// How often something is looked at.

import { beforeEach, describe, expect, it } from "vitest";
import { Lookout } from "../../src/coordinator/lookout.ts";
import { ManualClock } from "../support/manual-clock.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

let clock: ManualClock;
let looks: (() => void)[];
let lookout: Lookout;

beforeEach(() => {
  clock = new ManualClock();
  looks = [];
  const look = () => new Promise<void>((resolve) => looks.push(resolve));
  lookout = new Lookout({ clock, everyMs: 1_000, look });
  lookout.look();
});

async function endLook(): Promise<void> {
  looks.at(-1)?.();
  await settled();
}

describe("a lookout", () => {
  it("looks at once, and again when the last look is old", async () => {
    await endLook();
    await clock.advance(999);
    lookout.look();
    expect(looks).toHaveLength(1);
    await clock.advance(1);
    lookout.look();
    expect(looks).toHaveLength(2);
  });

  it("looks one at a time, however old the last look is", async () => {
    await clock.advance(5_000);
    lookout.look();
    expect(looks).toHaveLength(1);
    await endLook();
    lookout.look();
    expect(looks).toHaveLength(2);
  });

  it("looks soon when it is told to, but not before the last look is over", async () => {
    lookout.lookSoon();
    lookout.look();
    expect(looks).toHaveLength(1);
    await endLook();
    lookout.look();
    expect(looks).toHaveLength(2);
  });
});
