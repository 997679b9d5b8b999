// The bytes of `journal.log`: a header of the file, then records, each a head and a body (a batch).
//
//   file    magic "WAGGLEJL" · version u32 · crc u32 of both
//   record  length u32 · seq u64 · unsynced u32 · body crc u32 · head crc u32 of all these · body
//
// Little-endian; CRC-32 as in zlib. The head has a CRC of its own, so that a broken body does not hide where
// the next record begins. `unsynced` is how many records before this one were not yet known to be on the
// disk when it was written: that tells a tail torn by a crash, which nobody was promised, from damage.

import { crc32 } from "node:zlib";
import { limits } from "../limits.ts";

export const FILE_HEADER_BYTES = 16;
export const RECORD_HEAD_BYTES = 24;
const MAGIC = "WAGGLEJL";
const VERSION = 1;

export interface RecordHead {
  readonly length: number;
  readonly seq: number;
  readonly unsynced: number;
  readonly bodyCrc: number;
}

export function encodeFileHeader(): Buffer {
  const header = Buffer.alloc(FILE_HEADER_BYTES);
  header.write(MAGIC, "latin1");
  header.writeUInt32LE(VERSION, 8);
  header.writeUInt32LE(crc32(header.subarray(0, 12)), 12);
  return header;
}

/** Why this is not the header of a journal, or undefined when it is. */
export function faultOfFileHeader(header: Buffer): string | undefined {
  if (header.equals(encodeFileHeader())) return undefined;
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return "it does not begin as a journal does";
  if (header.readUInt32LE(12) !== crc32(header.subarray(0, 12))) return "its header is damaged";
  return `it has format ${header.readUInt32LE(8)} and this version of waggle reads format ${VERSION}`;
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
