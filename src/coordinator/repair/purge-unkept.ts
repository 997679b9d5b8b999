// Mends a journal that acknowledges what it does not keep: purges it up to and with the record to which the leader's
// snapshot reaches. On nats-server 2.9 behind a bit that flipped in its newest block that helps, and nothing less does.
// The audit's record before it is gone with it, as `AuditTrimmed` says; why it is the leader that does so stands in
// docs/adr/0012-a-journal-that-loses-records.md.
//
// Why nothing is lost that was accepted:
// - What is removed stands in the snapshot, which is durable and was read back before.
// - It is asked for only while the journal ends at that record, which is this leader's own: nobody has gone on
//   behind it.
// - It names that record. However late it arrives, what another leader wrote behind it stays.
// - It proves nothing: the leader's next append expects that very record, so one that was deposed meanwhile learns it
//   there, and nothing is answered before what is appended is also found.
//
// What is left: a purge that is held back on its way while the server is started again, loses its end, and another
// leader goes on below. What that one wrote so far is missing then, as after a purge by hand: it finds so within
// `limits.journalLookMs` and saves its state (journal-watch.ts, rescue.ts). Only if it died before would that be lost.

import type { Logger } from "pino";
import { WaggleError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import type { Folded } from "../../journal/replay.ts";

/** @param folded what the snapshot holds
 *  @returns whether the journal was purged; where it may be purged and could not be, the log says why */
export async function purgeUnkept(
  { position: { idx, seq } }: Folded,
  { journal, logger }: { readonly journal: Journal; readonly logger: Logger },
): Promise<boolean> {
  try {
    if ((await journal.purgeThrough?.(seq)) !== true) return false;
  } catch (cause) {
    if (!(cause instanceof WaggleError)) throw cause;
    logger.error({ err: cause }, "the journal could not be purged of what it does not keep");
    return false;
  }
  logger.error(
    { idx, seq },
    "the journal does not keep what it acknowledges: it was purged, the snapshot stands for it, and the record begins behind it",
  );
  return true;
}
