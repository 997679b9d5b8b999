// Consistency of the clients' counts.

import { expect, it } from "vitest";
import { checkWaits } from "./waits.ts";

const counts = { accepted: 650, ended: 650, unknown: 3, refused: 2, open: 0 };

it("finds nothing where every accepted task ended, whatever was refused", () => {
  expect(checkWaits(counts)).toEqual([]);
});

it("finds waits that ended in anything but an outcome", () => {
  expect(checkWaits({ ...counts, ended: 647 })).toEqual([
    {
      promise: "P1",
      checker: "waits",
      sentence: "of 650 accepted tasks, 647 waits ended with an outcome, and none is open",
    },
  ]);
});
