// The next step of a follower: read a position, wait, end, or give up. For journals whose storage answers at once
// (memory, file). A fault counts only after `limits.journalGapMs`: a coordinator may be about to answer a power loss.

import type { Clock } from "../clock.ts";
import type { JournalDamagedError } from "../errors.ts";
import { limits } from "../limits.ts";
import type { Bell } from "./bell.ts";
import { gapError, noSegmentError, shortError } from "./journal-errors.ts";

/** A segment as the storage knows it now. */
export interface SegmentView {
  readonly end: number;
  readonly isSealed: boolean;
  has(position: number): boolean;
}

export interface FollowedSegment {
  readonly number: number;
  /** `closed`: following returns. `offline`: the view is unknown for now. */
  view(): SegmentView | undefined | "offline" | "closed";
  /** Rings at every change of `view`. */
  readonly changes: Bell;
  readonly clock: Pick<Clock, "after">;
}

/** Yields each position from `from` on as soon as a record can be read there. Returns at the end of a sealed segment,
 *  when `signal` aborts, and when the journal is closed. @throws JournalDamagedError */
export async function* readablePositions(
  segment: FollowedSegment,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<number> {
  for (let position = from; await isReadable(segment, position, signal); position++) yield position;
}

/** False when following ends before the position. @throws JournalDamagedError */
async function isReadable(segment: FollowedSegment, position: number, signal: AbortSignal): Promise<boolean> {
  const { changes, clock } = segment;
  let isLasting = false;
  let cancel: (() => void) | undefined;
  try {
    while (!signal.aborted) {
      const next = nextOf(segment, position);
      if (next === "read" || next === "end") return next === "read";
      if (next === "wait") {
        cancel?.();
        cancel = undefined;
        isLasting = false;
      } else {
        if (isLasting) throw next;
        cancel ??= clock.after(limits.journalGapMs, () => {
          isLasting = true;
          changes.ring();
        });
      }
      await changes.wait(signal);
    }
    return false;
  } finally {
    cancel?.();
  }
}

function nextOf(segment: FollowedSegment, position: number): "read" | "wait" | "end" | JournalDamagedError {
  const view = segment.view();
  if (view === "closed") return "end";
  if (view === "offline") return "wait";
  const { number } = segment;
  if (view === undefined) return noSegmentError(number);
  if (view.has(position)) return "read";
  if (position <= view.end) return gapError(number, position, view.end);
  if (position > view.end + 1) return shortError(number, position - 1, view.end);
  return view.isSealed ? "end" : "wait";
}
