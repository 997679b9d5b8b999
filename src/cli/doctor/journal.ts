// Whether the journal in files can be read to its end, for `waggle doctor`.

import { openFileJournalReader } from "../../chain/file/reader.ts";
import type { JournalReader } from "../../chain/journal.ts";
import { findLive } from "../../chain/live.ts";
import { restore } from "../../chain/log.ts";
import { systemClock } from "../../clock.ts";
import { JournalDamagedError, WaggleError } from "../../errors.ts";
import { exitCodeOf } from "../exit-code.ts";
import { counted, formatBytes, formatCount } from "../format.ts";
import type { Check } from "./check.ts";
import { damaged, unlessRemoved } from "./log.ts";

const name = "journal";

/** Reads all of it: every record, and the state behind them. Undefined where there is none. */
export async function checkJournalFolder(folder: string): Promise<Check | undefined> {
  let reader: JournalReader | undefined;
  try {
    reader = await openFileJournalReader(folder).catch(undefinedIfNone);
    if (reader === undefined) return undefined;
    const journal = reader;
    return { name, status: "ok", found: await unlessRemoved(() => readThrough(folder, journal)) };
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    if (error instanceof JournalDamagedError) {
      const check = damaged(error);
      return { ...check, name, found: `${folder}: ${check.found}` };
    }
    return { name, status: "fail", found: error.message, exitCode: exitCodeOf(error) };
  } finally {
    await reader?.close();
  }
}

function undefinedIfNone(error: unknown): undefined {
  if (!(error instanceof JournalDamagedError)) throw error; // all else that opening throws is trouble
}

async function readThrough(folder: string, journal: JournalReader): Promise<string> {
  const { numbers, live } = await findLive(journal);
  if (numbers.length === 0) return `${folder} holds nothing yet`;
  let records = 0;
  let bytes = 0;
  for (const number of numbers) {
    const segment = journal.segment(number);
    for await (const _ of segment.replay(1)) records += 1;
    bytes += (await segment.end())?.bytes ?? 0;
  }
  const size = `${counted(records, "record")} in ${counted(numbers.length, "segment")}, ${formatBytes(bytes)}`;
  if (live === undefined) return `${folder} read through: ${size}, and no batch yet`;
  const { tail } = await restore(live, { journal, clock: systemClock });
  return `${folder} read through: ${size}, all whole; the log ends at batch ${formatCount(tail.idx)}`;
}
