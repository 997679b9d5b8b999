// Coded refusals with any of their fields, for checks of messages.

import type { Mutator } from "./mutator.ts";

export function aRefusal(mutator: Mutator): object {
  return {
    ...{ ok: false, code: "WAGGLE_CONFLICT", message: "other content" },
    ...mutator.most({ field: "tasks[0].id", retryAfterMs: 1.5, firstIdx: 3, newest: "life" }),
    ...mutator.most({
      budget: {
        ...{ tokens: 9, windowMs: 60_000, spent: 5, reserved: 3, needed: 2 },
        ...mutator.most({ project: "p" }),
      },
      hold: { resource: "gpt", until: 1.5 },
    }),
  };
}
