// Finds the end of a segment's file: are all records whole, was the tail torn by a crash, or is the file damaged?
//
// A crash tears only unsynced records, which were never acknowledged: the scan ends before the torn tail. A broken
// record is damage when a later record proves that the broken record was on the disk (`unsynced` in record.ts). The
// scan goes on behind damage: the segment keeps its end, and reading the broken record throws. Damage to the last write
// has no later record as proof, and looks like a torn tail.

import { limits } from "../../limits.ts";
import {
  behind,
  HEAD_BYTES,
  HEADER_BYTES,
  type Place,
  parseHead,
  parseSealBody,
  peekPosition,
  SEAL_BYTES,
} from "./record.ts";
import type { FileWindow } from "./window.ts";

/** The end of a segment's file. */
export interface FileEnd {
  /** Where the next record goes. */
  readonly next: Place;
  readonly opened: Place | undefined;
  readonly isSealed: boolean;
  /** Records that damage hides, as far as the file was scanned. */
  readonly missing: number;
}

export const emptyEnd: FileEnd = {
  next: { position: 1, offset: HEADER_BYTES },
  opened: undefined,
  isSealed: false,
  missing: 0,
};

/** Bytes of the file up to the end. Bytes behind are a torn tail. */
export function sizeOf({ next, isSealed }: FileEnd): number {
  return next.offset + (isSealed ? SEAL_BYTES : 0);
}

/** The end according to a seal at the end of the file, which saves the scan. */
export async function readSeal(window: FileWindow, size: number): Promise<FileEnd | undefined> {
  const offset = size - SEAL_BYTES;
  const seal = offset < HEADER_BYTES ? undefined : await window.recordAt(offset, size);
  if (seal?.head.kind !== "seal") return undefined;
  const next = { position: seal.head.position, offset };
  return { next, opened: parseSealBody(seal.body), isSealed: true, missing: 0 };
}

/** @param onRecord gets each whole record's place, and whether damage lies right before the record */
export async function scanRecords(
  window: FileWindow,
  size: number,
  onRecord: (place: Place, isBehindDamage: boolean) => void,
): Promise<FileEnd> {
  let { next, opened, missing } = emptyEnd;
  let isBehindDamage = false;
  while (next.offset < size) {
    const record = await window.recordAt(next.offset, size);
    const isDamaged = record === undefined || record.head.position < next.position;
    const place = isDamaged
      ? await findBehindDamage(window, next, size)
      : { position: record.head.position, offset: next.offset };
    if (place === undefined) break;
    missing += place.position - next.position;
    isBehindDamage ||= place.position > next.position;
    next = place;
    if (isDamaged) continue;
    const { head, body } = record;
    if (head.kind === "seal") return { next, opened: parseSealBody(body), isSealed: true, missing };
    if (head.kind === "opened") opened = place;
    onRecord(place, isBehindDamage);
    isBehindDamage = false;
    next = behind(place, head.length);
  }
  return { next, opened, isSealed: false, missing };
}

/** The first whole record behind a broken record. Undefined for a torn tail: no later record proves that the broken
 *  record was on the disk. */
async function findBehindDamage(window: FileWindow, broken: Place, size: number): Promise<Place | undefined> {
  let first: Place | undefined;
  for (let offset = broken.offset + 1; offset <= size - HEAD_BYTES; ) {
    const bytes = await window.view(offset, { length: limits.journalReadWindowBytes, end: size });
    for (const at of plausibleHeads(bytes, broken, size)) {
      const head = (await window.recordAt(offset + at, size))?.head;
      if (head === undefined) continue;
      first ??= { position: head.position, offset: offset + at };
      if (head.position - head.unsynced > broken.position) return first;
    }
    offset += Math.max(bytes.length - HEAD_BYTES + 1, 1);
  }
  return undefined;
}

function plausibleHeads(bytes: Buffer, { position, offset }: Place, size: number): number[] {
  const positionMax = position + Math.ceil((size - offset) / HEAD_BYTES);
  const found: number[] = [];
  for (let at = 0; at <= bytes.length - HEAD_BYTES; at++) {
    const candidate = peekPosition(bytes, at);
    if (candidate > position && candidate <= positionMax && parseHead(bytes, at) !== undefined)
      found.push(at);
  }
  return found;
}
