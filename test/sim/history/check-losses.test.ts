// Outside the fault model: an unreported loss is found, and so is an answer that contradicts the log.

import { beforeAll, describe, expect, it } from "vitest";
import { checkLosses } from "../../../src/sim/history/check-losses.ts";
import type { Observation } from "../../../src/sim/history/observation.ts";
import { type Recorded, recordHistory } from "./recorded.ts";

let recorded: Recorded;
beforeAll(async () => {
  recorded = await recordHistory();
});

/** The history with the log cut to its first batches, all decided before the first request. */
function found(
  kept: number,
  isReported: boolean,
  changed = (observations: readonly Observation[]): readonly Observation[] => observations,
) {
  const journal = recorded.journal.slice(0, kept).map((record) => ({ ...record, decidedMs: 0 }));
  const observations = changed(recorded.observations);
  return checkLosses({ observations, journal, elsewhere: [], isReported }).map(({ checker }) => checker);
}

describe("a history outside the fault model", () => {
  it("has no violations without a loss", () => {
    expect(found(recorded.journal.length, false)).toEqual([]);
  });

  it("may lack acknowledged batches only if a node reported the loss", () => {
    const kept = recorded.journal.length - 3;
    expect(found(kept, true)).toEqual([]);
    expect(found(kept, false)).toEqual(["never-silent"]);
  });

  it("comes from an older journal if the batch of an answer was decided after the answer", () => {
    const journal = recorded.journal.map((record) => ({ ...record, decidedMs: Number.MAX_SAFE_INTEGER }));
    const { observations } = recorded;
    expect(
      checkLosses({ observations, journal, elsewhere: [], isReported: false }).map(({ checker }) => checker),
    ).toContain("never-silent");
  });

  it("may answer a result as stale if the attempt was in a lost batch", () => {
    const lateResult = (observations: readonly Observation[]) => {
      const [result] = observations.filter((observed) => observed.kind === "result");
      const stale = { ...result, attempt: 77, answer: "stale" } as Observation;
      return [...observations, stale];
    };
    expect(found(recorded.journal.length, false, lateResult)).toEqual([]);
  });

  it("compares an answer from a kept batch with the log, whatever was lost", () => {
    const lie = (observations: readonly Observation[]) =>
      observations.map((observed) =>
        observed.kind === "query" && typeof observed.answer === "object"
          ? { ...observed, answer: { ...observed.answer, attempts: 99 } }
          : observed,
      );
    expect(found(recorded.journal.length - 3, true, lie)).not.toEqual([]);
  });

  it("does not judge an answer that names no batch: the log that was meant is unknown", () => {
    const unknown = { kind: "query", answer: "unknown-task" } as const;
    const withoutBatch = (observations: readonly Observation[]) =>
      observations.map((observed) => {
        if (observed.kind !== "query") return observed;
        const { at: _, ...rest } = observed;
        return { ...rest, ...unknown };
      });
    expect(found(recorded.journal.length, true, withoutBatch)).toEqual([]);
    const withBatch = (observations: readonly Observation[]) =>
      observations.map((observed) => (observed.kind === "query" ? { ...observed, ...unknown } : observed));
    expect(found(recorded.journal.length, true, withBatch)).not.toEqual([]);
  });

  it("does not judge a copy of a message from a lost batch, though the log has a batch of that point now", () => {
    const notified = recorded.observations.find((observed) => observed.kind === "notified");
    if (notified?.kind !== "notified") throw new Error("the history has no notice");
    const early = { ...notified, heardMs: 0, outcome: { ...notified.outcome, attempts: 99 } } as Observation;
    const late = { ...early, heardMs: Number.MAX_SAFE_INTEGER } as Observation;
    const journal = recorded.journal.map((record) => ({ ...record, decidedMs: 1 }));
    const check = (...more: Observation[]) =>
      checkLosses({
        observations: [...recorded.observations, ...more],
        journal,
        elsewhere: [],
        isReported: true,
      });
    expect(check(late)).not.toEqual([]);
    expect(check(early, late)).toEqual([]);
  });

  it("does not judge an answer from a point that two logs had", () => {
    const journal = recorded.journal.map((record) => ({ ...record, decidedMs: 0 }));
    const query = recorded.observations.findLast((observed) => observed.kind === "query");
    if (query?.kind !== "query") throw new Error("the history has no query");
    const first = { term: 1, idx: 1 };
    const old = { ...query, sentMs: Number.MAX_SAFE_INTEGER, heardMs: Number.MAX_SAFE_INTEGER, at: first };
    const observations = [...recorded.observations, old as Observation];
    const check = (elsewhere: readonly (typeof first)[]) =>
      checkLosses({ observations, journal, elsewhere, isReported: true }).map(({ checker }) => checker);
    expect(check([])).toContain("freshness");
    expect(check([first])).toEqual([]);
  });
});
