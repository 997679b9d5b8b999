// Requests for slots of a resource, when none waits.

import { expect, it } from "vitest";
import { Output } from "../../src/cli/output.ts";
import { slotWaitsText } from "../../src/cli/slot-waits-view.ts";
import type { SlotWaits } from "../../src/protocol/explain-schemas.ts";
import { aShell } from "./shell.ts";

const view = new Output(aShell(), { json: false });

it.each([
  [3, "a new one gets a free slot at once"],
  [4, "a new request gets the next released slot"],
])("with %i of 4 slots in use says that %s", (inUse, sentence) => {
  const waits: Partial<SlotWaits> = {
    ...{ resource: "gpt-4o", slots: 4, inUse, waiting: 0, waiters: [], tick: 7 },
    ...{ alpha: 0.25, alphaFrom: "policy", maxQueueDepth: 0, maxOldestAge: 0 },
  };
  expect(slotWaitsText(waits as SlotWaits, {}, view)).toContain(`no request waits: ${sentence}`);
});
