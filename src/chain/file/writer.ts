// Writes one segment's file: one write and one sync for all appends and seals that wait (group commit). Nothing is
// answered, read or followed before it is synced.
//
// Failures: no room → `full`, and the bytes that were written are cut off again. A failed sync leaves in doubt what the
// disk holds, so the journal writes nothing after it (`WriterDeps.breakDown`): appends end `unknown` until it is opened
// again.

import { messageOf, type WaggleError } from "../../errors.ts";
import type { Bell } from "../bell.ts";
import type { AppendOutcome } from "../journal.ts";
import { closedError } from "../journal-errors.ts";
import { cutGroup, type Group, type Write } from "./group.ts";
import { isNoSpace, type JournalFile, writeAll } from "./handle.ts";
import { sizeOf } from "./scan.ts";
import type { SegmentLog } from "./segment-log.ts";

export interface WriterDeps {
  /** Rings after each write. */
  readonly changes: Bell;
  /** Bytes that records may still add to the journal. */
  room(): number;
  /** Why nothing may be written any more; undefined while writing works. */
  broken(): WaggleError | undefined;
  /** The disk failed so that it is unknown what it holds. Returns the reason that `broken` gives from now on. */
  breakDown(path: string, cause: unknown): WaggleError;
}

export class SegmentWriter {
  readonly log: SegmentLog;
  readonly #file: JournalFile;
  readonly #deps: WriterDeps;
  #waiting: Write[] = [];
  #underWay: readonly Write[] = [];
  #plannedBytes = 0;
  #writing: Promise<void> | undefined;
  /** The outcome of every write after `stop`. */
  #stopped: AppendOutcome | undefined;

  /** @param file to write to, at the log's end; the writer closes it */
  constructor(log: SegmentLog, file: JournalFile, deps: WriterDeps) {
    this.log = log;
    this.#file = file;
    this.#deps = deps;
  }

  /** Bytes of the file, with those of the write under way. */
  get bytes(): number {
    return Math.max(sizeOf(this.log.fileEnd), this.#plannedBytes);
  }

  write(write: Omit<Write, "settle">): Promise<AppendOutcome> {
    if (this.#stopped !== undefined) return Promise.resolve(this.#stopped);
    return new Promise((settle) => {
      this.#waiting.push({ ...write, settle });
      this.#writing ??= this.#writeGroups();
    });
  }

  /** Ends every write under way and to come with `outcome`, and closes the file. Idempotent. */
  async stop(outcome: AppendOutcome = { kind: "unknown", cause: closedError() }): Promise<void> {
    if (this.#stopped !== undefined) return;
    this.#stopped = outcome;
    for (const { settle } of this.#waiting) settle(outcome);
    this.#waiting = [];
    if (outcome.kind === "unknown") for (const { settle } of this.#underWay) settle(outcome);
    await this.#writing;
    await this.#file.close();
  }

  async #writeGroups(): Promise<void> {
    await Promise.resolve(); // appends of one turn share the first write
    while (this.#waiting.length > 0) {
      this.#underWay = this.#waiting;
      this.#waiting = [];
      const group = cutGroup(this.#underWay, this.log.fileEnd, this.#deps.room());
      this.#plannedBytes = sizeOf(group.end);
      const fault = await this.#write(group);
      this.#plannedBytes = 0;
      for (const [{ settle }, outcome] of group.outcomes) settle(fault ?? outcome);
      this.#underWay = [];
    }
    this.#writing = undefined;
  }

  /** The outcome of the whole group when it failed: nothing of it counts. */
  async #write(group: Group): Promise<AppendOutcome | undefined> {
    const broken = this.#deps.broken();
    if (broken !== undefined) return { kind: "unknown", cause: broken };
    if (group.parts.length === 0) return undefined;
    const end = sizeOf(this.log.fileEnd);
    try {
      const { size } = await this.#file.stat();
      if (size !== end)
        throw new Error(`it has ${size} bytes and should have ${end}: another process writes to it`);
      await writeAll(this.#file, group.parts, end);
      await this.#file.datasync();
    } catch (cause) {
      return await this.#undo(cause, end);
    }
    for (const place of group.places) this.log.note(place);
    this.log.fileEnd = group.end;
    this.#deps.changes.ring();
    return undefined;
  }

  async #undo(cause: unknown, end: number): Promise<AppendOutcome> {
    try {
      if (!isNoSpace(cause)) throw cause;
      await this.#file.truncate(end);
      await this.#file.datasync();
    } catch (another) {
      return { kind: "unknown", cause: this.#deps.breakDown(this.log.path, another) };
    }
    return { kind: "full", message: `no room on the disk: ${messageOf(cause)}` };
  }
}
