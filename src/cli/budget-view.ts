// Budgets and rates for people, as part of `waggle status`. Shown only where some are set.

import { duration } from "../audit/describe.ts";
import { formatCount } from "../count-text.ts";
import type { StatusResponse } from "../protocol/schemas.ts";
import type { Output } from "./output.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

type View = Pick<Output, "columns" | "colors">;

const budgetColumns: readonly Column[] = [
  { head: "budget of" },
  { head: "spent", align: "right" },
  { head: "reserved", align: "right" },
  { head: "limit", align: "right" },
  { head: "window", align: "right" },
  { head: "when used up", whenNarrow: "below" },
];

const beyond = {
  wait: "tasks wait",
  reject: "submissions are refused",
  alert: "tasks run, event journaled",
  downgrade: "tasks run as a cheaper kind or type",
};

/** Undefined when nothing has a budget. */
export function budgetTable({ budget, projects }: StatusResponse, view: View): string | undefined {
  const owners: { readonly name: string; readonly budget: StatusResponse["budget"] }[] = [
    { name: "the swarm", budget },
    ...projects.map((each) => ({ name: each.project, budget: each.budget })),
  ];
  const rows = owners.flatMap(({ name, budget: of }): Cell[][] =>
    of === undefined
      ? []
      : [
          [
            name,
            formatCount(of.spent),
            formatCount(of.reserved),
            `${formatCount(of.tokens)} tokens`,
            duration(of.windowMs),
            `${of.mode}: ${beyond[of.mode]}${of.spent + of.reserved > of.tokens ? " (exceeded)" : ""}`,
          ],
        ],
  );
  return rows.length === 0 ? undefined : renderTable(view, budgetColumns, rows);
}

const rateColumns: readonly Column[] = [
  { head: "agents of type" },
  { head: "used", align: "right" },
  { head: "reserved", align: "right" },
  { head: "limit", align: "right" },
  { head: "window" },
  { head: "open" },
];

/** Undefined when no type is limited. */
export function rateTable({ rates = [], at }: StatusResponse, view: View): string | undefined {
  if (rates.length === 0) return undefined;
  const rows = rates.map((rate): Cell[] => [
    rate.type,
    formatCount(rate.used),
    rate.reserved === undefined ? "–" : formatCount(rate.reserved),
    `${formatCount(rate.tokensMax)} tokens`,
    `${rate.window.replace("_", " ")}${rate.sliding ? "" : ", restarting"}`,
    rate.opensAt === undefined ? "yes" : `in ${duration(Math.max(0, rate.opensAt - at))}`,
  ]);
  return renderTable(view, rateColumns, rows);
}
