// Opens the segments of a file journal for writing: begins a new journal, finds out where the last segment ends, and
// cuts off what a crash left there. Older segments are not read: they were whole when the next one was begun, and what
// became of them since shows to whoever reads them.

import { type JournalFile, type OpenJournalFile, reachingFile } from "./handle.ts";
import { encodeFileHeader } from "./record.ts";
import { scanSegment } from "./scan.ts";
import { listSegments, removeSegment, type SegmentPlan, segmentPath } from "./segment.ts";
import { FileSegments } from "./segments.ts";

/** What a crash left behind and opening cut off: never anything that had been acknowledged. */
export interface Recovery {
  readonly cutBytes: number;
  /** The record that was being written, or the first of several. */
  readonly atSeq: number;
}

export interface OpenedSegments {
  readonly segments: FileSegments;
  /** The last segment's. */
  readonly file: JournalFile;
  readonly lastSeq: number;
  readonly recovered: Recovery | undefined;
}

/** @throws JournalDamagedError, UnreachableError */
export async function openSegments(folder: string, openFile: OpenJournalFile): Promise<OpenedSegments> {
  const segments = new FileSegments(openFile, await findOrBegin(folder, openFile));
  return await reachingFile(segments.last.plan.path, () => openLast(segments, openFile));
}

async function openLast(segments: FileSegments, openFile: OpenJournalFile): Promise<OpenedSegments> {
  const file = await openFile(segments.last.plan.path, "write");
  try {
    return { segments, file, ...(await recoverLast(segments, file)) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function findOrBegin(folder: string, openFile: OpenJournalFile): Promise<readonly SegmentPlan[]> {
  const { plans, torn } = await listSegments(folder, openFile);
  if (torn !== undefined && plans.length > 0) await removeSegment(torn);
  if (plans.length > 0) return plans;
  const path = torn ?? segmentPath(folder, 1);
  await reachingFile(path, () => beginFirst(path, openFile));
  return (await listSegments(folder, openFile)).plans;
}

/** Writes the header of a journal's first segment, also where a crash left only a part of it. */
async function beginFirst(path: string, openFile: OpenJournalFile): Promise<void> {
  const file = await openFile(path, "write");
  try {
    await file.write([encodeFileHeader()], 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function recoverLast({ last }: FileSegments, file: JournalFile) {
  // What an earlier process wrote and died before syncing is read as stored from now on, so it must be.
  await file.sync();
  const { size } = last.plan;
  const { index, lastSeq, end } = await scanSegment(file, last.plan);
  last.index = index;
  last.end = end;
  if (end === size) return { lastSeq, recovered: undefined };
  await file.truncate(end);
  await file.sync();
  return { lastSeq, recovered: { cutBytes: size - end, atSeq: lastSeq + 1 } };
}
