// The budget of microseconds: CPU time of a task by role and part, before a change and now. A role's total comes from
// /proc and includes the kernel; parts come from profiles. Profiling itself costs some time.

import type { ProfileSummary } from "./cpu-profile.ts";
import type { CodeName } from "./prepare.ts";
import { type Role, roles } from "./record.ts";
import { numberText, type Table } from "./tables.ts";

/** Profiled roles: of two agent processes one, which stands for both. */
export type ProfiledRole = Exclude<Role, "server" | "followers">;

export interface Budget extends CodeName {
  readonly node: string;
  /** The load: `1,024 tasks in flight`. */
  readonly what: string;
  readonly ratePerSecond: number;
  /** CPU µs per task. */
  readonly usByRole: Readonly<Partial<Record<Role, number>>>;
  /** CPU µs per task, largest first. */
  readonly parts: Readonly<Record<ProfiledRole, readonly Part[]>>;
}

export interface Part {
  readonly name: string;
  readonly us: number;
}

/** As stored in docs/results/budget.json. */
export interface Budgets {
  readonly before?: Budget;
  readonly now: Budget;
}

/** Smaller parts are summed. */
const PART_US_MIN = 0.3;

/** Sums self time by part. @param tasks number of tasks in the profiles of the role */
export function partsOf(summaries: readonly ProfileSummary[], tasks: number): readonly Part[] {
  const sums = new Map<string, number>();
  for (const { what, us } of summaries.flatMap(({ files }) => files)) {
    const name = partOf(what);
    sums.set(name, (sums.get(name) ?? 0) + us);
  }
  return [...sums].map(([name, us]) => ({ name, us: us / tasks })).sort((a, b) => b.us - a.us);
}

/** @param what a file, as a profile's summary names it, or a function without a file */
export function partOf(what: string): string {
  if (what === "(garbage collector)") return "garbage collection";
  if (what === "(program)") return "outside of JavaScript";
  if (what === "parse" || what === "stringify") return "JSON";
  if (what.startsWith("node:")) return "Node";
  if (/(^|\/)bench\//.test(what)) return "benchmark";
  const [first = "", second = "", ...rest] = what.split("/");
  if (second === "") return "built-in functions";
  if (first === "src") return rest.length === 0 ? "src" : `src/${second}`;
  return first.startsWith("@") ? `${first}/${second}` : first;
}

/** A table with the total and the parts of each role, then the sum of all roles. */
export function budgetTable({ before, now }: Budgets): Table {
  const total = (budget: Budget | undefined, role: Role) => usText(budget?.usByRole[role]);
  const rows = roles.flatMap((role) => [
    [role, "all", total(before, role), total(now, role)],
    ...(role === "server" ? [] : partRows(role, before?.parts[role], now.parts[role])),
  ]);
  const sum = (budget: Budget | undefined) =>
    budget && roles.reduce((us, role) => us + (budget.usByRole[role] ?? 0), 0);
  return {
    title: `µs per task, ${now.what}`,
    head: ["role", "part", "before", "now"],
    rows: [...rows, ["all", "all", usText(sum(before)), usText(sum(now))]],
  };
}

function partRows(
  role: Role,
  before: readonly Part[] | undefined,
  now: readonly Part[],
): readonly (readonly string[])[] {
  const usOf = (parts: readonly Part[] | undefined, name: string) =>
    parts?.find((part) => part.name === name)?.us ?? 0;
  const largestUs = (name: string) => Math.max(usOf(before, name), usOf(now, name));
  const names = [...new Set([...now, ...(before ?? [])].map(({ name }) => name))];
  const isShown = (name: string) => largestUs(name) >= PART_US_MIN;
  const shown = names.filter(isShown).toSorted((a, b) => largestUs(b) - largestUs(a));
  const text = (parts: readonly Part[] | undefined, us: number) => usText(parts && us);
  const restOf = (parts: readonly Part[] | undefined) =>
    (parts ?? []).filter(({ name }) => !isShown(name)).reduce((sum, { us }) => sum + us, 0);
  return [
    ...shown.map((name) => [role, name, text(before, usOf(before, name)), text(now, usOf(now, name))]),
    [role, "smaller parts", text(before, restOf(before)), text(now, restOf(now))],
  ];
}

/** One line on what the two columns are. */
export function budgetConditions({ before, now }: Budgets): string {
  const of = ({ version, codeDate, node, what, ratePerSecond }: Budget) =>
    `Waggle ${version} of ${codeDate} on Node ${node.slice(1)}, ${what}, ${numberText(ratePerSecond)} tasks/s under the profiler`;
  const earlier = before === undefined ? "no earlier version was measured" : of(before);
  return `Before: ${earlier}. Now: ${of(now)}.`;
}

function usText(us: number | undefined): string {
  return numberText(us, 1);
}
