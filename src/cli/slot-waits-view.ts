// Requests that wait for slots of a resource, for people: who comes next, and by which terms.

import { duration, slotQueueText } from "../audit/describe.ts";
import type { ReplayedGrant } from "../audit/grant-replay.ts";
import { counted, formatCount } from "../count-text.ts";
import type { SlotStanding, SlotWaits } from "../protocol/explain-schemas.ts";
import { formatTime, labelled } from "./format.ts";
import { type Output, printable } from "./output.ts";
import { slotLeaseName, waitsForText } from "./slot-leases-view.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;

/** The request that the user asked for; without an agent all requests are shown. */
export interface AskedRequest {
  readonly agent?: string;
  readonly handle?: string;
}

const columnsOfWaits: readonly Column[] = [
  { head: "  place", align: "right", whenNarrow: "whole" },
  { head: "agent", whenNarrow: "whole" },
  { head: "handle", whenNarrow: "drop" },
  { head: "waited", align: "right" },
  { head: "age", align: "right" },
  { head: "by", whenNarrow: "whole" },
  { head: "L", align: "right", whenNarrow: "whole" },
  { head: "α·Q/max Q", align: "right", whenNarrow: "whole" },
  { head: "(1−α)·D/max D", align: "right", whenNarrow: "whole" },
  { head: "Q", align: "right", whenNarrow: "drop" },
  { head: "D", align: "right", whenNarrow: "drop" },
  { head: "lacks", whenNarrow: "below" },
];

function withoutWaiters({ slots, inUse }: Pick<SlotWaits, "slots" | "inUse">): string {
  if (inUse < slots) return "no request waits: a new one gets a free slot at once";
  return "no request waits: a new request gets the next released slot";
}

export function slotWaitsText(waits: SlotWaits, asked: AskedRequest, view: View): string {
  const { resource, slots, inUse, waiting, alpha, alphaFrom, tick, waiters, omitted, stale } = waits;
  const { columns, colors } = view;
  const head = [
    `${colors.bold(printable(resource))}  ${formatCount(inUse)} of ${counted(slots, "slot")} in use, ${counted(waiting, "request")} waiting`,
    ...(stale === true ? [colors.yellow("answered by a standby; the leader may know more")] : []),
    labelled(
      "rule",
      `requests past the starvation limit first, in order of asking; then the highest L. α ${alpha} (${alphaFrom}), max Q ${waits.maxQueueDepth}, max D ${formatCount(waits.maxOldestAge)} of ${counted(tick, "tick")} so far`,
      columns,
    ),
  ];
  if (waiting === 0) return [...head, withoutWaiters({ slots, inUse })].join("\n");
  const wanted = asked.agent === undefined ? undefined : waiters.at(-1);
  const parts = [
    head.join("\n"),
    ...(wanted === undefined ? [] : [verdict(wanted, waits, view)]),
    table(waiters, { resource, wanted }, view),
  ];
  if (omitted !== undefined) parts.push(colors.dim(`and ${counted(omitted.waiters, "request")} more`));
  return parts.join("\n\n");
}

/** A past grant, with the requests that competed. */
export function grantText(grant: ReplayedGrant, view: View): string {
  const { agent, handle, resource, at, idx, receipt, alpha, maxQueueDepth, maxOldestAge, standings, agrees } =
    grant;
  const { colors, columns } = view;
  const head = `${colors.bold(printable(`${agent} ${handle}`))} got its slots at batch ${formatCount(idx)}, ${formatTime(at)}`;
  if (resource === undefined)
    return `${head}\n${labelled("why", "a slot was free: the request did not wait", columns)}`;
  const by =
    receipt.by === "load"
      ? `the highest L of the requests that fit (α ${alpha}, max Q ${maxQueueDepth}, max D ${formatCount(maxOldestAge)})`
      : "it had waited past the starvation limit";
  const own = standings.find((each) => each.agent === agent && each.handle === handle);
  const verdictText = agrees
    ? colors.dim("the receipt says the same")
    : colors.red(`the receipt differs: ${JSON.stringify(receipt)}`);
  const why = labelled("why", `${printable(resource)}: ${by}, after ${duration(receipt.waitedMs)}`, columns);
  return [`${head}\n${why}`, table(standings, { resource, wanted: own }, view), verdictText].join("\n\n");
}

/** One sentence about the requested wait. */
function verdict(
  { place, handle, by, load, tokens, waitsFor, ...slotLease }: SlotStanding,
  waits: SlotWaits,
  { columns }: View,
): string {
  const { waiters, waiting } = waits;
  const before = waiters.slice(0, -1);
  const late = before.filter((each) => each.by === "starvation-limit").length;
  const reasons = [
    ...(late > 0 ? [`${formatCount(late)} past the starvation limit`] : []),
    ...(before.length - late > 0
      ? [`${formatCount(before.length - late)} with a higher L, or as high and earlier`]
      : []),
  ];
  const own =
    by === "load"
      ? `its L is ${load}`
      : by === "starvation-limit"
        ? "it is past the starvation limit"
        : waitsFor !== undefined
          ? `skipped, because it lacks ${tokensLack(tokens, waitsFor)}`
          : "skipped, because its agent does not answer";
  const agent = slotQueueText(slotLease);
  const text =
    place === 1 && by !== "unreachable" && by !== "tokens"
      ? `request ${handle} of ${agent} is next of ${formatCount(waiting)}: ${own}`
      : `request ${handle} of ${agent} is number ${formatCount(place)} of ${formatCount(waiting)}: ${own}; before it: ${reasons.join(", ")}`;
  return labelled("place", printable(text), columns);
}

/** `500 tokens of the project's budget`. */
function tokensLack(tokens: number | undefined, waitsFor: NonNullable<SlotStanding["waitsFor"]>): string {
  return `${counted(tokens ?? 0, "token")} of ${waitsForText[waitsFor]}`;
}

type Ranked = Pick<
  SlotStanding,
  | "place"
  | "agent"
  | "handle"
  | "waitedMs"
  | "ageTicks"
  | "by"
  | "load"
  | "depthTerm"
  | "ageTerm"
  | "queueDepth"
  | "oldestAge"
> & {
  readonly as?: string | undefined;
  readonly label?: string | undefined;
  readonly tokens?: number | undefined;
  readonly waitsFor?: SlotStanding["waitsFor"];
  readonly limitTicks?: number | undefined;
  readonly needs: readonly SlotStanding["needs"][number][];
};

/** A single slot of the resource itself is what every request waits for: only further slots are named as lacking. */
function table(
  waiters: readonly Ranked[],
  { resource, wanted }: { readonly resource: string; readonly wanted: Ranked | undefined },
  view: View,
): string {
  const rows = waiters.map((row): Cell[] => [
    `${row === wanted ? "→" : " "} ${formatCount(row.place)}`,
    slotLeaseName(row),
    row.handle,
    duration(row.waitedMs),
    row.limitTicks === undefined ? `${row.ageTicks}` : `${row.ageTicks} of ${row.limitTicks}`,
    row.by,
    row.load.toFixed(4),
    row.depthTerm.toFixed(4),
    row.ageTerm.toFixed(4),
    row.queueDepth,
    row.oldestAge,
    [
      ...(row.waitsFor === undefined ? [] : [tokensLack(row.tokens, row.waitsFor)]),
      ...row.needs
        .filter((need) => need.free < need.wanted && (need.resource !== resource || need.wanted > 1))
        .map((need) => `${need.resource} (${need.free} of ${need.wanted} free)`),
    ].join(", "),
  ]);
  return renderTable(view, columnsOfWaits, rows);
}
