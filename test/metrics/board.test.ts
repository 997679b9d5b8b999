// The board of Grafana, the alerts of Prometheus and docs/metrics.md, held to the metrics of a running swarm. Every
// named metric and label exists.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { CoordinatorMetrics } from "../../src/metrics/coordinator-metrics.ts";
import { stopped } from "../support/swarm.ts";
import { live, type MeasuredSwarm, startMeasuredSwarm, version } from "./measured-swarm.ts";
import { samplesIn } from "./metrics-text.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const { panels } = JSON.parse(
  readFileSync(`${root}observability/grafana/dashboards/waggle.json`, "utf8"),
) as {
  panels: readonly Panel[];
};
const alerts = parse(readFileSync(`${root}observability/alerts.yml`, "utf8")).groups[0].rules as readonly {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string };
}[];

const queries = [
  ...panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => ({ of: title, expr, text: legendFormat })),
  ),
  ...alerts.map(({ alert, expr, annotations }) => ({ of: alert, expr, text: annotations.summary })),
];

/** Labels that Prometheus adds to each sample. */
const ofPrometheus = ["instance", "job"];
/** Its bound is unknown for a journal in memory. */
const withoutSample = "waggle_journal_limit_bytes";

describe("every query of the board and of the alerts", () => {
  let measured: MeasuredSwarm;
  /** By name of a sample: the labels of its samples. */
  const labelsByName = new Map<string, Set<string>>([[withoutSample, new Set()]]);

  beforeAll(async () => {
    measured = await startMeasuredSwarm();
    await live(measured);
    for (const { name, labels } of samplesIn(measured.metrics.text())) {
      const known = labelsByName.get(name) ?? new Set();
      for (const label of Object.keys(labels)) known.add(label);
      labelsByName.set(name, known);
    }
  });
  afterAll(() => stopped(measured.swarm, measured.clock));

  it.each(queries)("$of: $expr", ({ expr, text }) => {
    const names = expr.match(/\b(?:waggle|process)_[a-z_]+/g) ?? [];
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !labelsByName.has(name))).toEqual([]);
    const known = new Set([...ofPrometheus, ...names.flatMap((name) => [...(labelsByName.get(name) ?? [])])]);
    const inBraces = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, list = ""]) =>
      [...list.matchAll(/([a-z_]+)\s*(?:=|!=|=~|!~)/g)].map(([, label = ""]) => label),
    );
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
    const shown = [...text.matchAll(/\{\{\s*(?:\$labels\.)?([a-z_]+)/g)].map(([, label = ""]) => label);
    expect([...inBraces, ...grouped, ...shown].filter((label) => !known.has(label))).toEqual([]);
    for (const label of shown) expect(grouped.length === 0 || grouped.includes(label)).toBe(true);
  });

  it("uses every metric of the swarm on the board", () => {
    const used = queries.map(({ expr }) => expr).join("\n");
    const unused = measured.metrics.described.map(({ name }) => name).filter((name) => !used.includes(name));
    expect(unused).toEqual([
      "waggle_swarm_paused",
      "waggle_journal_idx",
      "waggle_build_info",
      "process_start_time_seconds",
    ]);
  });
});

it("the board's panels have ids and titles of their own", () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
});

describe("docs/metrics.md", () => {
  const page = readFileSync(`${root}docs/metrics.md`, "utf8");
  const rows = [
    ...page.matchAll(/^\| `((?:waggle|process)_[a-z_]+)` \| (\w+) \| ([^|]*) \| ([^|]*) \|$/gm),
  ].map(([, name, type, labels = "", help = ""]) => ({
    name,
    type,
    labels: [...labels.matchAll(/`([a-z_]+)`/g)].map(([, label]) => label),
    help: help.trim(),
  }));

  it("lists every metric with its type and labels, and no other", () => {
    const { described } = new CoordinatorMetrics({ version });
    const byName = (one: { name?: string | undefined }, other: { name?: string | undefined }) =>
      (one.name ?? "") < (other.name ?? "") ? -1 : 1;
    expect(rows.map(({ name, type, labels }) => ({ name, type, labels })).sort(byName)).toEqual(
      described.map(({ name, type, labels }) => ({ name, type, labels })).sort(byName),
    );
    expect(rows.filter(({ help }) => help === "")).toEqual([]);
  });

  it("says what a series per agent is", () => {
    const { described } = new CoordinatorMetrics({ version, byAgent: true });
    const byAgent = described.filter(({ labels }) => labels.includes("agent")).map(({ name }) => name);
    expect(byAgent).toEqual(["waggle_agent_load"]);
    expect(page).toContain("waggle_agent_load{agent=");
  });
});
