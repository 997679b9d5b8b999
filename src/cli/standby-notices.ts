// Notices of `up` before its coordinator first leads: the coordinator waits for a leader, or a peer leads. After the
// coordinator's first term, the log names each later leader.

import {
  concat,
  defer,
  distinctUntilChanged,
  EMPTY,
  filter,
  map,
  type Observable,
  switchMap,
  takeWhile,
  timer,
} from "rxjs";
import { duration } from "../audit/describe.ts";
import type { Coordinator } from "../coordinator/coordinator.ts";
import { limits } from "../limits.ts";
import type { Transport } from "../transport/transport.ts";

export interface StandbyNoticesDeps {
  readonly coordinator: Pick<Coordinator, "role$" | "silenceMsMax">;
  readonly transport: Pick<Transport, "status">;
}

/** A leading peer is certain only after a whole period without a campaign of the coordinator: a dead leader is silent,
 *  too. */
export function standbyNotices({ coordinator, transport }: StandbyNoticesDeps): Observable<string> {
  // Measured from the first notice. The coordinator notices silence at a pulse, and asks the standbys before a
  // campaign.
  const waitMs = () => coordinator.silenceMsMax + limits.standbyNoticeMs;
  const waits = () =>
    `standing by: waiting to see whether another coordinator leads (up to ${duration(waitMs())})`;
  return coordinator.role$.pipe(
    distinctUntilChanged(),
    takeWhile((role) => role !== "leading", true),
    switchMap((role) => {
      if (role !== "standing-by") return EMPTY;
      const first = timer(limits.standbyNoticeMs).pipe(map(waits));
      const then = defer(() => timer(waitMs())).pipe(
        filter(() => transport.status() === "connected"),
        map(() => "standing by: another coordinator leads"),
      );
      return concat(first, then);
    }),
  );
}
