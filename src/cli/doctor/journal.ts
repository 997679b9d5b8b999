// Whether the journal in files can be read to its end, for `waggle doctor`.

import { systemClock } from "../../clock.ts";
import { counted, formatCount } from "../../count-text.ts";
import { JournalDamagedError, WaggleError } from "../../errors.ts";
import { openFileJournalReader } from "../../journal/file/reader.ts";
import type { JournalReader } from "../../journal/journal.ts";
import { type Salvage, salvage } from "../../journal/salvage.ts";
import { exitCodeOf, exitCodes } from "../exit-code.ts";
import type { Check } from "./check.ts";
import { damageAdvice } from "./log.ts";

const name = "journal";

/** Reads every record, and replays the state. Undefined without a journal. */
export async function checkJournalFolder(folder: string): Promise<Check | undefined> {
  let journal: JournalReader | undefined;
  try {
    journal = await openFileJournalReader(folder).catch(undefinedIfNone);
    if (journal === undefined) return undefined;
    return checkOf(folder, await readUnlessRemoved(journal));
  } catch (error) {
    if (!(error instanceof WaggleError)) throw error;
    return { name, status: "fail", found: error.message, exitCode: exitCodeOf(error) };
  } finally {
    await journal?.close();
  }
}

function undefinedIfNone(error: unknown): undefined {
  if (!(error instanceof JournalDamagedError)) throw error;
}

/** A leader may remove segments meanwhile, so a damaged segment is read a second time. */
async function readUnlessRemoved(journal: JournalReader): Promise<Salvage> {
  const deps = { journal, clock: systemClock };
  const first = await salvage(deps);
  return first.damage === undefined ? first : await salvage(deps);
}

function checkOf(folder: string, { segments, log, damage }: Salvage): Check {
  if (segments.length === 0) return { name, status: "ok", found: `${folder} holds nothing yet` };
  if (damage !== undefined)
    return {
      ...{ name, status: "fail", found: `${folder}: ${damage}`, advice: damageAdvice },
      exitCode: exitCodes.journalDamaged,
    };
  const records = segments.reduce((sum, segment) => sum + segment.records, 0);
  const size = `${counted(records, "record")} in ${counted(segments.length, "segment")}`;
  const end = log === undefined ? "no batch yet" : `the log ends at batch ${formatCount(log.tail.idx)}`;
  const found = `${folder} read through: ${size}; ${end}`;
  const broken = segments.find((segment) => segment.damage !== undefined);
  if (broken === undefined) return { name, status: "ok", found };
  return {
    ...{ name, status: "warn", found: `${found}; ${broken.damage}` },
    advice: "no restart needs this record; a part of the audit may be missing until its segment is removed",
  };
}
