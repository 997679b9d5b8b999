// Snapshots in a JetStream stream of their own, over a wire (wire.ts). A part's place is its sequence. Opening
// the stream, and its settings: nats.ts.
//
// A part that may or may not be stored is sent again until a server says where it is: a second copy is harmless,
// because nothing refers to it. Questions are asked again as long, so that a server that fails over is waited for.
// Where the stream is gone a coordinator makes a new one (nats.ts): what it held is lost, and whoever finds no snapshot
// any more saves the state.

import { assert } from "../../assert.ts";
import { type Clock, systemClock } from "../../clock.ts";
import { messageOf, UnreachableError, type WaggleError } from "../../errors.ts";
import { limits } from "../../limits.ts";
import type { Subjects } from "../../protocol/subjects.ts";
import type { JournalUsage } from "../journal.ts";
import { snapshotsClosedError, snapshotsFullError } from "../journal-errors.ts";
import { Retry } from "../retry.ts";
import type { SnapshotStore, StoredManifest } from "../snapshot-store.ts";
import { isStreamMissing, StreamApi, unansweredError } from "./api.ts";
import { type PutOutcome, readPutAnswer } from "./append.ts";
import { fullText, usageOf } from "./room.ts";
import type { StreamWire } from "./wire.ts";

export interface StreamSnapshotsOptions {
  readonly wire: StreamWire;
  readonly stream: string;
  readonly subjects: Pick<Subjects, "snapshotChunk" | "snapshotManifest">;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Makes a stream that is gone anew, unless its journal is gone, too. Without it a server is only waited for.
   *  @throws UnreachableError, BrokerError */
  readonly recreate?: () => Promise<void>;
}

export class StreamSnapshotStore implements SnapshotStore {
  readonly #wire: StreamWire;
  readonly #api: StreamApi;
  readonly #subjects: StreamSnapshotsOptions["subjects"];
  readonly #clock: Clock;
  readonly #recreate: StreamSnapshotsOptions["recreate"];
  readonly #closed = new AbortController();

  constructor({ wire, stream, subjects, clock = systemClock, recreate }: StreamSnapshotsOptions) {
    this.#wire = wire;
    this.#api = new StreamApi(wire, stream);
    this.#subjects = subjects;
    this.#clock = clock;
    this.#recreate = recreate;
  }

  putChunk(bytes: Uint8Array): Promise<number> {
    return this.#put(this.#subjects.snapshotChunk, bytes);
  }

  putManifest(bytes: Uint8Array): Promise<number> {
    return this.#put(this.#subjects.snapshotManifest, bytes);
  }

  async manifests(): Promise<readonly StoredManifest[]> {
    const found: StoredManifest[] = [];
    let { firstSeq: place } = await this.#insist(() => this.#api.info());
    for (;;) {
      const from = place;
      const next = await this.#insist(() => this.#api.readNext(from, this.#subjects.snapshotManifest));
      if (next === undefined) return found;
      found.push({ place: next.seq, bytes: next.bytes });
      place = next.seq + 1;
    }
  }

  async chunk(place: number): Promise<Uint8Array | undefined> {
    const record = await this.#insist(() => this.#api.read(place));
    return record?.subject === this.#subjects.snapshotChunk ? record.bytes : undefined;
  }

  /** Never asks for more than there is: a purge beyond the end moves the stream's sequence forward. */
  async removeBelow(place: number): Promise<void> {
    await this.#insist(async () => {
      const { firstSeq, lastSeq } = await this.#api.info();
      const below = Math.min(place, lastSeq + 1);
      if (below > firstSeq) await this.#api.purgeBelow(below);
    });
  }

  async usage(): Promise<JournalUsage> {
    return usageOf(await this.#insist(() => this.#api.info()), this.#api.stream);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#wire.close();
  }

  async #put(subject: string, bytes: Uint8Array): Promise<number> {
    assert(bytes.length <= limits.snapshotPartBytesMax, "a part of a snapshot fits a message");
    const retry = this.#retry();
    for (;;) {
      this.#requireOpen();
      const outcome = await this.#ask(subject, bytes);
      if (outcome.kind === "stored") return outcome.seq;
      if (outcome.kind === "full") throw await this.#fullError(outcome.message);
      await this.#lookWhetherGone();
      await retry.pause(notKnownError(outcome.cause));
    }
  }

  async #fullError(answer: string): Promise<WaggleError> {
    const { stream } = this.#api;
    const usage = await this.usage().catch(() => undefined); // what it said is enough
    return snapshotsFullError(fullText(stream, answer, usage), usage?.remedy);
  }

  async #ask(subject: string, bytes: Uint8Array): Promise<PutOutcome> {
    const { maxPayloadBytes } = this.#wire;
    if (bytes.length > maxPayloadBytes) {
      return {
        kind: "full",
        message: `the server takes ${maxPayloadBytes} bytes at most, not ${bytes.length}`,
      };
    }
    const timeoutMs = limits.appendTimeoutMs;
    const answer = await this.#wire.ask(subject, bytes, { timeoutMs });
    return answer.kind === "answered"
      ? readPutAnswer(answer.data, this.#api.stream)
      : { kind: "unknown", cause: unansweredError(answer.kind, timeoutMs) };
  }

  /** @throws UnreachableError when patience has ended */
  async #insist<T>(ask: () => Promise<T>): Promise<T> {
    const retry = this.#retry();
    for (;;) {
      this.#requireOpen();
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof UnreachableError)) throw error;
        if (isStreamMissing(error)) await this.#makeAnew();
        await retry.pause(error);
      }
    }
  }

  /** What is published for a stream that is gone is not answered. @throws BrokerError where none can be made */
  async #lookWhetherGone(): Promise<void> {
    if (this.#recreate === undefined) return;
    await this.#api.info().catch((error: unknown) => (isStreamMissing(error) ? this.#makeAnew() : undefined));
  }

  /** A server that does not answer is asked again. @throws BrokerError where none can be made */
  async #makeAnew(): Promise<void> {
    try {
      await this.#recreate?.();
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error;
    }
  }

  #retry(): Retry {
    const { signal } = this.#closed;
    const options = { clock: this.#clock, signal, patienceMs: limits.journalSilenceMsMax };
    return new Retry(options, (listener) => this.#wire.onStatus(listener));
  }

  #requireOpen(): void {
    if (this.#closed.signal.aborted) throw snapshotsClosedError();
    if (this.#wire.status === "closed")
      throw new UnreachableError("the connection to NATS is closed for good");
  }
}

function notKnownError(cause: unknown): UnreachableError {
  const reason = messageOf(cause);
  return new UnreachableError(`a part of a snapshot is not known to be stored: ${reason}`, { cause });
}
