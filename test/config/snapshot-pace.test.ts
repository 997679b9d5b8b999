// Intervals of snapshots from environment variables.

import { expect, it } from "vitest";
import { snapshotPace } from "../../src/config/snapshot-pace.ts";

it("comes from variables, and an empty one says nothing", () => {
  expect(snapshotPace({})).toEqual({});
  expect(snapshotPace({ WAGGLE_SNAPSHOT_EVENTS: "400", WAGGLE_SNAPSHOT_SYNC: "" })).toEqual({
    everyEvents: 400,
  });
  expect(snapshotPace({ WAGGLE_SNAPSHOT_EVENTS: "", WAGGLE_SNAPSHOT_SYNC: "10m" })).toEqual({
    snapshotSyncMs: 600_000,
  });
});

it("an invalid value is refused with the variable's name", () => {
  for (const wrong of ["abc", "0", "-1", "1.5", "NaN", "Infinity", "1e3"])
    expect(() => snapshotPace({ WAGGLE_SNAPSHOT_EVENTS: wrong })).toThrow(
      /^WAGGLE_SNAPSHOT_EVENTS: must be a number of events, from 1$/,
    );
  for (const wrong of ["abc", "120", "-1s"])
    expect(() => snapshotPace({ WAGGLE_SNAPSHOT_SYNC: wrong })).toThrow(
      /^WAGGLE_SNAPSHOT_SYNC: must be a duration such as 2m or 500ms$/,
    );
});
