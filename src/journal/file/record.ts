// The bytes of a segment's file: a header, then records, each a head and a body. The last record may be a seal.
//
//   header  magic "WAGGLESG" · format u32 · segment u32 · crc u32 of these
//   record  length u32 · position u64 · unsynced u32 · kind u32 · body crc u32 · head crc u32 of all these · body
//   seal    a record of kind 3 at the position behind the last record; the body names the opened record, 0 for none:
//           position u64 · offset u64
//
// Little-endian; CRC-32 as in zlib. A head has a CRC of its own, so that a broken body does not hide the next record.
// `unsynced` counts the records of the same write before the record: when it was written, they might not have been on
// the disk. The count tells a tail that a crash tore, which was never acknowledged, from damage.

import { crc32 } from "node:zlib";
import { limits } from "../../limits.ts";

export const HEADER_BYTES = 20;
export const HEAD_BYTES = 28;
const SEAL_BODY_BYTES = 16;
export const SEAL_BYTES = HEAD_BYTES + SEAL_BODY_BYTES;
const MAGIC = "WAGGLESG";
const FORMAT = 1;

export type RecordKind = "record" | "opened" | "seal";
const kinds: readonly RecordKind[] = ["record", "opened", "seal"];

/** Where a record begins. */
export interface Place {
  readonly position: number;
  readonly offset: number;
}

/** The place after a record with a body of `length` bytes. */
export function behind({ position, offset }: Place, length: number): Place {
  return { position: position + 1, offset: offset + HEAD_BYTES + length };
}

export interface RecordHead {
  readonly length: number;
  readonly position: number;
  readonly unsynced: number;
  readonly kind: RecordKind;
  readonly bodyCrc: number;
}

export function encodeHeader(segment: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(MAGIC, "latin1");
  header.writeUInt32LE(FORMAT, 8);
  header.writeUInt32LE(segment, 12);
  header.writeUInt32LE(crc32(header.subarray(0, 16)), 16);
  return header;
}

/** A clause with the reason why `bytes` do not begin the segment; undefined if `bytes` do. */
export function headerFault(bytes: Buffer, segment: number): string | undefined {
  if (bytes.toString("latin1", 0, MAGIC.length) !== MAGIC) return "it does not begin as a segment does";
  if (bytes.length < HEADER_BYTES) return "its header is cut short";
  if (bytes.readUInt32LE(16) !== crc32(bytes.subarray(0, 16))) return "its header is damaged";
  const format = bytes.readUInt32LE(8);
  if (format !== FORMAT) return `it has format ${format}, and this version of waggle reads format ${FORMAT}`;
  const number = bytes.readUInt32LE(12);
  return number === segment ? undefined : `it belongs to segment ${number}`;
}

/** The head, to be written before the body. */
export function encodeHead(body: Uint8Array, record: Omit<RecordHead, "length" | "bodyCrc">): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32LE(body.length, 0);
  head.writeBigUInt64LE(BigInt(record.position), 4);
  head.writeUInt32LE(record.unsynced, 12);
  head.writeUInt32LE(kinds.indexOf(record.kind) + 1, 16);
  head.writeUInt32LE(crc32(body), 20);
  head.writeUInt32LE(crc32(head.subarray(0, 24)), 24);
  return head;
}

/** The head at `offset`; undefined when no whole head does. */
export function parseHead(bytes: Buffer, offset = 0): RecordHead | undefined {
  if (bytes.length < offset + HEAD_BYTES) return undefined;
  const length = bytes.readUInt32LE(offset);
  const kind = kinds[bytes.readUInt32LE(offset + 16) - 1];
  if (length > limits.journalRecordBytesMax || kind === undefined) return undefined;
  if (bytes.readUInt32LE(offset + 24) !== crc32(bytes.subarray(offset, offset + 24))) return undefined;
  return {
    length,
    position: peekPosition(bytes, offset),
    unsynced: bytes.readUInt32LE(offset + 12),
    kind,
    bodyCrc: bytes.readUInt32LE(offset + 20),
  };
}

/** The position in the head at `offset`, unchecked: cheap enough for every byte of a file. */
export function peekPosition(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset + 4) + bytes.readUInt32LE(offset + 8) * 2 ** 32;
}

export function isBodyOf(head: RecordHead, body: Uint8Array): boolean {
  return body.length === head.length && crc32(body) === head.bodyCrc;
}

export function encodeSealBody(opened: Place | undefined): Buffer {
  const body = Buffer.alloc(SEAL_BODY_BYTES);
  body.writeBigUInt64LE(BigInt(opened?.position ?? 0), 0);
  body.writeBigUInt64LE(BigInt(opened?.offset ?? 0), 8);
  return body;
}

/** The opened record's place. */
export function parseSealBody(body: Buffer): Place | undefined {
  const position = Number(body.readBigUInt64LE(0));
  return position === 0 ? undefined : { position, offset: Number(body.readBigUInt64LE(8)) };
}
