// A page of ended tasks in packed form, in order of ending. Numbers lie in typed arrays, ids and hashes in one buffer,
// and names (projects, users, kinds, states, agents) in a table of the page. A record takes some 100 bytes and no
// object, so the garbage collector never visits a record.
//
// A page is written in the columns of its owner. A full page moves into memory of its own, which the system gets back
// as soon as the page is dropped, or the thread ends.
//
// The one thing to know: a record has a number for as long as the page lasts. A page without gaps finds the record by
// its number; a shrunk page holds the numbers in a list.

import { assert } from "../assert.ts";
import type { AgentId, BatchIndex, Instant, Kind, ProjectId, TaskId, TaskRef, UserId } from "../ids.ts";
import type { EndedTask, EndedTaskState } from "./ended-task.ts";

/** Records of a page: some 128 KiB, written anew within a millisecond. */
export const recordsPerPage = 1_024;

/** Numbers of a record in each of a page's arrays. */
const wholesPerRecord = 7;
const wordsPerRecord = 2;
const shortsPerRecord = 6;
const noBases: readonly number[] = new Array(wholesPerRecord).fill(0);
/** At first: the text of a page being written grows as needed. */
const textBytesPerRecord = 64;
/** Share of live rows below which a page is written anew, so that memory is at most twice the live records'. */
const sparseShare = 0.5;
/** The last character of a text with one byte per character. */
const lastNarrow = 0xff;
/** Added to the length of an id: the record's text has two bytes per character. */
const isWide = 0x8000;

/** The records of a page, column by column. */
export interface Columns {
  /** Sequence, round, attempts, batches of submission and of the round, instant and batch of the end. */
  readonly wholes: Float64Array | Uint32Array;
  /** To be added to each column of `wholes`. */
  readonly bases: readonly number[];
  /** Hash of project and id, end of the text. */
  readonly words: Uint32Array;
  /** Project, user, kind, state and agent in the table of names; length of the id, 0 of a deleted record. */
  readonly shorts: Uint16Array;
  /** Id and hash of each record. */
  text: Buffer;
}

/** Columns to write a page in, and the next page once the first is full. */
export function emptyColumns(rowsMax = recordsPerPage): Columns {
  return {
    wholes: new Float64Array(rowsMax * wholesPerRecord),
    bases: noBases,
    words: new Uint32Array(rowsMax * wordsPerRecord),
    shorts: new Uint16Array(rowsMax * shortsPerRecord),
    text: Buffer.alloc(rowsMax * textBytesPerRecord),
  };
}

export class EndedPage {
  /** The owner's, until the page is full. */
  #columns: Columns;
  /** End of the text of the newest record. */
  #textTo = 0;
  /** Number of each record, while the page has gaps. */
  readonly #numbers: Uint16Array | undefined;
  readonly #names: string[] = [""];
  /** Absent once the page is full. */
  #numberByName: Map<string, number> | undefined = new Map([["", 0]]);
  readonly #rowsMax: number;
  /** Records, the deleted included. */
  #rows = 0;
  #live = 0;
  /** No row before it is live. */
  #first = 0;

  /** @param columns for `rowsMax` records; no other page is written in them meanwhile
   *  @param hasGaps whether records have numbers of their own, in rising order */
  constructor(columns: Columns, { rowsMax = recordsPerPage, hasGaps = false } = {}) {
    this.#rowsMax = rowsMax;
    this.#columns = columns;
    this.#numbers = hasGaps ? new Uint16Array(rowsMax) : undefined;
  }

  /** Records that are not deleted. */
  get live(): number {
    return this.#live;
  }

  /** True if the page takes no further record. */
  get isFull(): boolean {
    return this.#numberByName === undefined;
  }

  /** @returns the record's number */
  add(ended: EndedTask, hash: number, number = this.#rows): number {
    const { id } = ended;
    const row = this.#rows;
    assert(id.length > 0 && id.length < isWide, "an id has some characters");
    const wholes = row * wholesPerRecord;
    const columns = this.#columns;
    columns.wholes[wholes] = ended.sequence;
    columns.wholes[wholes + 1] = ended.round;
    columns.wholes[wholes + 2] = ended.attempts;
    columns.wholes[wholes + 3] = ended.submittedIdx;
    columns.wholes[wholes + 4] = ended.roundIdx;
    columns.wholes[wholes + 5] = ended.endedAt;
    columns.wholes[wholes + 6] = ended.endedIdx;
    const words = row * wordsPerRecord;
    columns.words[words] = hash;
    const isWideText = !this.#addNarrowText(id, ended.hash);
    if (isWideText) this.#addWideText(id, ended.hash);
    columns.words[words + 1] = this.#textTo;
    const shorts = row * shortsPerRecord;
    this.#addName(shorts, ended.project);
    this.#addName(shorts + 1, ended.user);
    this.#addName(shorts + 2, ended.kind);
    this.#addName(shorts + 3, ended.state);
    this.#addName(shorts + 4, ended.agent ?? "");
    columns.shorts[shorts + 5] = id.length + (isWideText ? isWide : 0);
    if (this.#numbers !== undefined) this.#numbers[row] = number;
    this.#rows += 1;
    this.#live += 1;
    if (this.#rows === this.#rowsMax) this.#fill();
    return number;
  }

  /** Lets go of what only a new record needs. */
  #fill(): void {
    this.#numberByName = undefined;
    this.#columns = moved(this.#columns, this.#rows, this.#textTo);
  }

  /** Row of a record; −1 for a number without a record. */
  rowOf(number: number): number {
    const row = this.#numbers === undefined ? number : this.#firstFrom(number);
    return row < this.#rows && this.numberOf(row) === number && this.isLive(row) ? row : -1;
  }

  /** The first live row of a record with the number or a higher one; −1 without. */
  rowFrom(number: number): number {
    for (let row = Math.max(this.#firstFrom(number), this.#first); row < this.#rows; row += 1)
      if (this.isLive(row)) return row;
    return -1;
  }

  /** The last live row of a record with a lower number; −1 without. */
  rowBefore(number: number): number {
    let row = Math.min(this.#firstFrom(number), this.#rows) - 1;
    while (row >= 0 && !this.isLive(row)) row -= 1;
    return row;
  }

  numberOf(row: number): number {
    return this.#numbers === undefined ? row : (this.#numbers[row] as number);
  }

  isLive(row: number): boolean {
    return this.#columns.shorts[row * shortsPerRecord + 5] !== 0;
  }

  delete(row: number): void {
    this.#columns.shorts[row * shortsPerRecord + 5] = 0;
    this.#live -= 1;
    while (this.#first < this.#rows && !this.isLive(this.#first)) this.#first += 1;
  }

  /** Whether most of the page's rows are deleted. */
  get isSparse(): boolean {
    return this.isFull && this.#live < sparseShare * this.#rows;
  }

  /** The live records alone, with their numbers, in arrays that fit. */
  shrunk(): EndedPage {
    const rowsMax = this.#live;
    const page = new EndedPage(emptyColumns(rowsMax), { rowsMax, hasGaps: true });
    const view = new EndedView();
    for (let row = this.#first; row < this.#rows; row += 1)
      if (this.isLive(row)) page.add(view.show(this, row).copy(), this.hashAt(row), this.numberOf(row));
    return page;
  }

  isAt(row: number, { project, task }: TaskRef): boolean {
    const shorts = row * shortsPerRecord;
    const length = this.#columns.shorts[shorts + 5] as number;
    if ((length & ~isWide) !== task.length || this.#name(shorts) !== project) return false;
    const from = this.#textFrom(row);
    for (let at = 0; at < task.length; at += 1)
      if (this.#unit(from, at, length >= isWide) !== task.charCodeAt(at)) return false;
    return true;
  }

  hashAt(row: number): number {
    return this.#columns.words[row * wordsPerRecord] as number;
  }

  /** @param column in the order of `#wholes`, from 0 */
  wholeAt(row: number, column: number): number {
    const { wholes, bases } = this.#columns;
    return (bases[column] as number) + (wholes[row * wholesPerRecord + column] as number);
  }

  /** @param column in the order of `#shorts`, from 0 */
  nameAt(row: number, column: number): string {
    return this.#name(row * shortsPerRecord + column);
  }

  idAt(row: number): string {
    const length = this.#columns.shorts[row * shortsPerRecord + 5] as number;
    const from = this.#textFrom(row);
    return length < isWide
      ? this.#columns.text.toString("latin1", from, from + length)
      : this.#columns.text.toString("ucs2", from, from + 2 * (length - isWide));
  }

  textHashAt(row: number): string {
    const length = this.#columns.shorts[row * shortsPerRecord + 5] as number;
    const from = this.#textFrom(row);
    const to = this.#columns.words[row * wordsPerRecord + 1] as number;
    return length < isWide
      ? this.#columns.text.toString("latin1", from + length, to)
      : this.#columns.text.toString("ucs2", from + 2 * (length - isWide), to);
  }

  /** The first row with the number or a higher one, which may be behind the last row. */
  #firstFrom(number: number): number {
    if (this.#numbers === undefined) return number;
    let low = 0;
    let high = this.#rows;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#numbers[middle] as number) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #name(at: number): string {
    return this.#names[this.#columns.shorts[at] as number] as string;
  }

  #addName(at: number, name: string): void {
    const before = at - shortsPerRecord;
    this.#columns.shorts[at] =
      before >= 0 && this.#name(before) === name
        ? (this.#columns.shorts[before] as number)
        : this.#nameNumber(name);
  }

  #nameNumber(name: string): number {
    const numberByName = this.#numberByName;
    assert(numberByName !== undefined, "a full page takes no record");
    const known = numberByName.get(name);
    if (known !== undefined) return known;
    const number = this.#names.push(name) - 1;
    numberByName.set(name, number);
    return number;
  }

  #textFrom(row: number): number {
    return row === 0 ? 0 : (this.#columns.words[row * wordsPerRecord - 1] as number);
  }

  #unit(from: number, at: number, wide: boolean): number {
    const text = this.#columns.text;
    if (!wide) return text[from + at] as number;
    return (text[from + 2 * at] as number) + 256 * (text[from + 2 * at + 1] as number);
  }

  /** Writes the text of the next record, and its end to `#textTo`. @returns false if a character takes two bytes */
  #addNarrowText(id: string, hash: string): boolean {
    this.#reserveText(id.length + hash.length);
    const text = this.#columns.text;
    let at = this.#textFrom(this.#rows);
    let units = 0;
    for (let n = 0; n < id.length; n += 1, at += 1) {
      const unit = id.charCodeAt(n);
      units |= unit;
      text[at] = unit;
    }
    for (let n = 0; n < hash.length; n += 1, at += 1) {
      const unit = hash.charCodeAt(n);
      units |= unit;
      text[at] = unit;
    }
    this.#textTo = at;
    return units <= lastNarrow;
  }

  #addWideText(id: string, hash: string): void {
    this.#reserveText(2 * (id.length + hash.length));
    const from = this.#textFrom(this.#rows);
    this.#textTo = from + this.#columns.text.write(id + hash, from, "ucs2");
  }

  #reserveText(bytes: number): void {
    const from = this.#textFrom(this.#rows);
    if (from + bytes > this.#columns.text.length)
      this.#columns.text = copyOf(
        this.#columns.text,
        from,
        Math.max(from + bytes, 2 * this.#columns.text.length),
      );
  }
}

/** A window on one record after another: a walk over a million records creates no object per record. */
export class EndedView implements EndedTask {
  #page: EndedPage | undefined;
  #row = 0;
  #attributes: string | undefined;

  /** @param attributes the record's, which its page does not hold */
  show(page: EndedPage, row: number, attributes: string | undefined = undefined): this {
    this.#page = page;
    this.#row = row;
    this.#attributes = attributes;
    return this;
  }

  get id(): TaskId {
    return this.#on.idAt(this.#row) as TaskId;
  }

  get project(): ProjectId {
    return this.#on.nameAt(this.#row, 0) as ProjectId;
  }

  get user(): UserId {
    return this.#on.nameAt(this.#row, 1) as UserId;
  }

  get kind(): Kind {
    return this.#on.nameAt(this.#row, 2) as Kind;
  }

  get state(): EndedTaskState {
    return this.#on.nameAt(this.#row, 3) as EndedTaskState;
  }

  get agent(): AgentId | undefined {
    const agent = this.#on.nameAt(this.#row, 4);
    return agent === "" ? undefined : (agent as AgentId);
  }

  get hash(): string {
    return this.#on.textHashAt(this.#row);
  }

  get sequence(): number {
    return this.#on.wholeAt(this.#row, 0);
  }

  get round(): number {
    return this.#on.wholeAt(this.#row, 1);
  }

  get attempts(): number {
    return this.#on.wholeAt(this.#row, 2);
  }

  get submittedIdx(): BatchIndex {
    return this.#on.wholeAt(this.#row, 3) as BatchIndex;
  }

  get roundIdx(): BatchIndex {
    return this.#on.wholeAt(this.#row, 4) as BatchIndex;
  }

  get endedAt(): Instant {
    return this.#on.wholeAt(this.#row, 5) as Instant;
  }

  get endedIdx(): BatchIndex {
    return this.#on.wholeAt(this.#row, 6) as BatchIndex;
  }

  get attributes(): string | undefined {
    return this.#attributes;
  }

  /** The record as a value of its own. */
  copy(): EndedTask {
    return {
      id: this.id,
      project: this.project,
      user: this.user,
      kind: this.kind,
      hash: this.hash,
      state: this.state,
      sequence: this.sequence,
      round: this.round,
      attempts: this.attempts,
      agent: this.agent,
      submittedIdx: this.submittedIdx,
      roundIdx: this.roundIdx,
      endedAt: this.endedAt,
      endedIdx: this.endedIdx,
      attributes: this.#attributes,
    };
  }

  get #on(): EndedPage {
    assert(this.#page !== undefined, "a view shows a record");
    return this.#page;
  }
}

function copyOf(text: Buffer, used: number, length: number): Buffer {
  const copy = Buffer.alloc(length);
  text.copy(copy, 0, 0, used);
  return copy;
}

/** A copy of the first rows and their text, in memory of its own. V8 maps a resizable buffer by itself, and unmaps it
 *  with the buffer. Memory of all other buffers comes from `malloc`, which keeps what a thread leaves behind: 160 MiB
 *  behind each thread that restored a million ended tasks. */
function moved({ wholes, words, shorts, text }: Columns, rows: number, textBytes: number): Columns {
  const leasts = leastsOf(wholes, rows);
  const isNarrow = isNarrowAbove(wholes, rows, leasts);
  const wordsAt = rows * wholesPerRecord * (isNarrow ? words : wholes).BYTES_PER_ELEMENT;
  const shortsAt = wordsAt + rows * wordsPerRecord * words.BYTES_PER_ELEMENT;
  const textAt = shortsAt + rows * shortsPerRecord * shorts.BYTES_PER_ELEMENT;
  const bytes = textAt + textBytes;
  const memory = new ArrayBuffer(bytes, { maxByteLength: bytes });
  const columns = {
    wholes: new (isNarrow ? Uint32Array : Float64Array)(memory, 0, rows * wholesPerRecord),
    bases: isNarrow ? leasts : noBases,
    words: new Uint32Array(memory, wordsAt, rows * wordsPerRecord),
    shorts: new Uint16Array(memory, shortsAt, rows * shortsPerRecord),
    text: Buffer.from(memory, textAt, textBytes),
  };
  for (let at = 0; at < columns.wholes.length; at += 1)
    columns.wholes[at] = (wholes[at] as number) - (columns.bases[at % wholesPerRecord] as number);
  columns.words.set(words.subarray(0, columns.words.length));
  columns.shorts.set(shorts.subarray(0, columns.shorts.length));
  columns.text.set(text.subarray(0, textBytes));
  return columns;
}

/** The least number of each column. */
function leastsOf(wholes: Columns["wholes"], rows: number): readonly number[] {
  const leasts = new Array<number>(wholesPerRecord).fill(Number.POSITIVE_INFINITY);
  for (let at = 0; at < rows * wholesPerRecord; at += 1)
    leasts[at % wholesPerRecord] = Math.min(leasts[at % wholesPerRecord] as number, wholes[at] as number);
  return leasts;
}

/** Whether all numbers are whole and less than 2³² above the least of their column, as nearly always: half of the
 *  memory holds them. */
function isNarrowAbove(wholes: Columns["wholes"], rows: number, leasts: readonly number[]): boolean {
  for (let at = 0; at < rows * wholesPerRecord; at += 1) {
    const above = (wholes[at] as number) - (leasts[at % wholesPerRecord] as number);
    if (above !== above >>> 0) return false;
  }
  return true;
}
