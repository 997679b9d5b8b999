// A journal that is empty although another coordinator has read batches of it: somebody deleted its stream, or made it
// again, while that one ran. Whoever starts now must not begin a new swarm in its place.
//
// Where the snapshots' stream was left, whoever opens the journal's finds that out first (stream/opening.ts). What
// nobody can know: where both are gone and no other coordinator runs, it looks like a swarm that never was. Clients
// and agents that were told of more say so then (docs/failure-modes.md).

import { JournalDamagedError } from "../../errors.ts";
import type { Journal } from "../../journal/journal.ts";
import type { JournalPoint } from "../../protocol/journal-point.ts";

/** @param other how far another coordinator says that it holds the journal, of which nothing was read here: it may
 *  have begun since
 *  @throws JournalDamagedError, UnreachableError */
export async function requireItsJournal({ term, idx }: JournalPoint, journal: Journal): Promise<void> {
  if (idx === 0 || (await journal.position()).lastSeq > 0) return;
  throw new JournalDamagedError(
    `another coordinator of this swarm holds batch ${idx} of term ${term}, and the journal is empty: its stream was deleted ` +
      "while that one ran, or this one is connected to another server. Stop all coordinators; put the stream back from a " +
      "backup, or, to begin anew without what it held, remove the journal and its snapshots (`nats stream rm WAGGLE_<swarm>`, " +
      "`nats stream rm WAGGLE_<swarm>_SNAP`), and start them again",
  );
}
