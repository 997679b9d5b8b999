// Bar charts as SVG: one bar per system, with the spread of its rounds, or with parts on top of each other. Text has
// the colour of the page, so that a chart can be read on a dark page.

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Least and most of the rounds. */
  readonly spread?: readonly [least: number, most: number];
  /** Sum to the value; named in the legend. */
  readonly parts?: readonly { readonly name: string; readonly value: number }[];
  readonly isOurs?: boolean;
}

export interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly Bar[];
  readonly format: (value: number) => string;
}

const width = 760;
const labelWidth = 230;
const valueWidth = 90;
const rowHeight = 26;
const barHeight = 16;
const headHeight = 44;
const plotWidth = width - labelWidth - valueWidth;
const oursColour = "#d97706";
const theirsColour = "#64748b";
const partColours = ["#94a3b8", "#d97706", "#0d9488", "#6366f1"];

export function barChart({ title, unit, bars, format }: Chart): string {
  const most = Math.max(...bars.map(({ value, spread }) => Math.max(value, spread?.[1] ?? 0)));
  const scale = most > 0 ? plotWidth / most : 0;
  const partNames = [...new Set(bars.flatMap(({ parts = [] }) => parts.map(({ name }) => name)))];
  const top = headHeight + (partNames.length > 0 ? rowHeight : 0);
  const height = top + bars.length * rowHeight + 8;
  const rows = bars.map((bar, at) => {
    const y = top + at * rowHeight;
    const end = labelWidth + Math.max(bar.value, bar.spread?.[1] ?? 0) * scale;
    return [
      text(labelWidth - 8, y + 13, bar.label, `text-anchor="end"${bar.isOurs ? ' font-weight="bold"' : ""}`),
      ...boxes(bar, y, scale, partNames),
      ...whiskers(bar, y, scale),
      text(end + 6, y + 13, format(bar.value)),
    ].join("\n");
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" fill="#475569">
${text(8, 20, title, 'font-size="15" font-weight="bold"')}
${text(8, 36, unit, 'font-size="11"')}
${legend(partNames)}${rows.join("\n")}
</svg>
`;
}

function boxes(bar: Bar, y: number, scale: number, partNames: readonly string[]): string[] {
  if (bar.parts === undefined)
    return [box(labelWidth, y, bar.value * scale, bar.isOurs ? oursColour : theirsColour)];
  let from = labelWidth;
  return bar.parts.map(({ name, value }) => {
    const x = from;
    from += value * scale;
    return box(x, y, value * scale, colourOf(name, partNames));
  });
}

function whiskers({ spread }: Bar, y: number, scale: number): string[] {
  if (spread === undefined) return [];
  const [least, most] = spread.map((value) => round(labelWidth + value * scale));
  const middle = y + barHeight / 2;
  return [
    `<path d="M${least} ${middle}H${most}M${least} ${middle - 4}v8M${most} ${middle - 4}v8" stroke="#1e293b"/>`,
  ];
}

function legend(names: readonly string[]): string {
  return names
    .map((name, at) => {
      const x = labelWidth + at * 110;
      return `${box(x, headHeight, 12, colourOf(name, names))}\n${text(x + 18, headHeight + 13, name)}\n`;
    })
    .join("");
}

function colourOf(name: string, names: readonly string[]): string {
  return partColours[names.indexOf(name) % partColours.length] ?? theirsColour;
}

function box(x: number, y: number, boxWidth: number, colour: string): string {
  return `<rect x="${round(x)}" y="${y}" width="${round(Math.max(boxWidth, 1))}" height="${barHeight}" fill="${colour}"/>`;
}

function text(x: number, y: number, content: string, attributes = ""): string {
  const escaped = content.replace(/&/g, "&amp;").replace(/</g, "&lt;");
  return `<text x="${round(x)}" y="${round(y)}"${attributes === "" ? "" : ` ${attributes}`}>${escaped}</text>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
