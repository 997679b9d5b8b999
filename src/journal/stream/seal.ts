// A segment is sealed by a record with the subject `journal.<n>.sealed`. The first seal ends the segment; later records
// do not count.
//
// JetStream's own way to seal a stream (`sealed: true`) is not used: the setting and the records reach a replica
// independently. On nats-server 2.10.27 a replica that applies the setting early drops acknowledged records, and may
// lead the stream later (docs/adr/0025). A seal record has a fixed position among the records, on every replica.
//
// A writer usually meets a seal at once: the append expects the position taken by the seal, and is refused. Two kinds
// of appends are stored after a seal:
//
//   - The second of two overlapping appends. It counts only after the first, and the first is refused.
//   - An append after a loss of the last record, if the seal took the lost record's position. A coordinator seals only
//     after T without a new record. So a leader looks at the segment before it trusts an acknowledgement after 0.8·T
//     without one (leader-lease.ts).
//
// The record that opens a segment is always checked.
//
// A damaged store may acknowledge a seal but never return it. Nats-server 2.9.10 does so with each record after a
// flipped bit in the newest block. After `limits.sealsUnshownMax` acknowledged but missing seals the handle treats the
// segment as sealed, at the first acknowledged position; further handles do not. The segment's writer finds the damage
// at the next check (segment-watch.ts), and begins the next segment with a base.

import type { StreamAccess } from "./pull.ts";

/** The position of the seal; undefined before a seal is stored. @throws UnreachableError, StreamApiError */
export async function sealPosition({
  api,
  stream,
  segment,
  subjects,
}: Pick<StreamAccess, "api" | "stream" | "segment" | "subjects">): Promise<number | undefined> {
  const subject = subjects.segmentSealed(segment);
  const last = await api.record(stream, { last_by_subj: subject }); // cheap: the server has an index
  if (last === undefined) return undefined;
  return (await api.record(stream, { seq: 1, next_by_subj: subject }))?.position ?? last.position;
}
