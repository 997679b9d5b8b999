// Segments that were claimed and never opened: a maker or a candidate ended too early. They hold no part of the log,
// and a part of a base may take the room of the next base.
//
// The rule: a segment is removed only while a higher number exists. A coordinator that takes the lead uses the number
// behind its list. If the highest number disappeared, two coordinators with different lists could both open a segment.

import type { Clock } from "../../clock.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import { claimantOf } from "../../journal/live.ts";
import { encodeRecord } from "../../journal/records.ts";
import { SegmentWriter } from "../../journal/segment-writer.ts";

/** Removes the unfinished segments of a leader above its segment, below a new claim that keeps their numbers in
 *  use.
 *  @param claim number of the new claim, above all existing numbers · @param attempt random, of the new claim
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

/** Removes a segment below the led one that is not live, unless damage may hide its `Opened`.
 *  @throws UnreachableError */
export async function removeUnopened(journal: Journal, number: number): Promise<void> {
  const segment = journal.segment(number);
  await segment.seal(); // after the seal it cannot become live
  try {
    const end = await segment.end();
    if (end?.missing === 0 && (await segment.opened()) === undefined) await journal.remove(number);
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
  }
}
