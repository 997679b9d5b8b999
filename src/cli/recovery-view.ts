// The report of `waggle journal recover`: as a record, and as text for people.

import { counted, formatCount } from "../count-text.ts";
import type { Salvage, SalvagedSegment } from "../journal/salvage.ts";
import { formatTime, labelled } from "./format.ts";
import { type Output, printable } from "./output.ts";

export interface RecoveryReport {
  readonly type: "recovery";
  /** Undefined if the log can be read to its end. */
  readonly damage?: string;
  readonly segments: readonly {
    readonly segment: number;
    readonly open: boolean;
    /** Up to the segment's end, readable or not. */
    readonly records: number;
    /** Number of readable records. */
    readonly readable: number;
    readonly damage?: string;
  }[];
  /** The last good batch and its state. Undefined if no state can be read. */
  readonly last?: {
    readonly term: number;
    readonly idx: number;
    readonly at: number;
    readonly segment: number;
    readonly position: number;
    readonly tasks: { readonly live: number; readonly ended: number };
    readonly agents: number;
  };
  /** The records after the last good batch. Undefined if there are none. */
  readonly lost?: {
    /** Highest batch that a lost record names. */
    readonly upToIdx?: number;
    readonly records: number;
    readonly segments: readonly number[];
  };
  readonly audit: { readonly firstIdx: number; readonly firstIdxBefore: number };
  /** The opened segment; undefined if nothing was changed. */
  readonly openedSegment?: number;
}

/** @param openedSegment undefined when nothing is changed */
export function recoveryReport(found: Salvage, openedSegment: number | undefined): RecoveryReport {
  const { damage, log, segments, auditFirstIdx } = found;
  return {
    type: "recovery",
    ...(damage === undefined ? {} : { damage }),
    segments: segments.map(({ number, live, lastPosition, records, damage }) => ({
      segment: number,
      open: live !== undefined,
      records: lastPosition,
      readable: records,
      ...(damage === undefined ? {} : { damage }),
    })),
    ...lastOf(found),
    ...(damage === undefined ? {} : lostOf(found)),
    audit: { firstIdx: auditFirstIdx, firstIdxBefore: log?.state.auditFirstIdx ?? 1 },
    ...(openedSegment === undefined ? {} : { openedSegment }),
  };
}

function lastOf({ log }: Salvage): Pick<RecoveryReport, "last"> {
  const { place } = log ?? {};
  if (log === undefined || place === undefined) return {};
  const { state, tail } = log;
  const tasks = { live: state.taskById.size, ended: state.endedById.size };
  return {
    last: { term: tail.term, idx: tail.idx, at: state.at, ...place, tasks, agents: state.agentById.size },
  };
}

function lostOf({ log, segments }: Salvage): Pick<RecoveryReport, "lost"> {
  const place = log?.place ?? { segment: 0, position: 0 };
  const idx = log?.tail.idx ?? 0;
  const behind = segments.filter(({ number, lastPosition }) => number > place.segment && lastPosition > 0);
  const within = segments.find(({ number }) => number === place.segment);
  const records =
    Math.max(0, (within?.lastPosition ?? 0) - place.position) +
    behind.reduce((sum, { lastPosition }) => sum + lastPosition, 0);
  const upToIdx = Math.max(0, ...segments.map(highestIdxIn));
  const lost = { records, segments: behind.map(({ number }) => number) };
  return { lost: upToIdx > idx ? { upToIdx, ...lost } : lost };
}

/** A segment's `Opened` says how far the log was by then, also when batches of it cannot be read. */
function highestIdxIn({ live, idxMax }: SalvagedSegment): number {
  return Math.max(live?.opened.tail.idx ?? 0, idxMax);
}

// --- text -------------------------------------------------------------------------------------------

export function recoveryText(report: RecoveryReport, { columns, colors }: Output): string {
  const { damage, last, lost } = report;
  const line = (label: string, text: string) => labelled(label, text, columns);
  return [
    line("journal", segmentsText(report)),
    line("damage", damage === undefined ? "none that affects a restart" : colors.red(printable(damage))),
    line("last good", last === undefined ? "no batch: no state can be read" : lastText(last)),
    ...(lost === undefined ? [] : [line("lost", lostText(lost, last))]),
    line("audit", auditText(report)),
    line("next", nextText(report)),
  ].join("\n");
}

function segmentsText({ segments }: RecoveryReport): string {
  const numbers = segments.map(({ segment }) => segment);
  const [first, last] = [numbers[0], numbers.at(-1)];
  const records = segments.reduce((sum, { records }) => sum + records, 0);
  const unreadable = segments.reduce(
    (sum, { records, readable }) => sum + Math.max(0, records - readable),
    0,
  );
  const which =
    first === last ? `segment ${first}` : `${counted(numbers.length, "segment")} (${first} to ${last})`;
  const broken = segments.filter(({ damage }) => damage !== undefined).map(({ segment }) => segment);
  const damaged = broken.length === 0 ? "" : `; damaged: ${broken.join(", ")}`;
  const lost = unreadable === 0 ? "" : `, ${formatCount(unreadable)} unreadable`;
  return `${which}, ${counted(records, "record")}${lost}${damaged}`;
}

function lastText({
  term,
  idx,
  at,
  segment,
  position,
  tasks,
  agents,
}: NonNullable<RecoveryReport["last"]>): string {
  const state = `${counted(tasks.live, "live task")}, ${formatCount(tasks.ended)} ended, ${counted(agents, "agent")}`;
  return `batch ${formatCount(idx)} of term ${term}, ${formatTime(at)} (segment ${segment}, record ${position}): ${state}`;
}

function lostText(
  { upToIdx, records, segments }: NonNullable<RecoveryReport["lost"]>,
  last: RecoveryReport["last"],
): string {
  const from = (last?.idx ?? 0) + 1;
  const batches =
    upToIdx === undefined
      ? "an unknown number of batches"
      : `batches ${formatCount(from)} to ${formatCount(upToIdx)}, perhaps more`;
  const whole = segments.length === 0 ? "" : `, including all of segment ${segments.join(", ")}`;
  return `${batches}; ${counted(records, "record")} after the last good batch${whole}`;
}

function auditText({ audit: { firstIdx, firstIdxBefore } }: RecoveryReport): string {
  const from = `can be read from batch ${formatCount(firstIdx)} on`;
  return firstIdx > firstIdxBefore
    ? `${from}; batches ${formatCount(firstIdxBefore)} to ${formatCount(firstIdx - 1)} are lost or before a gap`
    : from;
}

function nextText({ damage, last, openedSegment }: RecoveryReport): string {
  if (openedSegment !== undefined)
    return `segment ${openedSegment} was opened with this state: start the coordinators with \`waggle up\``;
  if (damage === undefined) return "nothing to recover: a coordinator can read the whole journal";
  if (last === undefined) return "restore the storage from a backup: no state can be recovered";
  return "let running coordinators run; if none can continue, restore the storage from a backup, or `waggle journal recover --yes` continues from the last good batch";
}
