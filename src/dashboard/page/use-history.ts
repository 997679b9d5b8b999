// The columns of the overview's charts: read once, then a point a second from the live view.

import { type Signal, useSignal } from "@preact/signals";
import { useCallback, useEffect } from "preact/hooks";
import type { HistoryPoint, HistorySeries, HistoryWindow } from "../wire.ts";
import { useDashboard } from "./context.ts";

type Column = readonly (number | null)[];

/** `times` in seconds since the epoch; a column of the same length for each series. */
export type ChartColumns = { readonly times: readonly number[] } & {
  readonly [Name in HistorySeries]: Column;
};

const seriesNames = [
  ...(["submitted", "completed", "failed", "cancelled", "queued", "delayed", "running"] as const),
  ...(["waitP50Ms", "waitP95Ms", "waitP99Ms", "utilisation"] as const),
];
const none = Object.fromEntries([
  ["times", []],
  ...seriesNames.map((name) => [name, []]),
]) as unknown as ChartColumns;

/** Points of the window of 15 minutes. */
const POINTS = 900;
/** The long window has a step of 10 s, and is read anew. */
const LONG_STEP = 10_000;

export interface ChartHistory {
  readonly columns: Signal<ChartColumns>;
  readonly add: (points: readonly HistoryPoint[]) => void;
}

export function useHistory(window: HistoryWindow): ChartHistory {
  const { api } = useDashboard();
  const columns = useSignal<ChartColumns>(none);
  useEffect(() => {
    const abort = new AbortController();
    const read = async () => {
      const history = await api.history(window, abort.signal);
      const times = history.times.map((at) => at / 1_000);
      columns.value = { times, ...history.series };
    };
    // The banner of the page tells why nothing comes; the next point or the next reading fills the charts.
    const quietly = () => void read().catch(() => undefined);
    quietly();
    const timer = window === "6h" ? setInterval(quietly, LONG_STEP) : undefined;
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, [api, window, columns]);

  const add = useCallback(
    (points: readonly HistoryPoint[]) => {
      if (window === "15m") columns.value = withPoints(columns.peek(), points);
    },
    [window, columns],
  );
  return { columns, add };
}

function withPoints(columns: ChartColumns, points: readonly HistoryPoint[]): ChartColumns {
  const newest = columns.times.at(-1) ?? 0;
  const fresh = points.filter(({ at }) => at / 1_000 > newest);
  if (fresh.length === 0) return columns;
  const grown = { times: [...columns.times, ...fresh.map(({ at }) => at / 1_000)].slice(-POINTS) };
  const series = seriesNames.map((name) => [
    name,
    [...columns[name], ...fresh.map(({ values }) => values[name])].slice(-POINTS),
  ]);
  return { ...grown, ...Object.fromEntries(series) } as ChartColumns;
}
