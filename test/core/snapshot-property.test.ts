// A state written as a snapshot at any point of any history and read again is the same state: same fingerprint, same
// invariants, same snapshot. Later commands lead to the same bytes, although planner and heaps are built again.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkInvariants } from "../../src/core/invariants.ts";
import { decodeState } from "../../src/core/snapshot/decode.ts";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { emptyState, type SwarmState } from "../../src/state/state.ts";
import { describeState, fingerprint } from "../support/fingerprint.ts";
import { history, Model } from "../support/random-history.ts";
import { SlotModel, slotHistory } from "../support/random-slots.ts";
import { pokeRareValues, richSwarm } from "../support/rich-swarm.ts";
import { SeenValues } from "../support/seen-values.ts";
import { SlotTurns } from "../support/slots.ts";
import { Turns } from "../support/turns.ts";

/** Some 10 s on an idle machine, and many times as long on a busy one. */
const historiesMs = 240_000;

/** A snapshot, and its point in the history. */
class Cut {
  readonly lines: readonly string[];
  readonly #turns: Turns;
  readonly #fingerprint: string;
  readonly #records: number;
  readonly #inputs: number;
  readonly #at: Turns["at"];

  constructor(turns: Turns) {
    this.lines = [...encodeState(turns.state)];
    this.#turns = turns;
    this.#fingerprint = fingerprint(turns.state);
    this.#records = turns.records.length;
    this.#inputs = turns.inputs.length;
    this.#at = turns.at;
  }

  /** Reads the snapshot, and continues as the history did. */
  check(): void {
    const state = decodeState(this.lines);
    expect(fingerprint(state)).toBe(this.#fingerprint);
    expect(checkInvariants(state)).toEqual([]);
    expect([...encodeState(state)]).toEqual(this.lines);
    const { records, inputs } = this.#turns;
    const resumed = new Turns({ state, records: records.slice(0, this.#records), at: this.#at });
    for (const input of inputs.slice(this.#inputs)) resumed.repeat(input);
    const textOf = (turns: Turns) => turns.records.map(({ bytes }) => Buffer.from(bytes).toString());
    expect(textOf(resumed)).toEqual(textOf(this.#turns));
    expect(fingerprint(resumed.state)).toBe(fingerprint(this.#turns.state));
  }
}

/** The rows that these references lead to are checked elsewhere. */
const references = /^(?:onlineByKind|contendedByName)\[\]\[\]|^slotsByAgent|^taskById\[\]\.open\./;
/** A project waits for no turns. */
const alwaysNothing: readonly string[] = [
  "queueByKey[].projects[].sinceTurn",
  "holds.agent[].users",
  "holds.type[].users",
];

const cutAt = fc.double({ min: 0, max: 1, noNaN: true });

describe("a state read from its snapshot continues as if it had never been written", () => {
  it(
    "at any point of any history of tasks, agents and settings",
    () => {
      fc.assert(
        fc.property(history, cutAt, ({ isExperienced, turns: wanted }, share) => {
          const model = new Model();
          if (isExperienced) model.learn();
          const first = Math.floor(wanted.length * share);
          model.run(wanted.slice(0, first));
          const cut = new Cut(model.turns);
          model.run(wanted.slice(first));
          cut.check();
        }),
        { numRuns: 250 },
      );
    },
    historiesMs,
  );

  it(
    "at any point of any history of slots",
    () => {
      fc.assert(
        fc.property(slotHistory, cutAt, (wanted, share) => {
          const model = new SlotModel();
          const first = Math.floor(wanted.length * share);
          for (const each of wanted.slice(0, first)) model.run(each);
          const cut = new Cut(model.turns);
          for (const each of wanted.slice(first)) model.run(each);
          cut.check();
        }),
        { numRuns: 250 },
      );
    },
    historiesMs,
  );

  it("at any point of a history that sets every field", () => {
    const seen = new SeenValues();
    const { inputs } = richSwarm();
    const turns = new SlotTurns();
    const cuts: Cut[] = [];
    const cut = () => {
      cuts.push(new Cut(turns));
      seen.add(describeState(turns.state));
    };
    cut();
    for (const input of inputs.slice(1)) {
      turns.repeat(input);
      cut();
    }
    for (const each of cuts) each.check();
    const rare = richSwarm();
    pokeRareValues(rare);
    seen.add(describeState(rare.state));
    new Cut(rare).check();
    // No field can be lost without a changed fingerprint: each was set.
    const fields = Object.keys(emptyState()) as (keyof SwarmState)[];
    expect(fields.filter((field) => !seen.varies(field))).toEqual([]);
    const silent = seen.silent().filter((path) => !references.test(path) && !alwaysNothing.includes(path));
    expect(silent).toEqual([]);
  });
});
