// The report of `waggle verify`: as a record, and as text for people.

import { describe, givenUpText } from "../audit/describe.ts";
import { keyName } from "../audit/signed-head.ts";
import type { Fault, Gap, Verification } from "../audit/verifying/verify.ts";
import { counted, formatCount } from "../count-text.ts";
import { formatTime, labelled } from "./format.ts";
import { type Output, printable } from "./output.ts";

const EVENTS_SHOWN = 5;
const VALUE_CHARACTERS = 120;

/** Signed heads of an anchor file, compared with the journal. */
export interface HeadsReport {
  readonly checked: number;
  /** The first head that does not fit. */
  readonly wrong?: string;
  /** Keys that signed the heads. */
  readonly keys: readonly string[];
  /** The batch of the head that was added now. */
  readonly addedIdx?: number;
}

export interface VerificationReport extends Omit<Verification, "tail" | "fault"> {
  readonly type: "verification";
  readonly ok: boolean;
  readonly where: string;
  /** The last good batch; 0 if there is none. */
  readonly lastIdx: number;
  readonly lastHash: string;
  readonly term: number;
  readonly fault?: Fault;
  readonly heads?: HeadsReport;
}

export function verificationReport(
  { tail, fault, ...found }: Verification,
  { where, heads }: { readonly where: string; readonly heads: HeadsReport | undefined },
): VerificationReport {
  const areGapsAdmitted = found.gaps.every(({ isAdmitted }) => isAdmitted);
  const lastIdx = Math.min(tail.idx, (fault?.idx ?? Number.POSITIVE_INFINITY) - 1);
  return {
    type: "verification",
    ok: fault === undefined && areGapsAdmitted && heads?.wrong === undefined,
    where,
    ...found,
    lastIdx,
    lastHash: lastIdx === tail.idx ? tail.hash : "",
    term: tail.term,
    ...(fault === undefined ? {} : { fault }),
    ...(heads === undefined ? {} : { heads }),
  };
}

export function verificationText(report: VerificationReport, { columns, colors }: Output): string {
  const { ok, fault, heads, gaps, recoveries } = report;
  const line = (label: string, text: string) => labelled(label, text, columns);
  const verdict = ok
    ? colors.green(`whole: every batch${gaps.length === 0 ? "" : " outside the gap"} is as it was written`)
    : colors.red(printable(fault === undefined ? notWholeText(report) : fault.text));
  return [
    line("journal", journalText(report)),
    line("checked", checkedText(report)),
    ...gaps.map((gap) => line("gap", gapText(gap))),
    ...recoveries.map(({ idx, term, ...givenUp }) =>
      line("recovered", `by batch ${formatCount(idx)} of term ${term}: ${givenUpText(givenUp)} lost`),
    ),
    ...(heads === undefined ? [] : [line("heads", headsText(heads))]),
    line("verdict", verdict),
    ...(fault === undefined ? [] : faultLines(fault).map(([label, text]) => line(label, text))),
    ...(ok ? [] : [line("next", nextText(report))]),
  ].join("\n");
}

/** A gap in a sentence. */
export function gapText({ from, to, isAdmitted, text }: Gap): string {
  const which = `${batchesText({ from, to })} cannot be read: ${printable(text ?? "no segment holds them")}`;
  const isSaid = isAdmitted ? ", and the journal says that they were lost" : "";
  return `${which}; a base holds the state after them${isSaid}`;
}

/** @param to undefined: up to the end */
export function batchesText({
  from,
  to,
}: {
  readonly from: number;
  readonly to: number | undefined;
}): string {
  if (from === to) return `batch ${formatCount(from)}`;
  return to === undefined
    ? `batches from ${formatCount(from)} on`
    : `batches ${formatCount(from)} to ${formatCount(to)}`;
}

function journalText({ journal, where, segments }: VerificationReport): string {
  const [first, last] = [segments[0], segments.at(-1)];
  const which = first === last ? `segment ${first}` : `segments ${first} to ${last}`;
  return `${journal} ${where}, ${which}`;
}

function checkedText(report: VerificationReport): string {
  const { firstIdx, lastIdx, batches, events, at, basesCompared, basesTaken, foreign } = report;
  if (batches === 0) return "no batch";
  const parts = [
    `batches ${formatCount(firstIdx)} to ${formatCount(lastIdx)}, ${counted(events, "event")}, up to ${formatTime(at)}`,
  ];
  if (basesCompared > 0) parts.push(`${counted(basesCompared, "base")} equal to the folded state`);
  if (basesTaken > 0 && firstIdx > 1)
    parts.push(
      `the state before batch ${formatCount(firstIdx)} taken from a base: earlier batches are not kept`,
    );
  if (foreign > 0) parts.push(`${counted(foreign, "record")} of other programs skipped`);
  return parts.join("; ");
}

function headsText({ checked, wrong, keys, addedIdx }: HeadsReport): string {
  const parts: string[] = [];
  if (wrong !== undefined) parts.push(wrong);
  else if (checked > 0)
    parts.push(
      `${counted(checked, "signed head")} of the key ${keys.map(keyName).join(", ")} ${checked === 1 ? "fits" : "fit"}`,
    );
  if (addedIdx !== undefined) parts.push(`head of batch ${formatCount(addedIdx)} added`);
  return parts.length === 0 ? "the file has no head yet; sign one with --key" : parts.join("; ");
}

function notWholeText({ heads, gaps }: VerificationReport): string {
  if (heads?.wrong !== undefined) return heads.wrong;
  return gaps.length === 1 ? "batches are missing" : "batches are missing in several places";
}

function faultLines({ segment, position, idx, events, differences }: Fault): [label: string, text: string][] {
  const at = position === undefined ? `segment ${segment}` : `segment ${segment}, record ${position}`;
  const lines: [string, string][] = [
    ["first bad", idx === undefined ? at : `batch ${formatCount(idx)} (${at})`],
  ];
  for (const { path, was, is } of differences ?? [])
    lines.push(["changed", `${printable(path)}: ${valueText(was)} → ${valueText(is)}`]);
  if (differences === undefined && events !== undefined) {
    for (const event of events.slice(0, EVENTS_SHOWN)) lines.push(["holds now", printable(describe(event))]);
    if (events.length > EVENTS_SHOWN)
      lines.push(["", `and ${counted(events.length - EVENTS_SHOWN, "more event")}`]);
  }
  return lines;
}

function valueText(value: unknown): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return printable(text.length > VALUE_CHARACTERS ? `${text.slice(0, VALUE_CHARACTERS)}…` : text);
}

function nextText({ fault, lastIdx }: VerificationReport): string {
  const trusted =
    lastIdx === 0 ? "no batch can be trusted" : `trust batches up to ${formatCount(lastIdx)} only`;
  return fault === undefined
    ? "compare with a backup of the storage, or with an export made earlier"
    : `${trusted}; compare with a backup of the storage, or with an export made earlier (\`waggle export\`)`;
}
