// A segment of the journal as a JetStream stream, sealed as in seal.ts. The stream is authoritative. A handle remembers
// a found seal.

import type { Aborts } from "../../abort.ts";
import { JournalDamagedError, UnreachableError } from "../../errors.ts";
import { GracePeriod } from "../../grace-period.ts";
import { limits } from "../../limits.ts";
import type {
  AppendOptions,
  AppendOutcome,
  ReplayOptions,
  Segment,
  SegmentEnd,
  SegmentRecord,
} from "../journal.ts";
import { closedError, noSegmentError, unreadableError } from "../journal-errors.ts";
import {
  isStreamMissing,
  isUnreadable,
  type RecordQuestion,
  type StreamApi,
  unansweredError,
} from "./api.ts";
import { APPEND_HEADERS_BYTES, acknowledgedPosition, appendHeaders, readAppendAnswer } from "./append.ts";
import type { StreamAccess } from "./pull.ts";
import { type Reading, readSegment } from "./reader.ts";
import { Retry } from "./retry.ts";
import type { Room } from "./room.ts";
import { sealPosition } from "./seal.ts";
import type { StreamOutcome } from "./wire.ts";

export interface SegmentAccess extends StreamAccess {
  /** For readers, with a shorter time-out. */
  readonly readerApi: StreamApi;
  readonly room: Room;
  /** Aborts when the journal is closed. */
  readonly closed: AbortSignal;
  /** Links the signals of any number of readers. */
  readonly aborts: Aborts;
}

const NOTHING = new Uint8Array();

export class StreamSegment implements Segment {
  readonly number: number;
  readonly #access: SegmentAccess;
  readonly #absence: GracePeriod;
  #sealedAt: number | undefined;

  constructor(access: SegmentAccess) {
    this.number = access.segment;
    this.#access = access;
    this.#absence = new GracePeriod(access.clock, limits.streamMissingMs, limits.lossLooksMin);
  }

  /** During a failover a server may report an end before the seal. The question is then repeated. If the answer
   *  lasts for `limits.journalGapMs`, the stream lost its end. The answer of a single server is final. */
  async end(): Promise<SegmentEnd | undefined> {
    const { api, stream, clock, wire } = this.#access;
    const cut = new GracePeriod(clock, limits.journalGapMs, limits.lossLooksMin);
    const retry = this.#retry();
    for (;;) {
      const report = await this.#ifThere(() => api.info(stream));
      if (report === undefined) return undefined;
      const { lastSeq, records, bytes } = report;
      const sealedAt = await this.#seal(); // asked after `info`, so that no counted record follows the seal
      const isCurrent = sealedAt === undefined || sealedAt <= lastSeq || wire.servers === "one";
      if (isCurrent || cut.isBelieved()) {
        const position = Math.min(lastSeq, (sealedAt ?? Number.POSITIVE_INFINITY) - 1);
        return { position, bytes, isSealed: sealedAt !== undefined, missing: lastSeq - records };
      }
      await retry.pause();
    }
  }

  async append(
    bytes: Uint8Array,
    expected: number,
    { isOpened = false }: AppendOptions = {},
  ): Promise<AppendOutcome> {
    const { closed, wire, room, stream, subjects } = this.#access;
    if (closed.aborted) return { kind: "unknown", cause: closedError() };
    if (this.#sealedAt !== undefined) return { kind: "sealed" };
    const { maxPayloadBytes } = wire;
    if (bytes.length + APPEND_HEADERS_BYTES > maxPayloadBytes)
      return { kind: "full", message: `the server takes ${maxPayloadBytes} bytes, not ${bytes.length}` };
    const refusal = room.refusal(bytes.length);
    if (refusal !== undefined) return { kind: "full", message: refusal };
    const subject = isOpened ? subjects.segmentOpened(this.number) : subjects.segment(this.number);
    const answer = await this.#publish(subject, bytes, appendHeaders(expected));
    if (answer.kind === "no-responders" && (await this.#isMissing())) return { kind: "missing" };
    if (answer.kind !== "answered")
      return { kind: "unknown", cause: unansweredError(answer, limits.appendTimeoutMs) };
    const position = expected + 1;
    const outcome = readAppendAnswer(answer.data, { stream, position });
    if (outcome.kind === "stored") room.stored(bytes.length);
    const mayBeSealed = outcome.kind === "refused" || (outcome.kind === "stored" && isOpened);
    return mayBeSealed ? await this.#unlessSealed(outcome, position) : outcome;
  }

  async read(position: number): Promise<SegmentRecord | undefined> {
    return position < 1
      ? undefined
      : await this.#record({ seq: position }, unreadableError(this.number, position));
  }

  async opened(): Promise<SegmentRecord | undefined> {
    const question = { last_by_subj: this.#access.subjects.segmentOpened(this.number) };
    const reason = `the record that opens segment ${this.number} cannot be read`;
    return await this.#record(question, new JournalDamagedError(reason));
  }

  async *replay(from: number, options: ReplayOptions = {}): AsyncGenerator<SegmentRecord> {
    const { until = (await this.end())?.position } = options;
    if (until === undefined) throw noSegmentError(this.number);
    const { patienceMs = limits.journalSilenceMsMax, aheadBytes } = options;
    const isToEnd = options.until === undefined;
    yield* this.#read({ from, until, isToEnd, patienceMs, aheadBytes });
    this.#requireOpen();
  }

  async *follow(from: number, signal: AbortSignal): AsyncGenerator<SegmentRecord> {
    yield* this.#read({ from }, signal);
  }

  async seal(): Promise<boolean> {
    const { api, stream, subjects } = this.#access;
    const retry = this.#retry(limits.journalOpenMs);
    const unshown: number[] = [];
    let answer: StreamOutcome | undefined;
    for (;;) {
      if ((await this.#ifThere(() => api.info(stream))) === undefined) return false;
      if ((await this.#seal()) !== undefined) return true;
      if (answer !== undefined) {
        const position = answer.kind === "answered" ? acknowledgedPosition(answer.data, stream) : undefined;
        if (position !== undefined) unshown.push(position);
        if (unshown.length >= limits.sealsUnshownMax) {
          this.#sealedAt = Math.min(...unshown);
          return true;
        }
        const text = answer.kind === "answered" ? new TextDecoder().decode(answer.data) : answer.kind;
        await retry.pause(new UnreachableError(`segment ${this.number} could not be sealed (${text})`));
      }
      answer = await this.#publish(subjects.segmentSealed(this.number), NOTHING);
      if (answer.kind === "forbidden") throw unansweredError(answer, limits.appendTimeoutMs);
    }
  }

  /** Sends before returning, so that appends leave in the order of the calls. */
  #publish(subject: string, bytes: Uint8Array, headers?: Record<string, string>): Promise<StreamOutcome> {
    const timeoutMs = limits.appendTimeoutMs;
    const options = headers === undefined ? { timeoutMs } : { timeoutMs, headers };
    return this.#access.wire.ask(subject, bytes, options);
  }

  /** `sealed` if the record was stored after the seal, or refused because of the seal. */
  async #unlessSealed(outcome: AppendOutcome, position: number): Promise<AppendOutcome> {
    try {
      const sealedAt = await this.#seal();
      const isSealed = sealedAt !== undefined && (sealedAt < position || outcome.kind === "refused");
      return isSealed ? { kind: "sealed" } : outcome;
    } catch (cause) {
      return { kind: "unknown", cause };
    }
  }

  /** The position of the seal; undefined if the segment is not sealed. @throws UnreachableError */
  async #seal(): Promise<number | undefined> {
    this.#sealedAt ??= await this.#ifThere(() => sealPosition(this.#access));
    return this.#sealedAt;
  }

  /** @param unreadable the error to throw for a damaged record */
  async #record(
    question: RecordQuestion,
    unreadable: JournalDamagedError,
  ): Promise<SegmentRecord | undefined> {
    const { api, stream } = this.#access;
    const found = await this.#ifThere(() => api.record(stream, question)).catch((error: unknown) => {
      throw isUnreadable(error) ? unreadable : error;
    });
    if (found === undefined) return undefined;
    const { position, bytes, subject } = found;
    if (subject === this.#access.subjects.segmentSealed(this.number)) return undefined; // though #seal may not find the seal yet
    const sealedAt = (await this.#seal()) ?? Number.POSITIVE_INFINITY;
    return position < sealedAt ? { position, bytes } : undefined;
  }

  async *#read(reading: Omit<Reading, "signal">, signal?: AbortSignal): AsyncGenerator<SegmentRecord> {
    const { aborts, closed, readerApi } = this.#access;
    const ending = aborts.linkedTo(signal, closed);
    try {
      yield* readSegment({ ...this.#access, api: readerApi }, { ...reading, signal: ending.signal });
    } finally {
      ending.abort();
    }
  }

  /** Undefined if the stream is certain not to exist. "Stream not found" from a single server is final. Servers that
   *  fail over may answer so for existing streams, so a cluster must repeat the answer for `limits.streamMissingMs`.
   *  @throws UnreachableError, StreamApiError; without `patient`, StreamApiError as long as the absence is uncertain */
  async #ifThere<T>(ask: () => Promise<T>, { patient = true } = {}): Promise<T | undefined> {
    const retry = this.#retry();
    for (;;) {
      this.#requireOpen();
      try {
        const answer = await ask();
        this.#absence.renew();
        return answer;
      } catch (error) {
        if (!isStreamMissing(error)) {
          this.#absence.renew();
          throw error;
        }
        if (this.#absence.isBelieved() || this.#access.wire.servers === "one") return undefined;
        if (!patient) throw error;
        await retry.pause();
      }
    }
  }

  /** Asks once. False if the stream exists or the absence is uncertain. */
  async #isMissing(): Promise<boolean> {
    const { api, stream } = this.#access;
    const look = this.#ifThere(() => api.info(stream), { patient: false });
    return await look.then(
      (report) => report === undefined,
      () => false,
    );
  }

  #retry(patienceMs?: number): Retry {
    const { wire, clock, random, closed: signal } = this.#access;
    return new Retry({ wire, clock, random, signal, patienceMs });
  }

  #requireOpen(): void {
    if (this.#access.closed.aborted) throw closedError();
  }
}
