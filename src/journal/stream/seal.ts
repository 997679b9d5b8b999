// How a segment is sealed: by a record of its own subject, `journal.<n>.sealed`. The first such record ends the
// segment; records behind it do not count.
//
// JetStream can seal a stream itself (`sealed: true`), and that is not used. The setting reaches each replica apart
// from the records: on nats-server 2.10.27 a replica that applies it before its last records drops these, though they
// were acknowledged, and may lead the stream later (docs/adr/0025). A record has its place in the order of all records,
// on every replica.
//
// A writer cannot pass a seal unseen: it expects the position that the seal took, and is refused. Only the second of
// two overlapping appends may be stored behind a seal. So `StreamSegment.append` believes an acknowledgement only if it
// knows that no seal is before it.
//
// A damaged store may acknowledge a seal and never show it: nats-server 2.9.10 does so with each record behind a
// flipped bit in its newest block. Seals that were acknowledged `limits.sealsUnshownMax` times and are not found end
// the segment for this handle, at the first of their positions. No other handle knows of them. The writer of the
// segment meets the damage at its next look (segment-watch.ts), and its next segment has a base.

import type { StreamAccess } from "./pull.ts";

/** The position of the seal; undefined while there is none. @throws UnreachableError, StreamApiError */
export async function sealPosition({
  api,
  stream,
  segment,
  subjects,
}: Pick<StreamAccess, "api" | "stream" | "segment" | "subjects">): Promise<number | undefined> {
  const subject = subjects.segmentSealed(segment);
  const last = await api.record(stream, { last_by_subj: subject }); // an index answers it, also when there is none
  if (last === undefined) return undefined;
  return (await api.record(stream, { seq: 1, next_by_subj: subject }))?.position ?? last.position;
}
