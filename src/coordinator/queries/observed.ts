// The leader's findings in the answer to `status`: bottlenecks, tasks that depend on few agents, times of turns and
// appends, the process.

import { limits } from "../../limits.ts";
import type { ProcessFigures } from "../../process-watch.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import { rounded } from "../../scheduling/rounded.ts";
import type { Monitor } from "../leader/monitor.ts";
import type { TimingSummary, Timings } from "../leader/timings.ts";

type Observed = NonNullable<StatusResponse["observed"]>;

interface ObservedSources {
  readonly monitor: Monitor;
  readonly timings: Timings;
  /** Undefined: nobody watches the process. */
  readonly process: ProcessFigures | undefined;
}

/** The leader's findings, as many as `status` shows. */
export function observedBy({ monitor, timings, process }: ObservedSources): Observed {
  return {
    windowMs: limits.bottleneckWindowMs,
    bottlenecks: monitor.bottlenecks().slice(0, limits.bottlenecksShownMax).map(withRoundedShare),
    concentration: monitor.alerts().slice(0, limits.concentrationAlertsShownMax).map(withRoundedShare),
    soleAgents: monitor.soleAgents().slice(0, limits.concentrationAlertsShownMax),
    timings: timingsOf(timings),
    ...(process === undefined ? {} : { process }),
  };
}

function timingsOf({ turns, appends }: Timings): NonNullable<Observed["timings"]> {
  return {
    windowMs: limits.timingsWindowMs,
    ...(turns === undefined ? {} : { decision: withRoundedMs(turns) }),
    ...(appends === undefined ? {} : { append: withRoundedMs(appends) }),
  };
}

function withRoundedMs({ count, p50, p99, max }: TimingSummary): TimingSummary {
  return { count, p50: rounded(p50), p99: rounded(p99), max: rounded(max) };
}

function withRoundedShare<Row extends { readonly share: number }>(row: Row): Row {
  return { ...row, share: rounded(row.share) };
}
