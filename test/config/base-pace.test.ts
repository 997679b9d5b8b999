// Intervals of snapshots from environment variables.

import { expect, it } from "vitest";
import { basePace } from "../../src/config/base-pace.ts";

it("comes from variables, and an empty one says nothing", () => {
  expect(basePace({})).toEqual({});
  expect(basePace({ WAGGLE_BASE_EVENTS: "400", WAGGLE_BASE_SYNC: "" })).toEqual({
    everyEvents: 400,
  });
  expect(basePace({ WAGGLE_BASE_EVENTS: "", WAGGLE_BASE_SYNC: "10m" })).toEqual({
    baseSyncMs: 600_000,
  });
});

it("an invalid value is refused with the variable's name", () => {
  for (const wrong of ["abc", "0", "-1", "1.5", "NaN", "Infinity", "1e3"])
    expect(() => basePace({ WAGGLE_BASE_EVENTS: wrong })).toThrow(
      /^WAGGLE_BASE_EVENTS: must be a number of events, from 1$/,
    );
  for (const wrong of ["abc", "120", "-1s"])
    expect(() => basePace({ WAGGLE_BASE_SYNC: wrong })).toThrow(
      /^WAGGLE_BASE_SYNC: must be a duration such as 2m or 500ms$/,
    );
});
