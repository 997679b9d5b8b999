// Batches decided once more: the inputs found in the events of a history give the same events again, and a changed
// decision is found.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Reproduced, Reproduction } from "../../src/core/reproduction.ts";
import { kind, taskId } from "../../src/ids.ts";
import { type Batch, decodeRecord } from "../../src/journal/records.ts";
import type { Event } from "../../src/state/event.ts";
import { emptyState } from "../../src/state/state.ts";
import { history, Model, type Wish } from "../support/random-history.ts";
import { SlotModel, type SlotWish, slotHistory } from "../support/random-slots.ts";
import { join, submit, Turns } from "../support/turns.ts";

const historiesMs = 120_000;

function batchesOf({ records }: Turns): Batch[] {
  return records.map(({ bytes }) => decodeRecord(bytes) as Batch);
}

/** The first batch that differs, and the number of inputs before. */
function reproduce(batches: readonly Batch[]) {
  const reproduction = new Reproduction(emptyState());
  const seen = {
    inputs: 0,
    withheld: 0,
    difference: undefined as (Reproduced & { idx: number }) | undefined,
  };
  for (const batch of batches) {
    const reproduced = reproduction.take(batch);
    if (reproduced.kind === "different") {
      seen.difference = { ...reproduced, idx: batch.idx };
      break;
    }
    seen.inputs += reproduced.inputs.length;
    seen.withheld += reproduced.isWithheld ? 1 : 0;
  }
  return seen;
}

/** An agent no longer has its second attempt, and leaves in the same turn while it has the first. */
const lostAndLeft = {
  isExperienced: true,
  turns: [
    {
      wishes: [
        { what: "submit", pick: 0, detail: 0, number: 0 },
        { what: "join", pick: 11, detail: 64, number: 0 },
      ],
      passMs: 0,
    },
    { wishes: [{ what: "submit", pick: 1, detail: 0, number: 1 }], passMs: 0 },
    { wishes: [], passMs: 44 },
    { wishes: [], passMs: 6 },
    {
      wishes: [
        { what: "reconcile", pick: 15, detail: 249, number: 1 },
        { what: "leave", pick: 15, detail: 0, number: 1 },
      ],
      passMs: 0,
    },
  ],
} satisfies { isExperienced: boolean; turns: { wishes: Wish[]; passMs: number }[] };

/** An agent that missed the end of its attempt joins again with more capacity, and lapses in the same turn. */
const joinedAndLapsed = {
  isExperienced: true,
  turns: [
    { wishes: [{ what: "submit", pick: 0, detail: 480, number: 3 }], passMs: 0 },
    { wishes: [], passMs: 209 },
    { wishes: [{ what: "join", pick: 15, detail: 0, number: 0 }], passMs: 271 },
    { wishes: [{ what: "mark", pick: 7, detail: 0, number: 1 }], passMs: 90_000_000 },
    {
      wishes: [
        { what: "reconcile", pick: 7, detail: 350, number: 1 },
        { what: "lapse", pick: 31, detail: 0, number: 1 },
      ],
      passMs: 0,
    },
    { wishes: [], passMs: 0 },
  ],
} satisfies { isExperienced: boolean; turns: { wishes: Wish[]; passMs: number }[] };

/** Two heartbeats of one turn: the first has lost the second lease, the second has lost the first. */
const lostTwice = [
  { wishes: [{ what: "acquire", agent: 0, pick: 0, detail: 1 }], passMs: 0 },
  { wishes: [{ what: "acquire", agent: 0, pick: 0, detail: 1 }], passMs: 0 },
  {
    wishes: [
      { what: "heartbeat", agent: 0, pick: 0, detail: 5 },
      { what: "heartbeat", agent: 0, pick: 0, detail: 30 },
    ],
    passMs: 0,
  },
  { wishes: [], passMs: 0 },
] satisfies { wishes: SlotWish[]; passMs: number }[];

/** Two heartbeats of one turn. The first lacks a lease, whose slot a waiting request gets; the second lacks that. */
const lostAtTheGrant = [
  { wishes: [{ what: "acquire", agent: 0, pick: 0, detail: 75 }], passMs: 0 },
  { wishes: [{ what: "resize", agent: 0, pick: 0, detail: 0 }], passMs: 0 },
  { wishes: [{ what: "acquire", agent: 0, pick: 0, detail: 28 }], passMs: 0 },
  {
    wishes: [
      { what: "heartbeat", agent: 0, pick: 0, detail: 38 },
      { what: "heartbeat", agent: 0, pick: 0, detail: 144 },
    ],
    passMs: 0,
  },
  { wishes: [], passMs: 0 },
] satisfies { wishes: SlotWish[]; passMs: number }[];

describe("a history decided once more", () => {
  it(
    "gives the same events, whatever happened",
    () => {
      fc.assert(
        fc.property(history, ({ isExperienced, turns: wanted }) => {
          const model = new Model();
          if (isExperienced) model.learn();
          model.run(wanted);
          expect(reproduce(batchesOf(model.turns))).toMatchObject({ difference: undefined, withheld: 0 });
        }),
        { numRuns: 200, examples: [[lostAndLeft], [joinedAndLapsed]] },
      );
    },
    historiesMs,
  );

  it(
    "gives the same grants of slots",
    () => {
      fc.assert(
        fc.property(slotHistory, (wanted) => {
          const model = new SlotModel();
          // A policy that is set without a command may be the policy of before, which no command journals.
          for (const { wishes, passMs } of wanted)
            model.run({ wishes: wishes.filter(({ what }) => what !== "policy"), passMs });
          expect(reproduce(batchesOf(model.turns)).difference).toBeUndefined();
        }),
        { numRuns: 200, examples: [[lostTwice], [lostAtTheGrant]] },
      );
    },
    historiesMs,
  );
});

function twoAgents(): Turns {
  const turns = new Turns();
  turns.turn(join("a1"), join("a2"));
  turns.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
  turns.pass(500);
  turns.turn(turns.report("t1", { kind: "failed", error: "no" }, { jitter: 0.37 }));
  turns.passToDue();
  return turns;
}

/** The batches with one event replaced. */
function changed(
  batches: readonly Batch[],
  type: Event["type"],
  change: (event: Event) => Event | undefined,
) {
  let isDone = false;
  return batches.map((batch) => ({
    ...batch,
    events: batch.events.flatMap((event) => {
      if (isDone || event.type !== type) return [event];
      isDone = true;
      return change(event) ?? [];
    }),
  }));
}

describe("a changed decision", () => {
  const batches = batchesOf(twoAgents());

  it("is absent from a true history", () => {
    expect(reproduce(batches)).toMatchObject({ difference: undefined, withheld: 0, inputs: 6 });
  });

  it("is found where another agent is named", () => {
    const { difference } = reproduce(
      changed(batches, "TaskAssigned", (event) => ({ ...event, agent: "a2" }) as Event),
    );
    expect(difference).toMatchObject({
      idx: 3,
      place: 2,
      recorded: { agent: "a2" },
      decided: { agent: "a1" },
    });
  });

  it("is found in a term of a receipt", () => {
    const change = (event: Event) =>
      event.type === "TaskAssigned" ? { ...event, receipt: { ...event.receipt, feasible: 3 } } : event;
    expect(reproduce(changed(batches, "TaskAssigned", change)).difference).toMatchObject({
      idx: 3,
      place: 2,
    });
  });

  it("is found where one of two assignments is missing", () => {
    expect(reproduce(changed(batches, "TaskAssigned", () => undefined)).difference).toMatchObject({ idx: 3 });
  });

  it("is found where a timer did not fire", () => {
    const { difference } = reproduce(changed(batches, "TaskReleased", () => undefined));
    expect(difference).toMatchObject({ recorded: undefined, decided: { type: "TaskReleased" } });
  });

  it("is not an input: a different submission is a different history", () => {
    const other = changed(batches, "TaskSubmitted", (event) =>
      event.type === "TaskSubmitted" ? { ...event, task: { ...event.task, kind: kind("l") } } : event,
    );
    expect(reproduce(other).difference).toMatchObject({
      idx: 3,
      recorded: { task: "t1" },
      decided: { task: "t2" },
    });
  });
});

it("a batch without assignments, where the planner would assign, is withheld", () => {
  const batches = batchesOf(twoAgents());
  const none = batches
    .slice(0, 3)
    .map((batch) => ({ ...batch, events: batch.events.filter(({ type }) => type !== "TaskAssigned") }));
  expect(reproduce(none)).toMatchObject({ difference: undefined, withheld: 1 });
});
