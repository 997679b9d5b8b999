// Reads all of a file journal and checks every record, which opening does only for the last segment. For reading only,
// so a coordinator may hold it: what it is writing meanwhile looks like a torn tail, which is no damage.

import { JournalDamagedError } from "../../errors.ts";
import { openJournalFile } from "./handle.ts";
import { scanSegment } from "./scan.ts";
import { listSegments, type SegmentPlan } from "./segment.ts";

export interface JournalExtent {
  /** 0 where there is no journal, or one that was only begun. */
  readonly files: number;
  readonly records: number;
  /** Of all whole records, and headers. */
  readonly bytes: number;
  /** Behind the last whole record. */
  readonly tailBytes: number;
}

/** @throws JournalDamagedError; what the disk says */
export async function checkFileJournal(folder: string): Promise<JournalExtent> {
  const { plans } = await listSegments(folder, openJournalFile);
  const extent = { files: plans.length, records: 0, bytes: 0, tailBytes: 0 };
  for (const [at, plan] of plans.entries()) {
    const { lastSeq, end } = await scan(plan);
    const next = plans[at + 1];
    if (next !== undefined && (end !== plan.size || lastSeq + 1 !== next.firstSeq))
      throw endError(plan, lastSeq);
    extent.records += lastSeq - plan.firstSeq + 1;
    extent.bytes += end;
    extent.tailBytes = plan.size - end;
  }
  return extent;
}

async function scan(plan: SegmentPlan) {
  const file = await openJournalFile(plan.path, "read");
  try {
    return await scanSegment(file, plan);
  } finally {
    await file.close();
  }
}

function endError({ name }: SegmentPlan, lastSeq: number): JournalDamagedError {
  return new JournalDamagedError(
    `${name} is damaged: it has no whole record behind ${lastSeq}, and had some when the next file was begun; restore ` +
      "the file from a backup",
  );
}
