// The journal as JetStream streams, one per segment, over one connection (wire.ts). Opened by opening.ts and nats.ts.

import { Aborts } from "../../abort.ts";
import { type Clock, type Random, systemClock, systemRandom } from "../../clock.ts";
import { mayAnswerLater, UnreachableError, WaggleError } from "../../errors.ts";
import type { SwarmId } from "../../ids.ts";
import { limits } from "../../limits.ts";
import { type Subjects, subjectsOf } from "../../protocol/subjects.ts";
import type { Durability, Journal, JournalUsage, Segment } from "../journal.ts";
import { closedError, fullError } from "../journal-errors.ts";
import { apiCodes, isStreamMissing, StreamApi, StreamApiError, type StreamConfig } from "./api.ts";
import { Retry } from "./retry.ts";
import { Room } from "./room.ts";
import { checkSettings, requireSettings, segmentNumberIn, streamConfigOf, streamNameOf } from "./settings.ts";
import { StreamSegment } from "./stream-segment.ts";
import type { StreamWire } from "./wire.ts";

export interface StreamJournalOptions {
  readonly wire: StreamWire;
  readonly swarm: SwarmId;
  /** Number of replicas of each new segment. */
  readonly replicas: number;
  /** Bound on all segments together. */
  readonly bytesMax: number;
  /** Default: the system's. */
  readonly clock?: Clock;
  readonly random?: Random;
}

export class StreamJournal implements Journal {
  readonly sharable = true;
  readonly durability: Durability;
  readonly #options: StreamJournalOptions;
  readonly #subjects: Subjects;
  readonly #api: StreamApi;
  readonly #readerApi: StreamApi;
  readonly #room: Room;
  readonly #closed = new AbortController();
  readonly #aborts = new Aborts();
  readonly #segments = new Map<number, StreamSegment>();

  constructor(options: StreamJournalOptions) {
    const { wire, swarm, replicas, bytesMax } = options;
    this.durability = durabilityOf(replicas);
    this.#options = options;
    this.#subjects = subjectsOf(swarm);
    this.#api = new StreamApi(wire);
    this.#readerApi = new StreamApi(wire, limits.journalAskMs);
    this.#room = new Room(bytesMax, () => this.#countBytes());
  }

  async list(): Promise<readonly number[]> {
    this.#requireOpen();
    const names = await this.#api.names(this.#subjects.segment("*"));
    const numbers = names.map((name) => segmentNumberIn(name, this.#options.swarm));
    return numbers.filter((number) => number !== undefined).sort((one, other) => one - other);
  }

  /** The only handle of a segment: the handle remembers up to which position no seal is stored. */
  segment(number: number): Segment {
    const known = this.#segments.get(number);
    if (known !== undefined) return known;
    const { wire, swarm, clock = systemClock, random = systemRandom } = this.#options;
    const segment = new StreamSegment({
      ...{ wire, clock, random, segment: number, stream: streamNameOf({ swarm, number }) },
      ...{ subjects: this.#subjects, api: this.#api, readerApi: this.#readerApi, room: this.#room },
      ...{ closed: this.#closed.signal, aborts: this.#aborts },
    });
    this.#segments.set(number, segment);
    return segment;
  }

  async create(number: number): Promise<void> {
    this.#requireOpen();
    const id = { swarm: this.#options.swarm, number };
    requireSettings(`the stream ${streamNameOf(id)}`, checkSettings(await this.#createStream(id), id));
  }

  async remove(number: number): Promise<void> {
    this.#requireOpen();
    this.#segments.delete(number);
    try {
      await this.#api.remove(streamNameOf({ swarm: this.#options.swarm, number }));
    } catch (error) {
      if (!isStreamMissing(error)) throw error;
    }
  }

  async usage(): Promise<JournalUsage> {
    this.#requireOpen();
    return await this.#room.usage();
  }

  onReconnected(listener: () => void): () => void {
    const { wire } = this.#options;
    return wire.onStatus(() => {
      if (wire.status === "connected") listener();
    });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#options.wire.close();
  }

  /** Settings of the stream, new or found. Repeats the creation in three cases:
   *   - Two coordinators create a stream at the same time. Nats-server 2.9.10 may then report overlapping subjects
   *     before `info` finds the stream.
   *   - A stream was deleted just before. Nats-server 2.15.1 removes emptied folders in the background, among them
   *     the folder in which it is about to make the new stream's.
   *   - The server does not answer. A cluster without one of its servers answers only after the new stream has a
   *     leader, which was seen to take 9 s. */
  async #createStream(id: { readonly swarm: SwarmId; readonly number: number }): Promise<StreamConfig> {
    const { wire, replicas, clock = systemClock, random = systemRandom } = this.#options;
    const stream = streamNameOf(id);
    const { signal } = this.#closed;
    const refused = new Retry({ wire, clock, random, signal, patienceMs: limits.journalAskMs });
    const unanswered = new Retry({ wire, clock, random, signal, patienceMs: limits.journalOpenMs });
    for (;;) {
      try {
        return await this.#api.create(stream, streamConfigOf(id, replicas));
      } catch (error) {
        if (error instanceof StreamApiError) {
          if (!passingCodes.has(error.errCode)) throw createError(stream, error);
          const config = await this.#configOf(stream);
          if (config !== undefined) return config;
          await refused.pause(createError(stream, error));
        } else if (mayAnswerLater(error)) await unanswered.pause(error);
        else throw error;
        this.#requireOpen();
      }
    }
  }

  async #configOf(stream: string): Promise<StreamConfig | undefined> {
    try {
      return (await this.#api.info(stream)).config;
    } catch (error) {
      if (isStreamMissing(error)) return undefined;
      throw error;
    }
  }

  async #countBytes(): Promise<number> {
    const numbers = await this.list();
    const bytes = await Promise.all(numbers.map((number) => this.#bytesOf(number)));
    return bytes.reduce((sum, each) => sum + each, 0);
  }

  /** 0 if the segment was removed meanwhile. */
  async #bytesOf(number: number): Promise<number> {
    try {
      return (await this.#api.info(streamNameOf({ swarm: this.#options.swarm, number }))).bytes;
    } catch (error) {
      if (isStreamMissing(error)) return 0;
      throw error;
    }
  }

  #requireOpen(): void {
    if (this.#closed.signal.aborted) throw closedError();
    if (this.#options.wire.status === "closed")
      throw new UnreachableError("the connection to NATS is closed for good");
  }
}

const passingCodes: ReadonlySet<number> = new Set([
  apiCodes.storeNotCreated,
  apiCodes.streamNameInUse,
  apiCodes.subjectsOverlap,
]);
const noRoomCodes: ReadonlySet<number> = new Set([
  apiCodes.accountResources,
  apiCodes.noResources,
  apiCodes.noMoreStreams,
  apiCodes.noAccountStorage,
  apiCodes.noStorage,
]);

function createError(stream: string, cause: StreamApiError): WaggleError {
  if (noRoomCodes.has(cause.errCode))
    return fullError(
      `${cause.message}, for the stream ${stream}`,
      "give JetStream more room or streams (`max_file_store`, or the account's limits)",
    );
  const isRequestWrong = cause.status === 400 && cause.errCode !== apiCodes.noPeers;
  if (!isRequestWrong) return cause;
  const advice =
    cause.errCode === apiCodes.subjectsOverlap
      ? "A different stream takes the journal's subjects: find the stream with `nats stream ls`, and remove it, or use a different swarm name"
      : "Change the account's limits for streams, or use another account";
  return new WaggleError(
    "WAGGLE_JOURNAL_SETTINGS",
    `the stream ${stream} cannot be created. ${cause.message}. ${advice}.`,
    { cause },
  );
}

/** A client cannot check permissions: the server does not report them. */
const ANY_CLIENT = "Without permissions on the server, any client can write anything.";

function durabilityOf(replicas: number): Durability {
  if (replicas >= 2) {
    return {
      class: "replicated",
      sentence:
        `Every batch is on most of ${replicas} NATS servers before it is answered; the journal survives the loss of one server. ` +
        `A power failure of most servers at once may lose unsynced batches. ${ANY_CLIENT}`,
    };
  }
  return {
    class: "page-cache",
    sentence:
      "Every batch is written by one NATS server before it is answered, and survives a crash of the server. A " +
      "power failure may lose unsynced batches, by default of the last two minutes. A server of 2.10 or newer loses " +
      `nothing with \`sync_interval: always\` in its configuration, which a client cannot see. ${ANY_CLIENT}`,
  };
}
