// The newest heartbeat of an agent, in memory shared by two threads. The agent's thread writes a heartbeat that is
// ready to be sent. The stand-in's thread (thread.ts) sends the heartbeat when the agent's thread is blocked, and notes
// when a leader confirmed it. Neither thread waits for the other or wakes the other.
//
// The version is odd while the agent's thread writes, and even otherwise. A reader that finds an odd version, or a
// change of the version, reads again later. Versions are never reused by a slate.

import { Buffer } from "node:buffer";

/** Words of 32 bits. */
const VERSION = 0;
const LENGTH = 1;
const TERM = 2;
const CONFIRMED_VERSION = 3;
const WORDS = 4;
/** Words of 64 bits behind: µs of the clock that all threads share. */
const SENT_AT = 0;
const PERIOD = 1;
const CONFIRMED_AT = 2;
const INSTANTS = 3;
const HEADER_BYTES = WORDS * 4 + INSTANTS * 8;

/** Time of the clock that all threads of a process share, µs. */
export function sharedMicros(): bigint {
  return process.hrtime.bigint() / 1_000n;
}

export interface SlatedHeartbeat {
  readonly version: number;
  readonly bytes: Uint8Array;
  /** Term that the agent knows. The answer of an older leader confirms nothing. */
  readonly term: number;
}

export class HeartbeatSlate {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #instants: BigInt64Array;
  readonly #text: Buffer;

  private constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#words = new Int32Array(memory, 0, WORDS);
    this.#instants = new BigInt64Array(memory, WORDS * 4, INSTANTS);
    this.#text = Buffer.from(memory, HEADER_BYTES);
  }

  static ofSize(bytes: number): HeartbeatSlate {
    return new HeartbeatSlate(new SharedArrayBuffer(HEADER_BYTES + bytes));
  }

  static over(memory: SharedArrayBuffer): HeartbeatSlate {
    return new HeartbeatSlate(memory);
  }

  get capacityBytes(): number {
    return this.#text.length;
  }

  /** @param message at most `capacityBytes` as UTF-8; empty: nothing may be sent. @returns the version */
  write(message: string, term: number): number {
    Atomics.add(this.#words, VERSION, 1);
    Atomics.store(this.#words, LENGTH, this.#text.write(message));
    Atomics.store(this.#words, TERM, term);
    return (Atomics.add(this.#words, VERSION, 1) + 1) | 0;
  }

  /** The agent's thread sent a heartbeat itself. */
  noteSent(periodMs: number): void {
    Atomics.store(this.#instants, PERIOD, BigInt(Math.ceil(periodMs * 1_000)));
    Atomics.store(this.#instants, SENT_AT, sharedMicros());
  }

  /** When the agent's thread sent its newest heartbeat, and the period of its heartbeats. */
  pace(): { readonly sentAt: bigint; readonly period: bigint } {
    return { sentAt: Atomics.load(this.#instants, SENT_AT), period: Atomics.load(this.#instants, PERIOD) };
  }

  /** Undefined while nothing may be sent, and during a write. */
  read(): SlatedHeartbeat | undefined {
    const version = Atomics.load(this.#words, VERSION);
    const length = Atomics.load(this.#words, LENGTH);
    if (version % 2 !== 0 || length === 0) return undefined;
    const bytes = Uint8Array.from(this.#text.subarray(0, length));
    const term = Atomics.load(this.#words, TERM);
    return Atomics.load(this.#words, VERSION) === version ? { version, bytes, term } : undefined;
  }

  /** A leader confirmed a heartbeat of the stand-in, sent at `sentAt`. */
  confirm(version: number, sentAt: bigint): void {
    // A reader that finds the version also finds an instant that is not too late.
    Atomics.store(this.#instants, CONFIRMED_AT, sentAt);
    Atomics.store(this.#words, CONFIRMED_VERSION, version);
  }

  /** Age of the newest confirmed heartbeat of a version, ms. Undefined before the first. */
  confirmedAgeMs(version: number): number | undefined {
    if (Atomics.load(this.#words, CONFIRMED_VERSION) !== version) return undefined;
    return Number(sharedMicros() - Atomics.load(this.#instants, CONFIRMED_AT)) / 1_000;
  }
}
