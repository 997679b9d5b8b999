// The segments of a file journal, one file each: their names, their headers, and whether each goes on from the one
// before. A segment is called by its first record: `journal.log` begins with record 1, `journal-000000004711.log` with
// record 4711. Only the last one is written to; the others have the size that the link of the next one says.

import { readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { JournalDamagedError } from "../../errors.ts";
import { type JournalFile, type OpenJournalFile, reachingFile, syncFolder } from "./handle.ts";
import {
  encodeFileHeader,
  FILE_HEADER_BYTES,
  isTornHeader,
  LINKED_HEADER_BYTES,
  parseFileHeader,
  type SegmentLink,
} from "./record.ts";

/** A segment as its name, header and size tell of it. */
export interface SegmentPlan {
  /** For people: without the folder. */
  readonly name: string;
  readonly path: string;
  readonly firstSeq: number;
  /** Undefined where it begins with record 1. */
  readonly link: SegmentLink | undefined;
  /** Where the first record stands. */
  readonly start: number;
  /** Of the file, torn tail included. */
  readonly size: number;
}

/** What a folder holds of a journal. */
export interface SegmentList {
  /** Oldest first. */
  readonly plans: readonly SegmentPlan[];
  /** Path of a last segment that a crash left without a whole header: nothing was ever stored in it. */
  readonly torn: string | undefined;
}

export function segmentPath(folder: string, firstSeq: number): string {
  const name = firstSeq === 1 ? "journal.log" : `journal-${String(firstSeq).padStart(12, "0")}.log`;
  return join(folder, name);
}

/** Reads no more than the headers. @throws JournalDamagedError where a segment is missing, cut short or not one;
 *  UnreachableError */
export async function listSegments(folder: string, openFile: OpenJournalFile): Promise<SegmentList> {
  const firstSeqs = (await readdir(folder)).flatMap(firstSeqIn).sort((one, other) => one - other);
  const plans: SegmentPlan[] = [];
  for (const [at, firstSeq] of firstSeqs.entries()) {
    const path = segmentPath(folder, firstSeq);
    const plan = await reachingFile(path, () => planOf({ path, firstSeq, openFile }));
    if (plan === "gone" && plans.length === 0) continue; // purged meanwhile
    const isLast = at === firstSeqs.length - 1;
    // The first of a journal has one to go on from, unless it begins with record 1.
    if (plan === "torn" && isLast && (plans.length > 0 || firstSeq === 1)) return { plans, torn: path };
    if (plan === "torn" || plan === "gone") throw brokenHeaderError(path, "its header is cut short");
    requireLinked(plan, plans.at(-1));
    plans.push(plan);
  }
  return { plans, torn: undefined };
}

/** A new last segment, synced and without records. What fails leaves no file behind. */
export async function createSegment(
  folder: string,
  link: SegmentLink,
  openFile: OpenJournalFile,
): Promise<{ readonly file: JournalFile; readonly plan: SegmentPlan }> {
  const { firstSeq } = link;
  const path = segmentPath(folder, firstSeq);
  const file = await openFile(path, "write");
  try {
    const header = encodeFileHeader(link);
    if ((await file.size()) !== 0)
      throw new Error(`${nameOf(path)} is there already: another one writes to it`);
    await file.write([header], 0);
    await file.sync();
    const plan = { name: nameOf(path), path, firstSeq, link, start: header.length, size: header.length };
    return { file, plan };
  } catch (error) {
    await file.close();
    await removeSegment(path);
    throw error;
  }
}

export async function removeSegment(path: string): Promise<void> {
  await rm(path, { force: true });
  await syncFolder(dirname(path));
}

function firstSeqIn(name: string): number[] {
  if (name === "journal.log") return [1];
  const digits = /^journal-(\d{12,15})\.log$/.exec(name)?.[1];
  return digits === undefined ? [] : [Number(digits)];
}

interface Segment {
  readonly path: string;
  readonly firstSeq: number;
  readonly openFile: OpenJournalFile;
}

/** `torn`: it holds no more than a part of a header. @throws JournalDamagedError */
async function planOf({ path, firstSeq, openFile }: Segment): Promise<SegmentPlan | "torn" | "gone"> {
  let file: JournalFile;
  try {
    file = await openFile(path, "read");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "gone";
    throw error;
  }
  try {
    const size = await file.size();
    const bytes = Buffer.alloc(Math.min(size, LINKED_HEADER_BYTES));
    await file.read(bytes, 0);
    const header = parseFileHeader(bytes);
    if (header.kind === "faulty" && size <= headerSize(firstSeq) && isTornHeader(bytes)) return "torn";
    if (header.kind === "faulty") throw brokenHeaderError(path, header.fault);
    const { link } = header;
    if ((link?.firstSeq ?? 1) !== firstSeq) throw brokenHeaderError(path, "its name is another one's");
    return { name: nameOf(path), path, firstSeq, link, start: headerSize(firstSeq), size };
  } finally {
    await file.close();
  }
}

function requireLinked({ name, link }: SegmentPlan, previous: SegmentPlan | undefined): void {
  if (previous === undefined) return; // what was before was purged
  if (link?.previousFirstSeq !== previous.firstSeq) {
    throw new JournalDamagedError(
      `the journal is damaged: the file before ${name} is missing, it began with record ${link?.previousFirstSeq}; ` +
        "restore it from a backup",
    );
  }
  if (link.previousSize !== previous.size) {
    throw new JournalDamagedError(
      `${previous.name} is damaged: it has ${previous.size} bytes and had ${link.previousSize} when ${name} was ` +
        "begun; restore it from a backup",
    );
  }
}

function brokenHeaderError(path: string, fault: string): JournalDamagedError {
  return new JournalDamagedError(
    `${nameOf(path)} cannot be read: ${fault}; restore it from a backup or move it away`,
  );
}

function headerSize(firstSeq: number): number {
  return firstSeq === 1 ? FILE_HEADER_BYTES : LINKED_HEADER_BYTES;
}

function nameOf(path: string): string {
  return path.slice(dirname(path).length + 1);
}
