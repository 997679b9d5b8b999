// Writes one segment's file: one write and one sync for all waiting appends and seals (group commit). A record is
// synced before it is acknowledged, read or followed.
//
// Failures: no room → `full`, and the writer cuts off the bytes of the failed write. After a failed sync the contents
// of the disk are unknown, so the journal writes nothing more (`WriterDeps.breakDown`): appends end `unknown` until the
// journal is opened again.

import { fstatSync } from "node:fs";
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
  /** Why the journal writes nothing more; undefined while writing works. */
  broken(): WaggleError | undefined;
  /** Stops all writing, for a failure after which the contents of the disk are unknown. Returns the reason. */
  breakDown(path: string, cause: unknown): WaggleError;
}

export class GroupWriter {
  readonly log: SegmentLog;
  readonly #file: JournalFile;
  readonly #deps: WriterDeps;
  #waiting: Write[] = [];
  #underWay: readonly Write[] = [];
  #plannedBytes = 0;
  #writing: Promise<void> | undefined;
  /** The outcome of every write after `stop`. */
  #stopped: AppendOutcome | undefined;

  /** @param file open for writing; `stop` closes it */
  constructor(log: SegmentLog, file: JournalFile, deps: WriterDeps) {
    this.log = log;
    this.#file = file;
    this.#deps = deps;
  }

  /** Bytes of the file, the write under way included. */
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

  /** Ends waiting and later writes with `outcome`, and closes the file. `unknown` also ends the write under way.
   *  Idempotent. */
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

  /** The outcome of the whole group when the write failed. */
  async #write(group: Group): Promise<AppendOutcome | undefined> {
    const broken = this.#deps.broken();
    if (broken !== undefined) return { kind: "unknown", cause: broken };
    if (group.parts.length === 0) return undefined;
    const end = sizeOf(this.log.fileEnd);
    try {
      const { size } = fstatSync(this.#file.fd); // some µs; an awaited answer waits for the leader's whole turn
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
