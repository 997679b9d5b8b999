// The waterfall of a scheduler: a thin line per task, in the order of assignment, from submission to assignment.
// Users or projects have a colour each. Drawn on a canvas, because hundreds of lines change at once.

import { useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useDashboard } from "../context.ts";
import { html, type View } from "./html.ts";
import { roundTimes } from "./ticks.ts";
import { useWidth } from "./width.ts";

export interface WaterfallBar {
  /** Instants, ms since the epoch. */
  readonly from: number;
  readonly to: number;
  readonly group: string;
  readonly title: string;
}

export interface WaterfallProps {
  /** In the order of assignment. */
  readonly bars: readonly WaterfallBar[];
  readonly colours: ReadonlyMap<string, number>;
}

const HEIGHT = 340;
const AXIS = 22;
const COLOURS = 8;

/** The seven largest groups have a colour each; the rest share the eighth, as `others`. */
export function coloursOf(groups: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const group of groups) counts.set(group, (counts.get(group) ?? 0) + 1);
  const largest = [...counts]
    .sort(([a, one], [b, other]) => other - one || a.localeCompare(b))
    .map(([group]) => group);
  if (largest.length <= COLOURS) return new Map(largest.map((group, at) => [group, at + 1]));
  return new Map([
    ...largest.slice(0, COLOURS - 1).map((group, at) => [group, at + 1] as const),
    ["others", COLOURS],
  ]);
}

export function Waterfall({ bars, colours }: WaterfallProps): View {
  const { theme } = useDashboard();
  const { box, width } = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const pointed = useSignal<string>("");
  const latest = useRef({ bars, colours });
  latest.current = { bars, colours };
  const paint = () => {
    if (canvas.current !== null && width.peek() > 0) draw(canvas.current, width.peek(), latest.current);
  };
  useSignalEffect(() => {
    if (width.value > 0 && theme.theme.value !== undefined) paint();
  });
  useLayoutEffect(paint, [bars]);
  const point = (event: PointerEvent) => {
    const at = Math.floor(((event.offsetY - 4) / (HEIGHT - AXIS - 4)) * bars.length);
    pointed.value = bars[at]?.title ?? "";
  };
  return html`<div ref=${box}>
    <canvas
      class="waterfall"
      ref=${canvas}
      role="img"
      aria-label=${`Waterfall of ${bars.length} assignments`}
      onPointerMove=${point}
      onPointerLeave=${() => (pointed.value = "")}
    ></canvas>
    <p class="small muted cut" style=${{ minHeight: "20px" }}>${pointed.value || "Point at a line to read it"}</p>
  </div>`;
}

function draw(canvas: HTMLCanvasElement, width: number, { bars, colours }: WaterfallProps): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(HEIGHT * ratio);
  const pen = canvas.getContext("2d");
  if (pen === null || bars.length === 0) return;
  pen.scale(ratio, ratio);
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string) => styles.getPropertyValue(name).trim();
  const [from, to] = rangeOf(bars);
  const x = (at: number) => (Math.max(0, at - from) / (to - from)) * (width - 8);
  const step = (HEIGHT - AXIS - 4) / bars.length;
  const thick = Math.min(12, Math.max(1, step * 0.72));

  pen.strokeStyle = colour("--line");
  pen.fillStyle = colour("--faint");
  pen.font = "11px system-ui, sans-serif";
  const { times, text } = roundTimes(from, to, Math.max(2, Math.floor(width / 120)));
  for (const at of times) {
    const line = x(at);
    const label = text(at);
    const half = pen.measureText(label).width / 2;
    pen.beginPath();
    pen.moveTo(line + 0.5, 0);
    pen.lineTo(line + 0.5, HEIGHT - AXIS);
    pen.stroke();
    pen.fillText(label, Math.min(Math.max(0, line - half), width - 2 * half), HEIGHT - 6);
  }
  for (const [at, bar] of bars.entries()) {
    const y = 4 + at * step;
    const base = colour(`--series-${colours.get(bar.group) ?? COLOURS}`);
    const end = x(bar.to);
    pen.fillStyle = base;
    pen.globalAlpha = 0.32;
    pen.fillRect(x(bar.from), y, Math.max(1, end - x(bar.from)), thick);
    pen.globalAlpha = 1;
    pen.fillRect(end, y, 6, thick);
  }
}

/** From half of the covered time before the first assignment on: a single long wait does not flatten the chart. */
function rangeOf(bars: readonly WaterfallBar[]): readonly [from: number, to: number] {
  const begin = bars.reduce((least, bar) => Math.min(least, bar.from), Number.POSITIVE_INFINITY);
  const firstEnd = bars.reduce((least, bar) => Math.min(least, bar.to), Number.POSITIVE_INFINITY);
  const end = bars.reduce((most, bar) => Math.max(most, bar.to), begin + 1);
  return [Math.max(begin, firstEnd - (end - firstEnd) / 2), end];
}
