// Whether the journal in a file can be read to its end, for `waggle doctor`. Opens it for reading only, so a
// coordinator may hold it: what it is writing meanwhile looks like a torn tail, which is no damage.

import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { JournalDamagedError } from "../errors.ts";
import type { JournalFile } from "../journal/file-handle.ts";
import { FILE_HEADER_BYTES } from "../journal/file-record.ts";
import { scanJournalFile } from "../journal/file-scan.ts";
import type { Check } from "./doctor-check.ts";
import { exitCodes } from "./exit-code.ts";
import { counted, formatBytes } from "./format.ts";

const name = "journal";

/** Reads the whole file. Undefined where there is none. */
export async function checkFileJournal(folder: string): Promise<Check | undefined> {
  const path = join(folder, "journal.log");
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, "r");
    return await checkFile(readOnly(handle), path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    if (error instanceof JournalDamagedError)
      return { name, status: "fail", found: `${path}: ${message}`, exitCode: exitCodes.journalDamaged };
    if (code === undefined) throw error;
    return { name, status: "fail", found: `cannot be read: ${message}` };
  } finally {
    await handle?.close();
  }
}

async function checkFile(file: JournalFile, path: string): Promise<Check> {
  const size = await file.size();
  if (size < FILE_HEADER_BYTES) return { name, status: "ok", found: `${path} holds nothing yet` };
  const { lastSeq, end } = await scanJournalFile(file, size);
  const tail = size > end ? `; behind them ${formatBytes(size - end)} that nobody was told of` : "";
  const found = `${path} read through: ${counted(lastSeq, "record")}, ${formatBytes(end)}, all whole${tail}`;
  return { name, status: "ok", found };
}

function readOnly(handle: FileHandle): JournalFile {
  const refuse = () => Promise.reject(new Error("the file is open for reading only"));
  return {
    size: async () => (await handle.stat()).size,
    read: async (target, position) => (await handle.read(target, 0, target.length, position)).bytesRead,
    write: refuse,
    sync: refuse,
    truncate: refuse,
    close: () => handle.close(),
  };
}
