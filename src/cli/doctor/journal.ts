// Whether the journal in files can be read to its end, for `waggle doctor`.

import { JournalDamagedError } from "../../errors.ts";
import { checkFileJournal, type JournalExtent } from "../../journal/file/check.ts";
import { exitCodes } from "../exit-code.ts";
import { counted, formatBytes } from "../format.ts";
import type { Check } from "./check.ts";

const name = "journal";

/** Reads all of it. Undefined where there is none. */
export async function checkJournalFolder(folder: string): Promise<Check | undefined> {
  try {
    return { name, status: "ok", found: describe(folder, await checkFileJournal(folder)) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (error instanceof JournalDamagedError)
      return { name, status: "fail", found: `${folder}: ${message}`, exitCode: exitCodes.journalDamaged };
    if (code === undefined) throw error;
    return { name, status: "fail", found: `cannot be read: ${message}` };
  }
}

function describe(folder: string, { files, records, bytes, tailBytes }: JournalExtent): string {
  if (files === 0) return `${folder} holds nothing yet`;
  const tail = tailBytes > 0 ? `; behind them ${formatBytes(tailBytes)} that nobody was told of` : "";
  const size = `${counted(records, "record")} in ${counted(files, "file")}, ${formatBytes(bytes)}`;
  return `${folder} read through: ${size}, all whole${tail}`;
}
