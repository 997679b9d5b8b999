// Outside the fault model: a loss that nobody reports is found, and so is an answer that the log contradicts.

import { beforeAll, describe, expect, it } from "vitest";
import { checkLosses } from "../../../src/sim/history/check-losses.ts";
import type { Observation } from "../../../src/sim/history/observation.ts";
import { type Recorded, recordHistory } from "./recorded.ts";

let recorded: Recorded;
beforeAll(async () => {
  recorded = await recordHistory();
});

/** The history, with the log cut to so many batches, all decided before anything was asked. */
function found(
  kept: number,
  isReported: boolean,
  changed = (observations: readonly Observation[]): readonly Observation[] => observations,
) {
  const journal = recorded.journal.slice(0, kept).map((record) => ({ ...record, decidedMs: 0 }));
  const observations = changed(recorded.observations);
  return checkLosses({ observations, journal, isReported }).map(({ checker }) => checker);
}

describe("a history outside the fault model", () => {
  it("has nothing to find where nothing was lost", () => {
    expect(found(recorded.journal.length, false)).toEqual([]);
  });

  it("may lack acknowledged batches if a node reported that, and not in silence", () => {
    const kept = recorded.journal.length - 3;
    expect(found(kept, true)).toEqual([]);
    expect(found(kept, false)).toEqual(["never-silent"]);
  });

  it("is of another journal where the batch of an answer was decided after the answer", () => {
    const journal = recorded.journal.map((record) => ({ ...record, decidedMs: Number.MAX_SAFE_INTEGER }));
    const { observations } = recorded;
    expect(checkLosses({ observations, journal, isReported: false }).map(({ checker }) => checker)).toContain(
      "never-silent",
    );
  });

  it("holds an answer of a batch that is there against the log, whatever was lost", () => {
    const lie = (observations: readonly Observation[]) =>
      observations.map((observed) =>
        observed.kind === "query" && typeof observed.answer === "object"
          ? { ...observed, answer: { ...observed.answer, attempts: 99 } }
          : observed,
      );
    expect(found(recorded.journal.length - 3, true, lie)).not.toEqual([]);
  });
});
