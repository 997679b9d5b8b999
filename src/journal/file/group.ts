// What one write of the file journal holds: of the appends that wait, those that are next when their turn
// comes, one behind the other, and what each of them is answered. Pure; file.ts writes it.

import { limits } from "../../limits.ts";
import type { AppendOutcome } from "../journal.ts";
import { encodeRecordHead, RECORD_HEAD_BYTES } from "./record.ts";
import type { Place } from "./record-index.ts";

export interface Append {
  readonly bytes: Uint8Array;
  readonly expectedSeq: number;
  readonly settle: (outcome: AppendOutcome) => void;
}

/** Where the journal ends and how far it may grow. */
export interface Room {
  readonly lastSeq: number;
  /** Of the last segment. */
  readonly end: number;
  /** Bytes of the segments before it. */
  readonly sealedBytes: number;
  /** Of all segments. */
  readonly bytesMax: number;
}

export interface Group {
  /** In the order of the appends; `stored` holds if the write succeeds. */
  readonly answers: readonly (readonly [Append, AppendOutcome])[];
  readonly parts: readonly Uint8Array[];
  readonly places: readonly Place[];
  /** Where the last segment ends after the write. */
  readonly end: number;
}

export function cutGroup(appends: readonly Append[], room: Room): Group {
  const answers: [Append, AppendOutcome][] = [];
  const parts: Uint8Array[] = [];
  const places: Place[] = [];
  let { end } = room;
  for (const append of appends) {
    const seq = room.lastSeq + places.length + 1;
    const endAfter = end + RECORD_HEAD_BYTES + append.bytes.length;
    const bytesAfter = room.sealedBytes + endAfter;
    const outcome = outcomeOf(append, { seq, bytesAfter, bytesMax: room.bytesMax });
    answers.push([append, outcome]);
    if (outcome.kind !== "stored") continue;
    parts.push(encodeRecordHead({ seq, unsynced: places.length, body: append.bytes }), append.bytes);
    places.push({ seq, offset: end });
    end = endAfter;
  }
  return { answers, parts, places, end };
}

function outcomeOf(
  { bytes, expectedSeq }: Append,
  at: { seq: number; bytesAfter: number; bytesMax: number },
): AppendOutcome {
  if (expectedSeq !== at.seq - 1) return { kind: "refused" };
  if (bytes.length > limits.journalRecordBytesMax) {
    return {
      kind: "full",
      message: `a record of ${bytes.length} bytes is larger than a journal's file takes`,
    };
  }
  if (at.bytesAfter > at.bytesMax) {
    return { kind: "full", message: `the journal's files would exceed their ${at.bytesMax} bytes` };
  }
  return { kind: "stored", seq: at.seq };
}
