// The history that the charts show: a point per second for 15 minutes, and per ten seconds for 6 hours. The points come
// from the swarm's totals and from the waits of assigned tasks. Kept in memory only: it begins with the dashboard.

import { limits } from "../limits.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import { NewestValues, quantiles } from "./quantiles.ts";
import { Ring } from "./ring.ts";
import type { History, HistoryPoint, HistorySeries, HistoryWindow } from "./wire.ts";

type Values = HistoryPoint["values"];

const names = [
  "submitted",
  "completed",
  "failed",
  "cancelled",
  "queued",
  "delayed",
  "running",
  "waitP50Ms",
  "waitP95Ms",
  "waitP99Ms",
  "utilisation",
] as const satisfies readonly HistorySeries[];

/** Per second: averaged over ten seconds. The rest are values at the end. */
const rateNames: ReadonlySet<string> = new Set([
  "submitted",
  "completed",
  "failed",
  "cancelled",
  "utilisation",
]);

const SHARES = [0.5, 0.95, 0.99];

/** Totals at one moment. */
interface Totals {
  readonly at: number;
  readonly tasks: Readonly<Record<string, number>>;
}

export interface SecondLook {
  /** Wall clock, ms. */
  readonly at: number;
  /** Undefined: nobody answered. */
  readonly status: Pick<StatusResponse, "tasks"> | undefined;
  /** Attempts in flight / capacity, 0 to 1; undefined if not known. */
  readonly utilisation: number | undefined;
}

export class HistoryRing {
  readonly #seconds = new Ring<HistoryPoint>(limits.dashboardSecondsKept);
  readonly #tens = new Ring<HistoryPoint>(limits.dashboardTenSecondsKept);
  /** Waits of the present second, and of the present ten seconds. */
  readonly #waits = new NewestValues(limits.dashboardWaitsKept);
  readonly #waitsOfTen = new NewestValues(limits.dashboardWaitsKept);
  #ten: HistoryPoint[] = [];
  #before: Totals | undefined;

  /** The wait of a task that was assigned, ms. */
  waited(ms: number): void {
    this.#waits.add(ms);
    this.#waitsOfTen.add(ms);
  }

  /** Ends a second. */
  add({ at, status, utilisation }: SecondLook): HistoryPoint {
    const point = { at, values: status === undefined ? unknown : this.#valuesOf(at, status, utilisation) };
    this.#before = status === undefined ? undefined : { at, tasks: status.tasks };
    this.#waits.clear();
    this.#seconds.push(point);
    this.#ten.push(point);
    const first = this.#ten[0]?.at ?? at;
    if (at - first + limits.dashboardPollMs >= limits.dashboardTenSecondsMs) this.#endTen(at);
    return point;
  }

  /** Sum of the last minute, of tasks. */
  get lastMinute(): { readonly windowMs: number; readonly of: (name: HistorySeries) => number } {
    const points = this.#seconds.newest(60);
    return {
      windowMs: points.length * limits.dashboardPollMs,
      of: (name) => Math.round(points.reduce((sum, { values }) => sum + (values[name] ?? 0), 0)),
    };
  }

  history(window: HistoryWindow): History {
    const isShort = window === "15m";
    const points = (isShort ? this.#seconds : this.#tens).newest();
    const seriesOf = (name: HistorySeries) => points.map(({ values }) => values[name]);
    return {
      window,
      stepMs: isShort ? limits.dashboardPollMs : limits.dashboardTenSecondsMs,
      times: points.map(({ at }) => at),
      series: Object.fromEntries(names.map((name) => [name, seriesOf(name)])) as unknown as History["series"],
    };
  }

  #valuesOf(at: number, { tasks }: Pick<StatusResponse, "tasks">, utilisation: number | undefined): Values {
    const rate = (count: (tasks: Totals["tasks"]) => number) => {
      if (this.#before === undefined || at <= this.#before.at) return null;
      const seconds = (at - this.#before.at) / 1_000;
      return Math.max(0, rounded((count(tasks) - count(this.#before.tasks)) / seconds));
    };
    const of =
      (...states: readonly string[]) =>
      (all: Totals["tasks"]) =>
        states.reduce((sum, state) => sum + (all[state] ?? 0), 0);
    const waits = quantiles(this.#waits.values, SHARES);
    return {
      submitted: rate((all) => Object.values(all).reduce((sum, count) => sum + count, 0)),
      completed: rate(of("completed")),
      failed: rate(of("failed", "dead-lettered", "expired")),
      cancelled: rate(of("cancelled")),
      queued: tasks["queued"] ?? 0,
      delayed: tasks["delayed"] ?? 0,
      running: (tasks["assigned"] ?? 0) + (tasks["running"] ?? 0),
      ...waitsOf(waits),
      utilisation: utilisation === undefined ? null : rounded(utilisation),
    };
  }

  #endTen(at: number): void {
    const points = this.#ten;
    const endOf = (name: HistorySeries): number | null => {
      const known = points.flatMap(({ values }) => values[name] ?? []);
      if (known.length === 0) return null;
      if (!rateNames.has(name)) return known.at(-1) ?? null;
      return rounded(known.reduce((sum, value) => sum + value, 0) / known.length);
    };
    const values = Object.fromEntries(names.map((name) => [name, endOf(name)])) as unknown as Values;
    this.#tens.push({ at, values: { ...values, ...waitsOf(quantiles(this.#waitsOfTen.values, SHARES)) } });
    this.#waitsOfTen.clear();
    this.#ten = [];
  }
}

function waitsOf(waits: readonly number[] | undefined) {
  const [waitP50Ms = null, waitP95Ms = null, waitP99Ms = null] = waits ?? [];
  return { waitP50Ms, waitP95Ms, waitP99Ms };
}

const unknown = Object.fromEntries(names.map((name) => [name, null])) as unknown as Values;

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
