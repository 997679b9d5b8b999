// Counters, gauges and histograms, and their text in the format of Prometheus. A caller binds a series to its labels
// once, and then counts with an addition: a few nanoseconds. Not here: the metrics of a coordinator
// (coordinator-metrics.ts), and their server (metrics-server.ts).

import { assert } from "../assert.ts";

export type MetricType = "counter" | "gauge" | "histogram";

/** What a metric measures. */
export interface MetricInit<Label extends string> {
  /** `waggle_…`, in base units, with `_total` for a counter. */
  readonly name: string;
  /** One line for people, without its full stop. */
  readonly help: string;
  /** Names of the labels, in the order of the text. */
  readonly labels: readonly Label[];
}

/** Values by label. */
export type Labels<Label extends string> = Readonly<Record<Label, string>>;

/** A metric without its type of series, for a table of all metrics. */
export interface Described {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly labels: readonly string[];
}

/** A bound series of a counter. */
export class Counter {
  #value = 0;

  get value(): number {
    return this.#value;
  }

  /** @param by ≥ 0 */
  add(by = 1): void {
    this.#value += by;
  }
}

/** A bound series of a gauge. */
export class Gauge {
  #value = 0;

  get value(): number {
    return this.#value;
  }

  set(value: number): void {
    this.#value = value;
  }

  add(by: number): void {
    this.#value += by;
  }

  /** Keeps the greater value. */
  raise(value: number): void {
    if (value > this.#value) this.#value = value;
  }
}

/** A bound series of a histogram. */
export class Histogram {
  readonly #bounds: readonly number[];
  /** Observations by bucket, not cumulated; the last bucket has no bound. */
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds upper bounds of the buckets, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket += 1;
    (this.#counts[bucket] as number) += 1;
    this.#sum += value;
  }

  /** Observations up to each bound, and in the end of all. */
  cumulated(): number[] {
    let count = 0;
    return this.#counts.map((each) => {
      count += each;
      return count;
    });
  }
}

/** A metric: its series by their labels. */
export class Metric<Label extends string, Series> {
  readonly described: Described;
  readonly #make: () => Series;
  readonly #write: (lines: string[], series: Series, labels: string) => void;
  readonly #seriesByLabels = new Map<string, Series>();

  constructor(
    init: MetricInit<Label>,
    type: MetricType,
    make: () => Series,
    write: (lines: string[], series: Series, labels: string) => void,
  ) {
    assert(/^[a-z][a-z0-9_]*$/.test(init.name), `${init.name} is a name of a metric`);
    const { name, help, labels } = init;
    this.described = { name, type, help, labels };
    this.#make = make;
    this.#write = write;
    if (init.labels.length === 0) this.with({} as Labels<Label>);
  }

  /** The series of these labels, made at its first use. Keep the result: this search costs more than counting. */
  with(labels: Labels<Label>): Series {
    const text = labelText(this.described.labels, labels);
    const known = this.#seriesByLabels.get(text);
    if (known !== undefined) return known;
    const series = this.#make();
    this.#seriesByLabels.set(text, series);
    return series;
  }

  /** Forgets all series: a gauge of rows that come and go is filled anew before each text. */
  clear(): void {
    this.#seriesByLabels.clear();
  }

  /** @param lines receives the text of the metric */
  write(lines: string[]): void {
    const { name, type, help } = this.described;
    lines.push(`# HELP ${name} ${escapedHelp(help)}`, `# TYPE ${name} ${type}`);
    for (const [labels, series] of this.#seriesByLabels) this.#write(lines, series, labels);
    lines.push("");
  }
}

export type CounterMetric<Label extends string = never> = Metric<Label, Counter>;
export type GaugeMetric<Label extends string = never> = Metric<Label, Gauge>;
export type HistogramMetric<Label extends string = never> = Metric<Label, Histogram>;

/** All metrics of a process. */
export class Registry {
  readonly #metrics: { readonly described: Described; write(lines: string[]): void }[] = [];

  counter<Label extends string = never>(init: MetricInit<Label>): CounterMetric<Label> {
    const { name } = init;
    return this.#add(
      new Metric(
        init,
        "counter",
        () => new Counter(),
        (lines, { value }, labels) => lines.push(sample(name, labels, value)),
      ),
    );
  }

  gauge<Label extends string = never>(init: MetricInit<Label>): GaugeMetric<Label> {
    const { name } = init;
    return this.#add(
      new Metric(
        init,
        "gauge",
        () => new Gauge(),
        (lines, { value }, labels) => lines.push(sample(name, labels, value)),
      ),
    );
  }

  /** @param init.bounds upper bounds of the buckets, ascending; `+Inf` is added */
  histogram<Label extends string = never>(
    init: MetricInit<Label> & { readonly bounds: readonly number[] },
  ): HistogramMetric<Label> {
    const { name, bounds } = init;
    return this.#add(
      new Metric(
        init,
        "histogram",
        () => new Histogram(bounds),
        (lines, series, labels) => writeHistogram(lines, { name, bounds, series, labels }),
      ),
    );
  }

  /** All metrics, in the order of the text. */
  get described(): readonly Described[] {
    return this.#metrics.map(({ described }) => described);
  }

  /** The text of all metrics, in the format `contentType`. */
  text(): string {
    const lines: string[] = [];
    for (const metric of this.#metrics) metric.write(lines);
    return lines.join("\n");
  }

  #add<Added extends { readonly described: Described; write(lines: string[]): void }>(metric: Added): Added {
    const { name } = metric.described;
    assert(!this.#metrics.some(({ described }) => described.name === name), `${name} is registered once`);
    this.#metrics.push(metric);
    return metric;
  }
}

/** The media type of `Registry.text`. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8";

function writeHistogram(
  lines: string[],
  {
    name,
    bounds,
    series,
    labels,
  }: {
    readonly name: string;
    readonly bounds: readonly number[];
    readonly series: Histogram;
    readonly labels: string;
  },
): void {
  const counts = series.cumulated();
  const others = labels === "" ? "" : `,${labels}`;
  for (const [at, count] of counts.entries())
    lines.push(sample(`${name}_bucket`, `le="${valueText(bounds[at] ?? Infinity)}"${others}`, count));
  lines.push(sample(`${name}_sum`, labels, series.sum), sample(`${name}_count`, labels, counts.at(-1) ?? 0));
}

/** @param labels as by `labelText` */
function sample(name: string, labels: string, value: number): string {
  return labels === "" ? `${name} ${valueText(value)}` : `${name}{${labels}} ${valueText(value)}`;
}

/** `kind="count",outcome="failed"` */
function labelText(names: readonly string[], values: Readonly<Record<string, string>>): string {
  return names.map((name) => `${name}="${escapedValue(values[name] ?? "")}"`).join(",");
}

function valueText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

function escapedHelp(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
}

function escapedValue(text: string): string {
  return escapedHelp(text).replace(/"/g, '\\"');
}
