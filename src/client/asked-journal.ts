// The journal as coordinators answer it, record by record: for users that may not read its storage (auditors and
// operators of `waggle auth`). Whatever reads a journal reads this one. A coordinator that lies could answer another
// history; signed heads show it (audit/signed-head.ts). Not here: events for programs (journal-pages.ts).

import { Buffer } from "node:buffer";
import { JournalDamagedError } from "../errors.ts";
import { NO_PROJECT } from "../ids.ts";
import type {
  JournalReader,
  ReplayOptions,
  SegmentEnd,
  SegmentReader,
  SegmentRecord,
} from "../journal/journal.ts";
import { noSegmentError, shortError } from "../journal/journal-errors.ts";
import { type RecordsPage, recordsPageSchema } from "../protocol/schemas.ts";
import type { Subjects } from "../protocol/subjects.ts";
import type { Asker } from "./asker.ts";

export interface AskedJournalDeps {
  readonly asker: Pick<Asker, "ask">;
  readonly subjects: Subjects;
  readonly signal?: AbortSignal | undefined;
  /** Closes the connection. */
  readonly onClose: () => Promise<void>;
}

type Ask = (message: object) => Promise<RecordsPage>;

export class AskedJournal implements JournalReader {
  readonly #deps: AskedJournalDeps;

  constructor(deps: AskedJournalDeps) {
    this.#deps = deps;
  }

  async list(): Promise<readonly number[]> {
    const { segments = [] } = await this.#ask({});
    return segments;
  }

  segment(number: number): SegmentReader {
    return new AskedSegment(number, (message) => this.#ask({ segment: number, ...message }));
  }

  async close(): Promise<void> {
    await this.#deps.onClose();
  }

  async #ask(message: object): Promise<RecordsPage> {
    const { asker, subjects, signal } = this.#deps;
    const subject = subjects.query(NO_PROJECT, "records");
    const question = {
      kind: "query",
      subject,
      schema: recordsPageSchema,
      message: { v: 1, ...message },
    } as const;
    return await asker.ask(question, signal === undefined ? {} : { signal });
  }
}

class AskedSegment implements SegmentReader {
  readonly number: number;
  readonly #ask: Ask;

  constructor(number: number, ask: Ask) {
    this.number = number;
    this.#ask = ask;
  }

  async end(): Promise<SegmentEnd | undefined> {
    return (await this.#ask({})).end ?? undefined;
  }

  async read(position: number): Promise<SegmentRecord | undefined> {
    const [found] = await this.#records({ from: position, limit: 1 });
    return found;
  }

  async opened(): Promise<SegmentRecord | undefined> {
    const [found] = await this.#records({ opened: true });
    return found;
  }

  async *replay(from: number, { until }: ReplayOptions = {}): AsyncGenerator<SegmentRecord> {
    const end = await this.end();
    if (end === undefined) throw noSegmentError(this.number);
    const last = until ?? end.position;
    for (let next = from; next <= last; ) {
      const records = await this.#records({ from: next });
      if (records.length === 0) throw shortError(this.number, next, next - 1);
      for (const record of records) {
        if (record.position !== next) throw outOfOrder(this.number, record.position, next);
        yield record;
        next += 1;
        if (next > last) return;
      }
    }
  }

  /** A page of whole records: a record that fits no page comes in parts. */
  async #records(message: object): Promise<SegmentRecord[]> {
    const { records = [] } = await this.#ask(message);
    const [first] = records;
    if (first?.size === undefined) return records.map(wholeOf);
    return [await this.#joined(first.position, { bytes: bytesOf(first), size: first.size })];
  }

  async #joined(
    position: number,
    { bytes, size }: { readonly bytes: Uint8Array; readonly size: number },
  ): Promise<SegmentRecord> {
    const parts = [bytes];
    for (let offset = bytes.length; offset < size; ) {
      const { records: [part] = [] } = await this.#ask({ from: position, limit: 1, offset });
      const more = part === undefined ? new Uint8Array() : bytesOf(part);
      if (more.length === 0) throw outOfOrder(this.number, part?.position ?? 0, position);
      parts.push(more);
      offset += more.length;
    }
    return { position, bytes: new Uint8Array(Buffer.concat(parts)) };
  }
}

type PagedRecord = NonNullable<RecordsPage["records"]>[number];

function wholeOf(record: PagedRecord): SegmentRecord {
  return { position: record.position, bytes: bytesOf(record) };
}

function bytesOf({ base64 }: PagedRecord): Uint8Array {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

function outOfOrder(segment: number, found: number, wanted: number): JournalDamagedError {
  return new JournalDamagedError(
    `a coordinator answered record ${found} of segment ${segment} in place of record ${wanted}`,
  );
}
