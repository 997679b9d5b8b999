// The leadership chart: every edge, and that only one state decides.

import { describe, expect, it } from "vitest";
import { isLeading, leadershipMachine } from "../../machines/leadership.ts";
import { type SignalTable, snapshotIn, walkEveryEdge } from "./walk.ts";

const types = [
  "SILENCE",
  "HEARD",
  "LOG_WHOLE",
  "LOG_SHORT",
  "HEALED",
  "WON",
  "REFUSED",
  "REPLAYED",
  "LOST",
  "DEPOSED",
  "HALT",
] as const;
const signals: SignalTable<typeof leadershipMachine> = Object.fromEntries(
  types.map((type) => [type, { type }]),
);

const back = { HEARD: "following", REFUSED: "following", LOST: "following" };
const HALT = "halted";

const edges = {
  following: { SILENCE: "inspecting", HALT },
  inspecting: { LOG_WHOLE: "campaigning", LOG_SHORT: "healing", HEARD: "following", LOST: "following", HALT },
  healing: { HEALED: "campaigning", ...back, HALT },
  campaigning: { WON: "replaying", ...back, HALT },
  replaying: { REPLAYED: "leading", DEPOSED: "following", LOST: "following", HALT },
  leading: { DEPOSED: "following", LOST: "following", HALT },
  halted: {},
};

describe("the leadership chart", () => {
  it("goes where the table says and nowhere else", () => {
    walkEveryEdge(leadershipMachine, signals, edges);
  });

  it("leads in one state only", () => {
    const leading = Object.keys(edges).filter((path) => isLeading(snapshotIn(leadershipMachine, path)));
    expect(leading).toEqual(["leading"]);
  });
});
