// What `up` says where more of the journal is to be kept than its room holds: what is really kept, and what to do.

import { defaultRetention } from "../config/retention.ts";
import type { Settings } from "../config/settings.ts";
import { UnreachableError } from "../errors.ts";
import { swarmId } from "../ids.ts";
import type { Journal, JournalUsage } from "../journal/journal.ts";
import { keptBytesMax, roomToKeep } from "../journal/kept-room.ts";
import { moreRoom } from "../journal/stream/room.ts";
import { streamNameOf } from "../journal/stream/settings.ts";
import { formatBytes } from "./format.ts";

/** Undefined where what was asked for can be kept, where nothing was, and where the journal does not answer now. */
export async function roomWarning(
  { journal }: { readonly journal: Pick<Journal, "usage" | "sharable"> },
  { retention, swarm }: Pick<Settings, "retention" | "swarm">,
): Promise<string | undefined> {
  if (retention === defaultRetention) return undefined;
  const { bytesMax } = await usageOf(journal);
  if (bytesMax === undefined) return undefined;
  const { bytes } = retention;
  if (!Number.isFinite(bytes)) return ageAlone(bytesMax);
  if (bytes <= keptBytesMax(bytesMax)) return undefined;
  const stream = streamNameOf({ swarm: swarmId(swarm), purpose: "journal" });
  const how = journal.sharable
    ? `give it more room, where the server has it: \`${moreRoom(stream, roomToKeep(bytes))}\`. Or`
    : "no journal has room for it:";
  return (
    `of the journal no more than ${formatBytes(keptBytesMax(bytesMax))} is kept, though ${formatBytes(bytes)} are to be ` +
    `(retain): its room is ${formatBytes(bytesMax)}, and some of it is for what comes; ${how} ask for less`
  );
}

/** Where no size was said: what that means is not to be found out when the record is gone. */
function ageAlone(bytesMax: number): string | undefined {
  if (!Number.isFinite(bytesMax)) return undefined;
  const kept = formatBytes(keptBytesMax(bytesMax));
  return (
    `of the journal no more than ${kept} is kept, however young (retain says no size, and its room is ` +
    `${formatBytes(bytesMax)}): where more may come in that time, say a size with it, as in 30d,100GiB`
  );
}

async function usageOf(journal: Pick<Journal, "usage">): Promise<Partial<JournalUsage>> {
  try {
    return await journal.usage();
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    return {}; // `up` goes on by itself, and says what it lacks
  }
}
