// Notices of `up` before its coordinator first leads: the coordinator waits for a leader, or a peer leads. After the
// coordinator's first term, the log names each later leader.

import {
  distinctUntilChanged,
  EMPTY,
  filter,
  interval,
  map,
  type Observable,
  switchMap,
  takeWhile,
} from "rxjs";
import { duration } from "../audit/describe.ts";
import type { Coordinator } from "../coordinator/coordinator.ts";
import { limits } from "../limits.ts";
import type { Transport } from "../transport/transport.ts";

export interface StandbyNoticesDeps {
  readonly coordinator: Pick<Coordinator, "role$" | "silenceMsMax" | "heardLeader">;
  readonly transport: Pick<Transport, "status">;
}

/** Tells first that no leader is heard, if so, and then which coordinator leads. */
export function standbyNotices({ coordinator, transport }: StandbyNoticesDeps): Observable<string> {
  const notice = () => {
    const leader = coordinator.heardLeader;
    if (leader !== undefined) return `standing by: coordinator ${leader.id} leads, term ${leader.term}`;
    return `standing by: no leader heard; taking the lead if none announces itself within ${duration(coordinator.silenceMsMax)}`;
  };
  return coordinator.role$.pipe(
    distinctUntilChanged(),
    takeWhile((role) => role !== "leading", true),
    switchMap((role) => (role === "standing-by" ? interval(limits.standbyNoticeMs) : EMPTY)),
    filter(() => transport.status() === "connected"),
    map(notice),
    distinctUntilChanged(),
    takeWhile(() => coordinator.heardLeader === undefined, true),
  );
}
