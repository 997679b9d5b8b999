// Answers `project._.query.records`: stored records of the journal, byte by byte, for users that may not read the
// storage. A client verifies, exports and replays the journal from them (client/asked-journal.ts). The bounds of all
// reads apply (audit/reading/journal-reads.ts). Not here: pages of batches (queries.ts).

import { Buffer } from "node:buffer";
import type { z } from "zod";
import { costOf, type JournalReads } from "../../audit/reading/journal-reads.ts";
import { JournalDamagedError } from "../../errors.ts";
import { NO_PROJECT } from "../../ids.ts";
import type { JournalReader, SegmentReader, SegmentRecord } from "../../journal/journal.ts";
import { limits } from "../../limits.ts";
import { decode, encode } from "../../protocol/codec.ts";
import { type RecordsPage, recordsQuerySchema } from "../../protocol/schemas.ts";

export interface JournalRecordsDeps {
  readonly journal: JournalReader;
  readonly reads: Pick<JournalReads, "budget" | "slot">;
  readonly transport: { readonly maxPayloadBytes: number };
}

type Wanted = Omit<z.infer<typeof recordsQuerySchema>, "v" | "segment">;

export class JournalRecords {
  readonly #deps: JournalRecordsDeps;

  constructor(deps: JournalRecordsDeps) {
    this.#deps = deps;
  }

  /** @throws BackpressureError, UnreachableError, JournalDamagedError */
  async answer(data: Uint8Array): Promise<Uint8Array> {
    const query = decode(data, recordsQuerySchema);
    if (!query.ok) return encode(query);
    const { v: _, segment, ...wanted } = query.value;
    return encode(await this.#read(segment, wanted));
  }

  async #read(number: number | undefined, wanted: Wanted): Promise<RecordsPage> {
    const { journal, reads } = this.#deps;
    const { from, opened } = wanted;
    const isPage = number !== undefined && (from !== undefined || opened === true);
    const taken = isPage ? this.#bytesMax : limits.pageCostMin;
    reads.budget.take(NO_PROJECT, taken);
    if (number === undefined) return { segments: [...(await reads.slot(() => journal.list()))] };
    const segment = journal.segment(number);
    if (!isPage) return { end: (await reads.slot(() => segment.end())) ?? null };
    const records = await reads.slot(() => this.#records(segment, wanted));
    reads.budget.settle(NO_PROJECT, { taken, cost: costOf(records.map(({ part }) => part)) });
    return { records: records.map(printed) };
  }

  /** As base64, a page fits the server's maximum. */
  get #bytesMax(): number {
    return Math.min(limits.queryPageBytesMax, Math.floor(this.#deps.transport.maxPayloadBytes / 2));
  }

  async #records(segment: SegmentReader, { from = 1, offset = 0, limit, opened }: Wanted): Promise<Part[]> {
    const parts: Part[] = [];
    let bytesLeft = this.#bytesMax;
    const found = opened === true ? one(await segment.opened()) : recordsFrom(segment, from, limit);
    try {
      for await (const { position, bytes } of found) {
        const isFirst = parts.length === 0;
        if (!isFirst && bytes.length > bytesLeft) break; // only a record that fits no page is cut
        const start = isFirst ? offset : 0;
        const part = bytes.subarray(start, start + bytesLeft);
        parts.push({ position, part, size: bytes.length });
        bytesLeft -= part.length + PRINTED_BYTES;
        if (bytesLeft <= 0 || parts.length === limit) break;
      }
    } catch (cause) {
      // The records before a damaged one are good: the next question begins with the damage.
      if (!(cause instanceof JournalDamagedError) || parts.length === 0) throw cause;
    }
    return parts;
  }
}

/** Size in an answer of a record's fields without its bytes. */
const PRINTED_BYTES = 64;

/** A record, or a part of it. */
interface Part {
  readonly position: number;
  readonly part: Uint8Array;
  /** Size of the whole record, in bytes. */
  readonly size: number;
}

function printed({ position, part, size }: Part) {
  const base64 = Buffer.from(part.buffer, part.byteOffset, part.length).toString("base64");
  return { position, base64, ...(part.length === size ? {} : { size }) };
}

function recordsFrom(
  segment: SegmentReader,
  from: number,
  limit: number | undefined,
): AsyncIterable<SegmentRecord> {
  return limit === 1 ? read(segment, from) : segment.replay(from, { aheadBytes: limits.pageAheadBytes });
}

async function* read(segment: SegmentReader, position: number): AsyncGenerator<SegmentRecord> {
  yield* one(await segment.read(position));
}

async function* one(record: SegmentRecord | undefined): AsyncGenerator<SegmentRecord> {
  if (record !== undefined) yield record;
}
