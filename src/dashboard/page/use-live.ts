// Live data of a view while drawn.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { LiveView } from "../wire.ts";
import { useDashboard } from "./context.ts";
import type { LiveListener, LiveState } from "./live.ts";
import type { Filters } from "./router.ts";

/** @param listener may change with each drawing */
export function useLive<View extends LiveView>(
  view: View,
  query: Filters = {},
  listener: LiveListener = {},
): LiveState<View> {
  const { live } = useDashboard();
  const latest = useRef(listener);
  latest.current = listener;
  const key = JSON.stringify([view, query]);
  // The key stands for view and query.
  const followed = useMemo(
    () =>
      live.follow(view, query, {
        events: (rows, skipped) => latest.current.events?.(rows, skipped),
        points: (points) => latest.current.points?.(points),
      }),
    [key, live],
  );
  useEffect(() => followed.stop, [followed]);
  return followed.state;
}
