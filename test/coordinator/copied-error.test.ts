// An error that was copied from another thread is told apart as the one that was thrown there.

import { expect, it } from "vitest";
import { copyOf, errorOf } from "../../src/coordinator/compaction/copied-error.ts";
import { JournalDamagedError, MissingRecordsError, UnreachableError, WaggleError } from "../../src/errors.ts";
import { holeError, snapshotsFullError, strayError } from "../../src/journal/journal-errors.ts";
import { RestartLostError, SnapshotsLostError } from "../../src/journal/snapshot/losses.ts";

const afterCopy = (error: unknown) => errorOf(structuredClone(copyOf(error)));

it.each([
  [new SnapshotsLostError("lost"), SnapshotsLostError],
  [new RestartLostError("rotten"), RestartLostError],
  [holeError(3, 9), MissingRecordsError],
  [strayError(4), MissingRecordsError],
  [new JournalDamagedError("rotten"), JournalDamagedError],
  [new UnreachableError("away"), UnreachableError],
  [snapshotsFullError("no room"), WaggleError],
])("%s", (error, itsClass) => {
  const copied = afterCopy(error);
  expect(copied.constructor).toBe(itsClass);
  expect(copied).toMatchObject({ code: error.code, message: error.message });
});

it("what is none of ours is a bug", () => {
  expect(afterCopy(new TypeError("x is undefined"))).toMatchObject({
    code: "WAGGLE_INVARIANT",
    message: "x is undefined",
  });
});
