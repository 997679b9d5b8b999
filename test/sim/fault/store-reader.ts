// The journal of a simulated swarm, read from the store itself, whatever its server answers.

import { JournalDamagedError } from "../../../src/errors.ts";
import type { JournalReader, SegmentReader } from "../../../src/journal/journal.ts";
import { noSegmentError, unreadableError } from "../../../src/journal/journal-errors.ts";
import { decodeRecord } from "../../../src/journal/records.ts";
import type { FaultKind } from "../../../src/sim/fault/fault.ts";
import type { Habitat } from "../../../src/sim/fault/habitat.ts";
import { planOf } from "../../../src/sim/fault/run-seed.ts";
import { World } from "../../../src/sim/fault/world.ts";

/** Faults with which a store loses or damages records. */
export const losses = ["tail-cut", "segment-lost", "gap", "bit-flip"] as const;

/** Runs a seed to its end. */
export async function worldAfter(
  seed: number,
  { forMs, without }: { readonly forMs: number; readonly without: readonly FaultKind[] },
): Promise<World> {
  const { workload, schedule } = planOf({ seed, forMs, without });
  const world = new World({
    seed,
    workload,
    schedule,
    without,
    untilMs: forMs,
    profile: undefined,
    log: undefined,
  });
  await world.run(undefined);
  return world;
}

export class StoreReader implements JournalReader {
  readonly #habitat: Habitat;

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
  }

  async list() {
    return [...this.#habitat.segmentNumbers()].sort((one, other) => one - other);
  }

  async close() {
    return;
  }

  segment(number: number): SegmentReader {
    const habitat = this.#habitat;
    const stream = () => habitat.segmentStream(number);
    const sealedAt = () => stream()?.firstOf(habitat.subjects.segmentSealed(number));
    const last = () => Math.min(stream()?.lastSeq ?? 0, (sealedAt() ?? Number.POSITIVE_INFINITY) - 1);
    const read = (position: number) => {
      const bytes = position > last() ? undefined : stream()?.at(position);
      if (stream()?.isDamaged(position)) throw unreadableError(number, position);
      return bytes === undefined ? undefined : { position, bytes };
    };
    return {
      number,
      end: async () =>
        stream() === undefined
          ? undefined
          : { position: last(), bytes: 0, isSealed: sealedAt() !== undefined, missing: 0 },
      read: async (position) => read(position),
      opened: async () => {
        for (let position = last(); position > 0; position -= 1) {
          const record = stream()?.isDamaged(position) ? undefined : read(position);
          if (record !== undefined && decodeRecord(record.bytes)?.kind === "opened") return record;
        }
        return undefined;
      },
      async *replay(from, { until = last() } = {}) {
        if (stream() === undefined) throw noSegmentError(number);
        for (let position = from; position <= until; position += 1) {
          const record = read(position);
          if (record === undefined) throw new JournalDamagedError(`record ${position} is missing`);
          yield record;
        }
      },
    };
  }
}
