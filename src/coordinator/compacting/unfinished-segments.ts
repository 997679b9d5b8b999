// Segments that were claimed and never opened: a maker or a candidate ended before. They hold nothing that counts, and a
// part of a base may take the room of the next one.
//
// The rule: a segment is removed only while a higher number stands. A coordinator that takes the lead goes by the
// numbers that it listed; a number that disappeared from the end of the list would be used again, by two coordinators.

import type { Journal } from "../../chain/journal.ts";
import { claimantOf } from "../../chain/live.ts";
import { encodeRecord } from "../../chain/records.ts";
import { SegmentWriter } from "../../chain/segment-writer.ts";
import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";

/** Removes what a leader's makers left above its segment, behind a new claim that keeps their numbers from being used.
 *  @param claim the number of that claim, above all that exist · @param attempt random, of that claim
 *  @throws as `SegmentWriter.put`; UnreachableError */
export async function removeOwnUnfinished(
  deps: { readonly journal: Journal; readonly life: string; readonly clock: Clock },
  {
    ledSegment,
    claim,
    attempt,
  }: { readonly ledSegment: number; readonly claim: number; readonly attempt: string },
  signal: AbortSignal,
): Promise<void> {
  const { journal, life, clock } = deps;
  const own: number[] = [];
  let records = 0;
  for (const number of await journal.list()) {
    const segment = journal.segment(number);
    if (number <= ledSegment || (await claimantOf(segment)) !== life) continue;
    own.push(number);
    records += (await segment.end())?.position ?? 0;
  }
  if (records === own.length) return; // claims alone take no room
  if (journal.sharable) {
    await journal.create(claim);
    const writer = new SegmentWriter({ segment: journal.segment(claim), life, clock, signal });
    await writer.put(encodeRecord({ kind: "claim", segment: claim, life, attempt }));
  }
  for (const number of own) if (!signal.aborted) await journal.remove(number);
}

/** Removes a segment below the led one that is not live, unless damage may be the reason why it is not.
 *  @throws UnreachableError */
export async function removeUnopened(journal: Journal, number: number): Promise<void> {
  const segment = journal.segment(number);
  await segment.seal(); // from here on nothing can make it live
  try {
    const end = await segment.end();
    if (end?.missing === 0 && (await segment.opened()) === undefined) await journal.remove(number);
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
  }
}
