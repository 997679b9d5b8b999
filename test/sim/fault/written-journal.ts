// The journal of a habitat, written record by record like a leader, at once and despite any faults.

import { batchIndex, type Instant, type Term } from "../../../src/ids.ts";
import {
  type Batch,
  type ChainTail,
  decodeRecord,
  encodeBatch,
  encodeRecord,
  hashOf,
  type LogEnd,
  type Opened,
} from "../../../src/journal/records.ts";
import { emptyTail } from "../../../src/journal/replay.ts";
import { streamConfigOf } from "../../../src/journal/stream/settings.ts";
import type { Habitat } from "../../../src/sim/fault/habitat.ts";
import type { SimStream } from "../../../src/sim/fault/stream.ts";

const JOURNAL = "j";
const SESSION = "session-of-c1";

export interface WrittenBatch {
  readonly bytes: Uint8Array;
  readonly hash: string;
  readonly tail: ChainTail;
}

interface OpenOptions {
  /** The predecessor batch. Default: none. */
  readonly tail?: ChainTail;
  /** The predecessor segment. Default: none. */
  readonly previous?: number;
  readonly base?: Opened["base"];
  /** Default: the number of the segment. */
  readonly term?: number;
}

export class WrittenJournal {
  readonly #habitat: Habitat;

  constructor(habitat: Habitat) {
    this.#habitat = habitat;
  }

  /** Creates a segment with its claim. */
  claim(number: number): SimStream {
    const { jetStream, swarm } = this.#habitat;
    const config = streamConfigOf({ swarm, number }, 1);
    jetStream.handle(
      `$JS.API.STREAM.CREATE.${config.name}`,
      Buffer.from(JSON.stringify(config)),
      {},
      () => undefined,
    );
    this.append(number, encodeRecord({ kind: "claim", segment: number, session: SESSION, attempt: "1" }));
    return this.stream(number);
  }

  stream(number: number): SimStream {
    const stream = this.#habitat.segmentStream(number);
    if (stream === undefined) throw new RangeError(`there is no segment ${number}`);
    return stream;
  }

  append(number: number, bytes: Uint8Array, subject = this.#habitat.subjects.segment(number)): number {
    this.stream(number).publish({ subject, bytes, expectedSeq: undefined });
    return this.stream(number).lastSeq;
  }

  /** Writes a base with any bytes as state. @returns its description for `Opened`, and the position of its chunk */
  base(
    number: number,
    tail: ChainTail,
  ): { readonly ref: NonNullable<Opened["base"]>; readonly chunk: number } {
    const state = Buffer.from(`the state of batch ${tail.idx}`);
    const chunk = this.append(number, encodeRecord({ kind: "chunk", session: SESSION, bytes: state }));
    const manifest = encodeRecord({
      kind: "manifest",
      session: SESSION,
      version: 1,
      at: 1_000 as Instant,
      tail,
      chunks: [[chunk, state.length, hashOf(state)]],
    });
    const position = this.append(number, manifest);
    return { ref: { position, hash: hashOf(manifest), idx: tail.idx }, chunk };
  }

  /** Writes the `Opened` of a claimed segment. */
  open(number: number, { tail = emptyTail, previous, base, term = number }: OpenOptions = {}): void {
    const end: LogEnd | undefined =
      previous === undefined ? undefined : { segment: previous, idx: tail.idx, hash: tail.hash };
    const opened = encodeRecord({
      kind: "opened",
      segment: number,
      session: SESSION,
      journal: JOURNAL,
      term: term as Term,
      leader: "c1",
      tail,
      previous: end,
      base,
      recent: [],
    });
    this.append(number, opened, this.#habitat.subjects.segmentOpened(number));
  }

  seal(number: number): void {
    this.append(number, Buffer.from("sealed"), this.#habitat.subjects.segmentSealed(number));
  }

  /** Sends and stores a batch. */
  store(number: number, { bytes }: WrittenBatch): void {
    this.#habitat.pace.sent(bytes, this.#habitat.engine.nowMs);
    this.append(number, bytes);
  }
}

/** The batch after a tail, in segment `term`. */
export function batchBehind(
  { idx, hash }: Pick<ChainTail, "idx" | "hash">,
  { term, at, events }: { readonly term: number; readonly at: number; readonly events: readonly object[] },
): WrittenBatch {
  const next = batchIndex(idx + 1);
  const header = {
    journal: JOURNAL,
    session: SESSION,
    term: term as Term,
    idx: next,
    prev: hash,
    at: at as Instant,
  };
  const bytes = encodeBatch(
    header,
    events.map((event) => JSON.stringify(event)),
  );
  const tail = { journal: JOURNAL, term: term as Term, idx: next, hash: hashOf(bytes) };
  return { bytes, hash: tail.hash, tail };
}

/** @throws RangeError where the bytes are no batch */
export function batchIn(bytes: Uint8Array): Batch {
  const record = decodeRecord(bytes);
  if (record?.kind !== "batch") throw new RangeError("the record is no batch");
  return record;
}
