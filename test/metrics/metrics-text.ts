// Reads the text of Prometheus in tests.

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** All samples of a text. Throws on a line that is none. */
export function samplesIn(text: string): readonly Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(sampleIn);
}

/** The value of the only sample of a metric with the given labels; undefined if the metric has no such sample. */
export function sampleOf(
  text: string,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const found = samplesIn(text).filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  if (found.length > 1) throw new Error(`${found.length} samples of ${name}`);
  return found[0]?.value;
}

function sampleIn(line: string): Sample {
  const [, name, inBraces, value] = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (name === undefined || value === undefined) throw new Error(`no sample: ${line}`);
  const labels = [...(inBraces ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label = "", text = ""]) => [
      label,
      text.replace(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped)),
    ],
  );
  return { name, labels: Object.fromEntries(labels), value: Number(value.replace("Inf", "Infinity")) };
}
