// Unfinished segments: claimed but never opened, because a maker or a candidate ended too early. An unfinished segment
// holds no part of the log, but may hold part of a base, in the way of the next base.
//
// The rule: a segment is removed only while a higher number exists. A candidate for the lead claims the number after
// the highest listed number. If the highest number disappeared, two candidates with different lists could both open a
// segment.

import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";
import { claimantOf } from "../../journal/inspect.ts";
import type { Journal, SegmentReader } from "../../journal/journal.ts";
import { decodeRecord } from "../../journal/records.ts";
import { SegmentWriter } from "../../journal/segment-writer.ts";

/** Removes the unfinished segments of a leader above its segment. A new claim above them keeps the numbers in use.
 *  @param claim number of the new claim, above all existing numbers · @param attempt random, of the new claim
 *  @throws as `SegmentWriter.put`; UnreachableError */
export async function removeOwnUnfinished(
  deps: { readonly journal: Journal; readonly session: string; readonly clock: Clock },
  {
    ledSegment,
    claim,
    attempt,
  }: { readonly ledSegment: number; readonly claim: number; readonly attempt: string },
  signal: AbortSignal,
): Promise<void> {
  const { journal, session, clock } = deps;
  const own: number[] = [];
  let records = 0;
  for (const number of await journal.list()) {
    const segment = journal.segment(number);
    if (number <= ledSegment || (await claimantOf(segment)) !== session) continue;
    own.push(number);
    records += (await segment.end())?.position ?? 0;
  }
  if (records === own.length) return; // claims alone take no room
  if (journal.sharable) {
    const writer = new SegmentWriter({ segment: journal.segment(claim), session, clock, signal });
    await writer.claim(journal, attempt);
  }
  for (const number of own) if (!signal.aborted) await journal.remove(number);
}

/** Removes a segment below the leader's segment if not live, unless damage may hide its `Opened`.
 *  @throws UnreachableError */
export async function removeUnopened(journal: Journal, number: number): Promise<void> {
  const segment = journal.segment(number);
  await segment.seal(); // a sealed segment cannot become live
  try {
    const end = await segment.end();
    if (end?.missing === 0 && !(await isLive(segment))) await journal.remove(number);
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
  }
}

/** During a failover the server may not find a stored `Opened`, so the segment is then read to the end.
 *  @throws UnreachableError; JournalDamagedError if a record cannot be read */
async function isLive(segment: SegmentReader): Promise<boolean> {
  if ((await segment.opened()) !== undefined) return true;
  for await (const { bytes } of segment.replay(1)) if (decodeRecord(bytes)?.kind === "opened") return true;
  return false;
}
