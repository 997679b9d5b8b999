// Warning of `up` if the journal's storage is smaller than `retain`: the part that is kept, and the remedy.

import { defaultRetention } from "../config/retention.ts";
import type { Settings } from "../config/settings.ts";
import { keptBytesMax, roomToKeep } from "../coordinator/compacting/kept-room.ts";
import { UnreachableError } from "../errors.ts";
import type { Journal, JournalUsage } from "../journal/journal.ts";
import { formatBytes } from "./format.ts";

/** Undefined where what was asked for can be kept, where nothing was, and where the journal does not answer now. */
export async function roomWarning(
  { journal }: { readonly journal: Pick<Journal, "usage" | "sharable"> },
  { retention }: Pick<Settings, "retention">,
): Promise<string | undefined> {
  if (retention === defaultRetention) return undefined;
  const { bytesMax } = await usageOf(journal);
  if (bytesMax === undefined) return undefined;
  const { bytes } = retention;
  if (!Number.isFinite(bytes)) return ageAlone(bytesMax);
  if (bytes <= keptBytesMax(bytesMax)) return undefined;
  const how = journal.sharable
    ? `give JetStream ${formatBytes(roomToKeep(bytes))} (\`max_file_store\` of the server, or the account's quota), or`
    : "this is more than any journal holds:";
  return (
    `at most ${formatBytes(keptBytesMax(bytesMax))} of the journal is kept, less than the ${formatBytes(bytes)} of retain: ` +
    `its storage is ${formatBytes(bytesMax)}, of which a part is reserved for new records; ${how} set a smaller retain`
  );
}

/** Without a size in `retain`, the storage limits the kept part. The user must know before records are removed. */
function ageAlone(bytesMax: number): string | undefined {
  if (!Number.isFinite(bytesMax)) return undefined;
  const kept = formatBytes(keptBytesMax(bytesMax));
  return (
    `at most ${kept} of the journal is kept, of any age: retain gives no size, and the journal's storage is ` +
    `${formatBytes(bytesMax)}. For more, add a size to retain, such as 30d,100GiB`
  );
}

async function usageOf(journal: Pick<Journal, "usage">): Promise<Partial<JournalUsage>> {
  try {
    return await journal.usage();
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    return {}; // `up` continues by itself and reports the problem
  }
}
