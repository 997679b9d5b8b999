// The bytes of a file journal's segments: a header of the file, then records, each a head and a body (a batch).
//
//   file    magic "WAGGLEJL" · format u32 · crc u32 of both
//   link    first seq u64 · first seq of the segment before u64 · size of the segment before u64 ·
//           crc u32 of these · 0 u32
//   record  length u32 · seq u64 · unsynced u32 · body crc u32 · head crc u32 of all these · body
//
// Little-endian; CRC-32 as in zlib. Format 1 is the segment that begins with record 1 and has no link; format 2 goes on
// from another segment. The head of a record has a CRC of its own, so that a broken body does not hide where the next
// record begins. `unsynced` is how many records before this one were not yet known to be on the disk when it was
// written: that tells a tail torn by a crash, which nobody was promised, from damage.

import { crc32 } from "node:zlib";
import { limits } from "../../limits.ts";

export const FILE_HEADER_BYTES = 16;
export const LINKED_HEADER_BYTES = 48;
export const RECORD_HEAD_BYTES = 24;
const MAGIC = "WAGGLEJL";
const FIRST_FORMAT = 1;
const LINKED_FORMAT = 2;

/** From what a segment goes on. */
export interface SegmentLink {
  /** Of this segment. */
  readonly firstSeq: number;
  readonly previousFirstSeq: number;
  /** Bytes of the segment before, which does not change any more. */
  readonly previousSize: number;
}

export interface RecordHead {
  readonly length: number;
  readonly seq: number;
  readonly unsynced: number;
  readonly bodyCrc: number;
}

/** @param link undefined for the segment that begins with record 1 */
export function encodeFileHeader(link?: SegmentLink): Buffer {
  const header = Buffer.alloc(link === undefined ? FILE_HEADER_BYTES : LINKED_HEADER_BYTES);
  header.write(MAGIC, "latin1");
  header.writeUInt32LE(link === undefined ? FIRST_FORMAT : LINKED_FORMAT, 8);
  header.writeUInt32LE(crc32(header.subarray(0, 12)), 12);
  if (link === undefined) return header;
  header.writeBigUInt64LE(BigInt(link.firstSeq), 16);
  header.writeBigUInt64LE(BigInt(link.previousFirstSeq), 24);
  header.writeBigUInt64LE(BigInt(link.previousSize), 32);
  header.writeUInt32LE(crc32(header.subarray(16, 40)), 40);
  return header;
}

export type FileHeader =
  | { readonly kind: "whole"; readonly link: SegmentLink | undefined }
  /** `fault` is a clause that says why this is not the header of a segment. */
  | { readonly kind: "faulty"; readonly fault: string };

/** @param bytes the beginning of the file, at most `LINKED_HEADER_BYTES` */
export function parseFileHeader(bytes: Buffer): FileHeader {
  if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC)
    return faulty("it does not begin as a journal does");
  if (bytes.length < FILE_HEADER_BYTES) return faulty("its header is cut short");
  if (bytes.readUInt32LE(12) !== crc32(bytes.subarray(0, 12))) return faulty("its header is damaged");
  const format = bytes.readUInt32LE(8);
  if (format === FIRST_FORMAT) return { kind: "whole", link: undefined };
  if (format !== LINKED_FORMAT) {
    return faulty(`it has format ${format} and this version of waggle reads formats up to ${LINKED_FORMAT}`);
  }
  if (bytes.length < LINKED_HEADER_BYTES) return faulty("its header is cut short");
  if (bytes.readUInt32LE(40) !== crc32(bytes.subarray(16, 40))) return faulty("its header is damaged");
  const link = {
    firstSeq: Number(bytes.readBigUInt64LE(16)),
    previousFirstSeq: Number(bytes.readBigUInt64LE(24)),
    previousSize: Number(bytes.readBigUInt64LE(32)),
  };
  return { kind: "whole", link };
}

/** Whether a crash may have left this of a header: a part of it, or what a disk gives back that was not written to. */
export function isTornHeader(bytes: Buffer): boolean {
  const beginning = bytes.toString("latin1", 0, MAGIC.length);
  return MAGIC.startsWith(beginning) || bytes.every((byte) => byte === 0);
}

function faulty(fault: string): FileHeader {
  return { kind: "faulty", fault };
}

export function encodeRecordHead(record: { seq: number; unsynced: number; body: Uint8Array }): Buffer {
  const head = Buffer.allocUnsafe(RECORD_HEAD_BYTES);
  head.writeUInt32LE(record.body.length, 0);
  head.writeBigUInt64LE(BigInt(record.seq), 4);
  head.writeUInt32LE(record.unsynced, 12);
  head.writeUInt32LE(crc32(record.body), 16);
  head.writeUInt32LE(crc32(head.subarray(0, 20)), 20);
  return head;
}

/** The head that begins at `offset`, or undefined where no whole head is. */
export function parseRecordHead(bytes: Buffer, offset = 0): RecordHead | undefined {
  if (bytes.length < offset + RECORD_HEAD_BYTES) return undefined;
  const length = bytes.readUInt32LE(offset);
  if (length > limits.journalRecordBytesMax) return undefined;
  if (bytes.readUInt32LE(offset + 20) !== crc32(bytes.subarray(offset, offset + 20))) return undefined;
  return {
    length,
    seq: Number(bytes.readBigUInt64LE(offset + 4)),
    unsynced: bytes.readUInt32LE(offset + 12),
    bodyCrc: bytes.readUInt32LE(offset + 16),
  };
}

/** The sequence at `offset` if a head begins there, unchecked: cheap enough to ask at every byte. */
export function peekSeq(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset + 4) + bytes.readUInt32LE(offset + 8) * 2 ** 32;
}

export function isBodyOf(head: RecordHead, body: Uint8Array): boolean {
  return body.length === head.length && crc32(body) === head.bodyCrc;
}
