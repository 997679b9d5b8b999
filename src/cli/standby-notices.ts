// What `up` says while its coordinator stands by and has not led: that it waits to see whether another leads, and that
// one does. Once it has led, its log names who leads after it.

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

/** That another leads is known only when nobody's silence has let this one lead; a dead leader is silent, too. */
export function standbyNotices({ coordinator, transport }: StandbyNoticesDeps): Observable<string> {
  // From the first notice on. That silence has ended is seen at a pulse, and is asked about before it campaigns.
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
