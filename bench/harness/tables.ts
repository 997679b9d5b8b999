// A run as tables: for the terminal and for docs/performance.md.

import { type CaseName, titles } from "./cases.ts";
import { Figures, type Role, type Run } from "./record.ts";
import { isMet, type Requirement, requirementsOf } from "./required.ts";
import type { Spread } from "./statistics.ts";
import { titleOf } from "./systems.ts";

export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const absent = "–";
const us = (role: Role) => `${role} µs`;
const loadHead = ["cores", "others", "calm rounds"];

export function tablesOf(run: Run): readonly Table[] {
  const required = requiredTableOf(run);
  return required === undefined ? tablesOfCases(run) : [...tablesOfCases(run), required];
}

export function tablesOfCases(run: Run): readonly Table[] {
  const figures = new Figures(run);
  return (figures.cases() as CaseName[]).map((name) => tableOf(figures, name));
}

/** Undefined for a run with short windows, which decide nothing, and for a run that measured no requirement. */
export function requiredTableOf(run: Run): Table | undefined {
  if (run.quick) return undefined;
  const table = requiredTable(requirementsOf(new Figures(run), Number.parseInt(run.node.slice(1), 10)));
  return table.rows.length === 0 ? undefined : table;
}

function tableOf(figures: Figures, name: CaseName): Table {
  const title = titles[name];
  const systems = figures.systemsIn(name);
  const roles = figures.rolesIn(name);
  const table = (head: readonly string[], row: (system: string) => readonly string[]): Table => ({
    title,
    head: ["system", ...head, ...loadHead],
    rows: systems.map((system) =>
      figures.of(name, system).length === 0
        ? [titleOf(system), "failed"]
        : [titleOf(system), ...row(system), ...loadOf(figures, name, system)],
    ),
  });
  const spread = (system: string, field: Parameters<Figures["spread"]>[2], digits?: number) =>
    spreadText(figures.spread(name, system, field), digits);
  const middle = (system: string, field: Parameters<Figures["spread"]>[2], digits?: number) =>
    numberText(figures.spread(name, system, field)?.median, digits);
  const usTexts = (system: string) => [
    ...roles.map((role) => numberText(figures.spreadOfRole(name, system, role)?.median, 1)),
    numberText(figures.usOfAll(name, system)?.median, 1),
  ];
  const openHead = ["rate/s", "reached/s", "p50 ms", "p99 ms", "max ms"];
  const openTexts = (system: string) => [
    middle(system, "wantedPerSecond"),
    middle(system, "ratePerSecond"),
    spread(system, "p50", 2),
    spread(system, "p99", 1),
    middle(system, "max", 0),
  ];
  const usHead = [...roles.map(us), "all µs"];

  switch (name) {
    case "c1":
      return table(["p50 ms", "p99 ms", "tasks/s", ...usHead], (system) => [
        spread(system, "p50", 3),
        spread(system, "p99", 2),
        middle(system, "ratePerSecond"),
        ...usTexts(system),
      ]);
    case "open":
    case "open2k":
      return table([...openHead, ...usHead], (system) => [...openTexts(system), ...usTexts(system)]);
    case "followers":
      return table([...openHead, "caught up ms", ...usHead], (system) => [
        ...openTexts(system),
        middle(system, "caughtUpMs"),
        ...usTexts(system),
      ]);
    case "acquire":
      return table(["p50 ms", "max ms"], (system) => [spread(system, "p50", 1), spread(system, "max", 1)]);
    case "idle":
      return table(
        roles.map((role) => `${role}, % of a core`),
        (system) => roles.map((role) => percentText(figures.spreadOfRole(name, system, role))),
      );
    case "burst":
      return table(["tasks/s", "Waggle ÷ it", "accepted ms", "all ms", ...usHead], (system) => [
        spread(system, "ratePerSecond"),
        spreadText(figures.ratio(name, "waggle", system), 2),
        middle(system, "acceptedMs", 0),
        middle(system, "ms", 0),
        ...usTexts(system),
      ]);
    case "sustained":
    case "waiting":
      return table(["tasks/s", "p50 ms", "p99 ms", "coordinator MiB", ...usHead], (system) => [
        spread(system, "ratePerSecond"),
        middle(system, "p50", 1),
        spread(system, "p99", 1),
        middle(system, "coordinatorMiB"),
        ...usTexts(system),
      ]);
    case "base":
      return table(["tasks/s", "p50 ms", "p99 ms", "base, share of time", ...usHead], (system) => [
        spread(system, "ratePerSecond"),
        middle(system, "p50", 1),
        middle(system, "p99", 1),
        middle(system, "baseShare", 2),
        ...usTexts(system),
      ]);
    case "durability":
    case "agents":
    case "users":
      return table(["tasks/s", "p50 ms", "p99 ms", ...usHead], (system) => [
        spread(system, "ratePerSecond"),
        middle(system, "p50", 1),
        middle(system, "p99", 1),
        ...usTexts(system),
      ]);
    case "c1024":
    case "c64":
      return table(["tasks/s", "Waggle ÷ it", "p50 ms", "p99 ms", ...usHead], (system) => [
        spread(system, "ratePerSecond"),
        spreadText(figures.ratio(name, "waggle", system), 2),
        middle(system, "p50", 2),
        middle(system, "p99", 1),
        ...usTexts(system),
      ]);
  }
}

function loadOf(figures: Figures, name: string, system: string): string[] {
  const { calm, all } = figures.calmRounds(name, system);
  return [
    numberText(figures.spread(name, system, "cores")?.median, 2),
    numberText(figures.spread(name, system, "foreign")?.median, 2),
    `${calm} of ${all}`,
  ];
}

function requiredTable(requirements: readonly Requirement[]): Table {
  const boundText = ({ bound }: Requirement) =>
    "atLeast" in bound ? `≥ ${bound.atLeast}` : `≤ ${bound.atMost}`;
  return {
    title: "required",
    head: ["what", "came out", "required", "stretch", ""],
    rows: requirements
      .filter(({ value }) => value !== undefined)
      .map((requirement) => [
        requirement.what,
        spreadText(requirement.value, digitsOf(requirement.value)),
        boundText(requirement),
        String(requirement.stretch),
        isMet(requirement) ? "met" : "not met",
      ]),
  };
}

export function asText({ title, head, rows }: Table): string {
  const all = [head, ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)))
      .join("  ")
      .trimEnd();
  return [title, line(head), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join(
    "\n",
  );
}

export function asMarkdown({ head, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const filled = (row: readonly string[]) => head.map((_, at) => row[at] ?? "");
  const alignment = head.map((_, at) => (at === 0 ? "---" : "--:"));
  return [line(head), `|${alignment.join("|")}|`, ...rows.map((row) => line(filled(row)))].join("\n");
}

/** One line on the machine and the servers. */
export function conditionsOf({
  machine,
  node,
  servers,
  version,
  codeDate,
  startedAt,
  rounds,
  quick,
  figures,
}: Run): string {
  const programs = Object.entries(servers).map(([name, version]) => `${name} ${version}`);
  const calm = new Figures({ figures });
  const counts = calm
    .cases()
    .flatMap((name) => calm.systemsIn(name).map((system) => calm.calmRounds(name, system)));
  const all = counts.reduce((sum, count) => sum + count.all, 0);
  const foreign = all - counts.reduce((sum, count) => sum + count.calm, 0);
  const windows = quick ? "short windows" : "full windows";
  return (
    `Waggle ${version} of ${codeDate} on Node ${node.slice(1)}; ${programs.join(", ")}. ${machine.cores} cores (${machine.model}), ` +
    `${machine.memoryGiB} GiB, ${machine.system}. ${startedAt.slice(0, 16).replace("T", " ")} UTC, ${rounds} rounds, ` +
    `${windows}, load average ${machine.load.map((load) => load.toFixed(1)).join(" before and ")} after. ` +
    `In ${foreign} of ${all} windows other programs used 0.1 core or more.`
  );
}

function digitsOf(spread: Spread | undefined): number {
  const value = spread?.median ?? 0;
  return value >= 100 ? 0 : value >= 10 ? 1 : 2;
}

function percentText(usPerSecond: Spread | undefined): string {
  return usPerSecond === undefined ? absent : numberText(usPerSecond.median / 10_000, 2);
}

export function spreadText(spread: Spread | undefined, digits = 0): string {
  if (spread === undefined) return absent;
  const text = (value: number) => numberText(value, digits);
  return `${text(spread.median)} (${text(spread.least)}–${text(spread.most)})`;
}

export function numberText(value: number | undefined, digits = 0): string {
  if (value === undefined || Number.isNaN(value)) return absent;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
