// Ended tasks by project and id, in order of ending, for a million tasks and more. Records lie packed in pages
// (ended-page.ts), and typed arrays find them (hash-index.ts). With an object, a key and a map's entry per task, a
// million tasks take 0.7 GB, and the garbage collector copies and marks all of it.
//
// The one thing to know: `get`, `at` and `values` give values of their own, and `fromNewest` gives a view that is valid
// until the next step.

import { assert } from "../assert.ts";
import type { Instant, ProjectId, TaskId, TaskRef } from "../ids.ts";
import { limits } from "../limits.ts";
import { AgedMap } from "./aged-map.ts";
import { EndedPage, EndedView, emptyColumns, recordsPerPage } from "./ended-page.ts";
import type { EndedTask } from "./ended-task.ts";
import { HashIndex, hashOfPair } from "./hash-index.ts";
import { TaskMap } from "./task-map.ts";

/** Numbers that the index tells apart. */
const lows = 2 ** 32;
/** Column of the instant of the end (`EndedPage.wholeAt`). */
const endedAtColumn = 5;

export class EndedTasks {
  /** Oldest first; undefined where all records of a page are deleted. */
  readonly #pages: (EndedPage | undefined)[] = [];
  /** The newest page is written in them. */
  readonly #columns = emptyColumns();
  /** Number of the first of `#pages`, from 1: a place is the page's number and the record's number in the page. */
  #firstPage: number;
  #size = 0;
  readonly #index = new HashIndex();
  /** Places that the index refused. Empty unless somebody submits ids with equal hashes on purpose. */
  readonly #refused = new TaskMap<number>();
  readonly #sizeByProject = new Map<ProjectId, number>();
  /** Few tasks have attributes; the pages hold none. */
  readonly #attributesByPlace = new AgedMap<number, string>();
  #attributesSize = 0;
  readonly #view = new EndedView();
  /** The last search and its outcome: deciding and applying an event ask for one task several times. */
  #soughtProject = "";
  #soughtTask = "";
  #soughtHash = 0;
  #soughtPlace = 0;

  /** @param firstPage higher than 1 in tests of a long life */
  constructor(firstPage = 1) {
    this.#firstPage = firstPage;
  }

  get size(): number {
    return this.#size;
  }

  /** When the task that ended longest ago ended. */
  get oldestEndedAt(): Instant | undefined {
    const page = this.#size === 0 ? undefined : this.#pages[0];
    return page && (page.wholeAt(page.rowFrom(0), endedAtColumn) as Instant);
  }

  has(ref: TaskRef): boolean {
    return this.#seek(ref) !== 0;
  }

  get(ref: TaskRef): EndedTask | undefined {
    return this.viewOf(ref)?.copy();
  }

  /** Adds a task as the newest. */
  add(ended: EndedTask): void {
    const { project, id: task } = ended;
    assert(this.#seek({ project, task }) === 0, `task ${task} ends once`);
    const hash = this.#soughtHash;
    const page = this.#newestPage();
    const number = page.add(ended, hash);
    const place = (this.#firstPage + this.#pages.length - 1) * recordsPerPage + number;
    assert(place - this.#firstPage * recordsPerPage < lows, "the index tells all places apart");
    const refused: number[] = [];
    if (!this.#index.add(hash, lowOf(place), refused)) refused.push(lowOf(place));
    for (const each of refused.map((low) => this.#placeOfLow(low)))
      this.#refused.set(this.#refAt(each), each);
    this.#soughtPlace = place;
    this.#size += 1;
    this.#sizeByProject.set(project, (this.#sizeByProject.get(project) ?? 0) + 1);
    if (ended.attributes !== undefined) this.#keepAttributes(place, ended.attributes);
  }

  /** Size of the kept attributes, as `limits.rememberedAttributesMax` bounds it. */
  get attributesSize(): number {
    return this.#attributesSize;
  }

  delete(ref: TaskRef): boolean {
    const place = this.#seek(ref);
    if (place === 0) return false;
    this.#delete(place);
    this.#shrink(Math.floor(place / recordsPerPage) - this.#firstPage);
    return true;
  }

  /** Deletes the oldest task. The collection must not be empty. */
  forgetOldest(): void {
    const page = this.#pages[0];
    assert(page !== undefined && this.#size > 0, "there is a task to forget");
    this.#delete(this.#firstPage * recordsPerPage + page.numberOf(page.rowFrom(0)));
  }

  /** Oldest first. */
  *values(): Generator<EndedTask> {
    for (const place of this.places()) yield this.at(place);
  }

  /**
   * Where each record lies, oldest first. A place never means a second record, and a record keeps its place. No task
   * may end, be forgotten or be retried before the walk is over.
   */
  *places(): Generator<number> {
    for (const [at, page] of this.#pages.entries()) {
      if (page === undefined) continue;
      const first = (this.#firstPage + at) * recordsPerPage;
      for (let row = page.rowFrom(0); row !== -1; row = page.rowFrom(page.numberOf(row) + 1))
        yield first + page.numberOf(row);
    }
  }

  /** @returns a view that is valid until the next call, for a reader of few fields */
  viewOf(ref: TaskRef): EndedView | undefined {
    const place = this.#seek(ref);
    return place === 0 ? undefined : this.#viewAt(place);
  }

  at(place: number): EndedTask {
    return this.#viewAt(place).copy();
  }

  /** Newest first. Tasks may come and go between two steps: the walk skips new and deleted tasks. */
  *fromNewest(): Generator<EndedView> {
    const view = new EndedView();
    let pageNumber = this.#firstPage + this.#pages.length - 1;
    let number = recordsPerPage;
    while (pageNumber >= this.#firstPage) {
      // The page is looked up again for every record: it may have been shrunk or dropped since.
      const page = this.#pages[pageNumber - this.#firstPage];
      const row = page?.rowBefore(number) ?? -1;
      if (page === undefined || row === -1) {
        pageNumber -= 1;
        number = recordsPerPage;
        continue;
      }
      number = page.numberOf(row);
      yield view.show(page, row, this.#attributesOf(pageNumber * recordsPerPage + number));
    }
  }

  /** Projects with a task of this id, in no particular order. Cost: linear in the number of projects with tasks. */
  *projectsWith(task: TaskId): Generator<ProjectId> {
    for (const project of this.#sizeByProject.keys()) if (this.has({ project, task })) yield project;
  }

  /** 0 for an unknown task. Leaves the pair's hash in `#soughtHash`. */
  #seek(ref: TaskRef): number {
    const { project, task } = ref;
    if (task === this.#soughtTask && project === this.#soughtProject) return this.#soughtPlace;
    this.#soughtHash = hashOfPair(project, task);
    this.#soughtPlace = this.#placeOf(ref, this.#soughtHash);
    this.#soughtProject = project;
    this.#soughtTask = task;
    return this.#soughtPlace;
  }

  /** 0 for an unknown task. */
  #placeOf(ref: TaskRef, hash: number): number {
    for (let probes = this.#index.next(hash, 0); probes !== -1; probes = this.#index.next(hash, probes + 1)) {
      const place = this.#placeOfLow(this.#index.numberAt(hash, probes));
      const page = this.#pageOf(place);
      if (page.isAt(page.rowOf(place % recordsPerPage), ref)) return place;
    }
    return this.#refused.size === 0 ? 0 : (this.#refused.get(ref) ?? 0);
  }

  /** The place with these low bits. */
  #placeOfLow(low: number): number {
    const first = this.#firstPage * recordsPerPage;
    return first + lowOf(low - first);
  }

  #pageOf(place: number): EndedPage {
    const page = this.#pages[Math.floor(place / recordsPerPage) - this.#firstPage];
    assert(page !== undefined, "a place lies in a page");
    return page;
  }

  #viewAt(place: number): EndedView {
    const page = this.#pageOf(place);
    return this.#view.show(page, page.rowOf(place % recordsPerPage), this.#attributesOf(place));
  }

  #attributesOf(place: number): string | undefined {
    return this.#attributesByPlace.size === 0 ? undefined : this.#attributesByPlace.get(place);
  }

  #keepAttributes(place: number, attributes: string): void {
    this.#attributesByPlace.set(place, attributes);
    this.#attributesSize += sizeOf(attributes);
    while (this.#attributesSize > limits.rememberedAttributesMax)
      this.#dropAttributes(this.#attributesByPlace.oldestKey as number);
  }

  #dropAttributes(place: number): void {
    const attributes = this.#attributesOf(place);
    if (attributes === undefined) return;
    this.#attributesByPlace.delete(place);
    this.#attributesSize -= sizeOf(attributes);
  }

  #refAt(place: number): TaskRef {
    const { project, id: task } = this.#viewAt(place);
    return { project, task };
  }

  #newestPage(): EndedPage {
    const newest = this.#pages.at(-1);
    if (newest?.isFull === false) return newest;
    const page = new EndedPage(this.#columns);
    this.#pages.push(page);
    return page;
  }

  #delete(place: number): void {
    const page = this.#pageOf(place);
    const row = page.rowOf(place % recordsPerPage);
    const project = page.nameAt(row, 0) as ProjectId;
    if (!this.#index.delete(page.hashAt(row), lowOf(place))) this.#refused.delete(this.#refAt(place));
    page.delete(row);
    this.#dropAttributes(place);
    if (place === this.#soughtPlace) this.#soughtPlace = 0;
    this.#size -= 1;
    const left = (this.#sizeByProject.get(project) ?? 0) - 1;
    if (left > 0) this.#sizeByProject.set(project, left);
    else this.#sizeByProject.delete(project);
    const at = Math.floor(place / recordsPerPage) - this.#firstPage;
    if (page.isFull && page.live === 0) this.#pages[at] = undefined;
    while (this.#pages.length > 0 && this.#pages[0] === undefined) {
      this.#pages.shift();
      this.#firstPage += 1;
    }
  }

  /** Retried tasks leave gaps. Oldest first, as tasks are forgotten, a page is dropped as a whole soon enough. */
  #shrink(at: number): void {
    const page = this.#pages[at];
    if (page?.isSparse === true) this.#pages[at] = page.shrunk();
  }
}

/** The part of a place that the index holds. Fewer places lie between the oldest and the newest record. */
function lowOf(place: number): number {
  return place >>> 0;
}

function sizeOf(attributes: string): number {
  return attributes.length + limits.attributesOverhead;
}
