// All readers must hold the same log. Folding the journal must give the state of the coordinators at the same batch
// (P8, P13).

import { hash as digestOf } from "node:crypto";
import { rowsOf } from "../../core/snapshot/encode.ts";
import { messageOf } from "../../errors.ts";
import { decodeRecord } from "../../journal/records.ts";
import { Replay } from "../../journal/replay.ts";
import type { SwarmState } from "../../state/state.ts";
import type { CommittedLog } from "./committed-log.ts";
import type { Reading } from "./observation.ts";
import type { Violation } from "./violation.ts";

/**
 * SHA-256 over the rows of the state's snapshot, base64url: only equal states have equal fingerprints. Takes nearly as
 * long as a snapshot.
 */
export function stateFingerprint(state: SwarmState): string {
  return digestOf("sha256", JSON.stringify([...rowsOf(state)]), "base64url");
}

export function checkReadings(readings: readonly Reading[], log: CommittedLog): Violation[] {
  return readings.flatMap(({ reader, idx, hash: read }) => {
    if (read === undefined || log.at(idx)?.hash === read) return [];
    const stands = log.at(idx) === undefined ? "the journal lacks" : "differs from the journal's";
    return [
      {
        promise: "P8" as const,
        checker: "readings",
        sentence: `${reader} has read a batch ${idx} that ${stands}`,
      },
    ];
  });
}

/** Folds the journal once, as a restart would, and compares where a fingerprint was taken. */
export function checkFold(readings: readonly Reading[], log: CommittedLog): Violation[] {
  const replay = new Replay();
  const violations: Violation[] = [];
  const asked = new Map<number, Reading[]>();
  for (const reading of readings) {
    if (reading.state === undefined) continue;
    const there = asked.get(reading.idx) ?? [];
    there.push(reading);
    asked.set(reading.idx, there);
  }
  for (const { idx, bytes, hash } of log.batches) {
    try {
      const batch = decodeRecord(bytes);
      if (batch?.kind !== "batch") throw new Error("it is not a batch");
      replay.takeCommitted(batch, hash);
    } catch (cause) {
      const why = messageOf(cause);
      return [
        ...violations,
        { promise: "P13", checker: "fold", sentence: `batch ${idx} cannot be replayed: ${why}` },
      ];
    }
    const compared = asked.get(idx) ?? [];
    const folded = compared.length === 0 ? "" : stateFingerprint(replay.state);
    for (const { reader, state } of compared)
      if (state !== folded)
        violations.push({
          promise: "P13",
          checker: "fold",
          sentence: `${reader} had a state after batch ${idx} that differs from the folded journal`,
        });
  }
  return violations;
}
