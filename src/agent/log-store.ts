// The last log text of the agent's attempts, within bounds, readable until the agent ends. Kept in the
// session's thread, so that a handler that blocks its thread does not prevent reading. Not journaled.

import { Buffer } from "node:buffer";
import { limits } from "../limits.ts";
import type { AttemptText } from "../protocol/log-schemas.ts";
import { hashOfPair } from "../state/hash-index.ts";
import type { AttemptKey } from "./link.ts";

/** The attempt that wrote the text. */
export interface LoggedAttempt {
  readonly project: string;
  readonly task: string;
  readonly attempt: number;
}

/** Selects attempts. */
export interface LogQuestion {
  /** Attempts of other projects are excluded. */
  readonly project: string;
  readonly task: string;
  /** Only the attempt of this number. */
  readonly attempt?: number | undefined;
}

interface Kept {
  readonly of: LoggedAttempt;
  tail: Buffer;
  droppedBytes: number;
}

const nothing = Buffer.alloc(0);

export class LogStore {
  readonly #running = new Map<AttemptKey, Kept>();
  readonly #ended = new EndedLogs();
  readonly #silent = new SilentAttempts();

  begin(key: AttemptKey, of: LoggedAttempt): void {
    this.#running.set(key, silence(of));
  }

  /** @param droppedBytes written before the text and left out */
  append(key: AttemptKey, text: string, droppedBytes = 0): void {
    const kept = this.#running.get(key);
    if (kept === undefined) return; // has ended
    if (droppedBytes > 0) {
      kept.droppedBytes += kept.tail.length + droppedBytes;
      kept.tail = nothing;
    }
    kept.tail = Buffer.concat([kept.tail, Buffer.from(text)]);
    if (kept.tail.length > 2 * limits.attemptLogBytes) cut(kept);
  }

  /** The attempt, until it has ended. */
  attempt(key: AttemptKey): LoggedAttempt | undefined {
    return this.#running.get(key)?.of;
  }

  /** The attempt has ended and writes nothing more. @returns true if it wrote anything */
  end(key: AttemptKey): boolean {
    const kept = this.#running.get(key);
    if (kept === undefined) return false;
    this.#running.delete(key);
    const hasWritten = kept.tail !== nothing;
    cut(kept);
    if (hasWritten) this.#ended.add(kept);
    else this.#silent.add(kept.of);
    return hasWritten;
  }

  /** Texts of a task's attempts, newest first, as many as fit. @param bytesMax size of the whole answer, as
   *  JSON */
  read({ project, task, attempt }: LogQuestion, bytesMax: number): AttemptText[] {
    const isAsked = ({ of }: Kept) =>
      of.task === task && of.project === project && (attempt === undefined || of.attempt === attempt);
    const kept = [...this.#silent.of({ project, task }), ...this.#ended.all(), ...this.#running.values()];
    const found = kept.filter(isAsked).sort((a, b) => b.of.attempt - a.of.attempt);
    const texts: AttemptText[] = [];
    let bytes = 0;
    for (const each of found) {
      cut(each);
      const { of, tail, droppedBytes } = each;
      const text = { attempt: of.attempt, text: tail.toString(), droppedBytes };
      bytes += Buffer.byteLength(JSON.stringify(text));
      if (bytes > bytesMax) break;
      texts.push(text);
    }
    return texts;
  }
}

function silence(of: LoggedAttempt): Kept {
  return { of, tail: nothing, droppedBytes: 0 };
}

/** Ended attempts that wrote nothing: most attempts of a busy agent. They are kept as numbers: as objects, a thousand
 *  attempts of each of 250 agents took 120 MiB. If another task has the same hash, its silent attempts appear as
 *  attempts of the asked task. */
class SilentAttempts {
  readonly #hashes = new Uint32Array(limits.endedLogsMax);
  readonly #attempts = new Uint32Array(limits.endedLogsMax);
  #next = 0;

  add({ project, task, attempt }: LoggedAttempt): void {
    this.#hashes[this.#next] = hashOfPair(project, task);
    this.#attempts[this.#next] = attempt;
    this.#next = (this.#next + 1) % limits.endedLogsMax;
  }

  /** The attempts of a task. */
  *of({ project, task }: Pick<LoggedAttempt, "project" | "task">): Generator<Kept> {
    const hash = hashOfPair(project, task); // never 0, as an unused place is
    for (const [at, attempt] of this.#attempts.entries())
      if (this.#hashes[at] === hash) yield silence({ project, task, attempt });
  }
}

/** A ring buffer: the oldest logs make room for the newest, in constant time. */
class EndedLogs {
  readonly #ring: (Kept | undefined)[] = [];
  #added = 0;
  #removed = 0;
  #bytes = 0;

  add(kept: Kept): void {
    if (this.#added - this.#removed === limits.endedLogsMax) this.#removeOldest();
    this.#ring[this.#added % limits.endedLogsMax] = kept;
    this.#added += 1;
    this.#bytes += kept.tail.length;
    while (this.#bytes > limits.endedLogsBytesMax) this.#removeOldest();
  }

  /** In order of their end. */
  *all(): Generator<Kept> {
    for (let at = this.#removed; at < this.#added; at += 1) {
      const kept = this.#ring[at % limits.endedLogsMax];
      if (kept !== undefined) yield kept;
    }
  }

  #removeOldest(): void {
    const at = this.#removed % limits.endedLogsMax;
    this.#bytes -= this.#ring[at]?.tail.length ?? 0;
    this.#ring[at] = undefined;
    this.#removed += 1;
  }
}

/** Cuts to the newest part that may be kept. */
function cut(kept: Kept): void {
  const from = tailStart(kept.tail, limits.attemptLogBytes);
  if (from === 0) return;
  kept.droppedBytes += from;
  kept.tail = Buffer.from(kept.tail.subarray(from));
}

const LINE_FEED = 0x0a;

/** Start of the last `bytesMax` bytes of UTF-8. Prefers the start of a line within the first half, else takes
 *  the start of a character. */
function tailStart(bytes: Buffer, bytesMax: number): number {
  let from = bytes.length - bytesMax;
  if (from <= 0) return 0;
  const lineEnd = bytes.indexOf(LINE_FEED, from - 1);
  if (lineEnd !== -1 && lineEnd + 1 - from <= bytesMax / 2) return lineEnd + 1;
  while (isContinuation(bytes[from])) from += 1;
  return from;
}

/** True for a byte inside a character. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}
