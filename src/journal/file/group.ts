// One write of a segment's file, cut from the waiting appends and seals: the bytes to write, and each outcome if the
// write succeeds. Pure; writer.ts performs the write.

import { limits } from "../../limits.ts";
import type { AppendOutcome } from "../journal.ts";
import { behind, encodeHead, encodeSealBody, HEAD_BYTES, type Place, type RecordKind } from "./record.ts";
import type { FileEnd } from "./scan.ts";

/** An append or a seal, with the waiting caller. */
export interface Write {
  readonly kind: RecordKind;
  readonly bytes: Uint8Array;
  /** Undefined for a seal, which goes to the end. */
  readonly expected: number | undefined;
  readonly settle: (outcome: AppendOutcome) => void;
}

export interface Group {
  /** In the order of the writes. */
  readonly outcomes: readonly (readonly [Write, AppendOutcome])[];
  readonly parts: readonly Uint8Array[];
  readonly places: readonly Place[];
  /** The segment's end after the write. */
  readonly end: FileEnd;
}

/** @param room bytes that records may add; seals need none */
export function cutGroup(writes: readonly Write[], start: FileEnd, room: number): Group {
  const outcomes: [Write, AppendOutcome][] = [];
  const parts: Uint8Array[] = [];
  const places: Place[] = [];
  let { next, opened, isSealed } = start;
  for (const write of writes) {
    const roomLeft = room - (next.offset - start.next.offset);
    const outcome: AppendOutcome = isSealed ? { kind: "sealed" } : outcomeOf(write, next, roomLeft);
    outcomes.push([write, outcome]);
    if (outcome.kind !== "stored") continue;
    const { kind } = write;
    const body = kind === "seal" ? encodeSealBody(opened) : write.bytes;
    parts.push(encodeHead(body, { position: next.position, unsynced: places.length, kind }), body);
    isSealed = kind === "seal";
    if (isSealed) continue;
    if (kind === "opened") opened = next;
    places.push(next);
    next = behind(next, body.length);
  }
  return { outcomes, parts, places, end: { ...start, next, opened, isSealed } };
}

function outcomeOf({ kind, bytes, expected }: Write, next: Place, room: number): AppendOutcome {
  if (kind === "seal") return { kind: "stored" };
  if (expected !== next.position - 1) return { kind: "refused" };
  if (bytes.length > limits.journalRecordBytesMax)
    return {
      kind: "full",
      message: `a record of ${bytes.length} bytes exceeds the maximum of ${limits.journalRecordBytesMax}`,
    };
  if (HEAD_BYTES + bytes.length > room)
    return { kind: "full", message: "the journal's files would exceed the bound on their bytes" };
  return { kind: "stored" };
}
