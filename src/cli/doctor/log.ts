// Whether a restart can read the log, for `waggle doctor`. While a coordinator answers, the records of the needed
// segments are only counted; otherwise they are read.
// Not here: the streams of the segments (stream.ts), reading a whole journal in files (journal.ts).

import { systemClock } from "../../clock.ts";
import { counted, formatCount } from "../../count-text.ts";
import { JournalDamagedError } from "../../errors.ts";
import type { JournalReader } from "../../journal/journal.ts";
import { noSegmentError } from "../../journal/journal-errors.ts";
import { findLive, pathTo } from "../../journal/live.ts";
import { restore } from "../../journal/log.ts";
import type { LiveSegment } from "../../journal/replay.ts";
import { exitCodes } from "../exit-code.ts";
import type { Check } from "./check.ts";

const name = "log";

export const damageAdvice =
  "a running coordinator continues in a new segment by itself. If none runs, see `waggle journal recover`";

/** No check without segments. @param reads whether to read every record that a restart needs, not only to count
 *  @throws UnreachableError */
export async function* checkLog(
  journal: JournalReader,
  { reads }: { readonly reads: boolean },
): AsyncGenerator<Check> {
  const { live, numbers } = await findLive(journal);
  if (numbers.length === 0) return;
  if (live === undefined) {
    const found = `${counted(numbers.length, "segment")}, but no open segment can be read: none was opened, or the newest is damaged`;
    return yield { name, status: "warn", found, advice: damageAdvice };
  }
  try {
    yield { name, status: "ok", found: await unlessRemoved(() => restartOf(journal, reads)) };
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    yield damaged(error);
  }
}

/** A leader may remove segments meanwhile, so a damaged segment is checked a second time. */
async function unlessRemoved<Value>(look: () => Promise<Value>): Promise<Value> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    return await look();
  }
}

function damaged({ message }: JournalDamagedError): Check {
  const advice = message.includes("waggle journal recover") ? {} : { advice: damageAdvice };
  return { name, status: "fail", found: message, ...advice, exitCode: exitCodes.journalDamaged };
}

/** @throws JournalDamagedError */
async function restartOf(journal: JournalReader, reads: boolean): Promise<string> {
  const { live } = await findLive(journal);
  if (live === undefined) throw new JournalDamagedError("no segment is open any more");
  const path = await pathTo(journal, live, ({ opened }) => opened.base !== undefined);
  for (const { number } of path) await requireWhole(journal, number);
  if (!reads) return `${restartText(path, live)} (records were counted, not read)`;
  const { tail } = await restore(live, { journal, clock: systemClock });
  return `${restartText(path, live)} (read to batch ${formatCount(tail.idx)})`;
}

async function requireWhole(journal: JournalReader, number: number): Promise<void> {
  const end = await journal.segment(number).end();
  if (end === undefined) throw noSegmentError(number);
  if (end.missing === 0) return;
  throw new JournalDamagedError(
    `segment ${number} ends at record ${end.position}, and ${counted(end.missing, "record")} before it are missing`,
  );
}

function restartText([first]: readonly [LiveSegment, ...LiveSegment[]], { number }: LiveSegment): string {
  const { base } = first.opened;
  const segments = first.number === number ? `segment ${number}` : `segments ${first.number} to ${number}`;
  const from = base === undefined ? "the first batch" : `the base of batch ${formatCount(base.idx)}`;
  return `ends in segment ${number}; a restart reads ${segments}, from ${from} on`;
}
