// Stretches of time as bars in rows: the slots of an agent, the attempts of a task.

import { clockTime, duration } from "../format.ts";
import { html, type View } from "./html.ts";
import { roundStep, roundTimes } from "./ticks.ts";
import { useWidth } from "./width.ts";

export interface Span {
  readonly from: number;
  readonly to: number;
  readonly tone: "accent" | "idle" | "good" | "warn" | "bad";
  /** Read aloud, and shown by the pointer. */
  readonly title: string;
  readonly link?: string;
  readonly text?: string;
}

export interface SpanRow {
  readonly label: string;
  readonly spans: readonly Span[];
}

export interface SpansProps {
  readonly label: string;
  readonly rows: readonly SpanRow[];
  /** Instants at both ends, ms since the epoch. */
  readonly from: number;
  readonly to: number;
  /** The axis shows times of day, or the time since `from`. */
  readonly axis: "clock" | "since";
}

const ROW = 26;
const BAR = 16;
const AXIS = 24;
const PIXELS_A_LETTER = 6.6;

export function Spans({ label, rows, from, to, axis }: SpansProps): View {
  const { box, width } = useWidth<HTMLDivElement>();
  const wide = Math.max(240, width.value);
  const left = wide < 520 ? 84 : 148;
  const long = Math.max(1, to - from);
  const x = (at: number) => left + ((Math.min(to, Math.max(from, at)) - from) / long) * (wide - left - 8);
  const height = rows.length * ROW + AXIS;
  const ticks = ticksOf(from, to, { most: Math.max(2, Math.floor((wide - left) / 110)), axis });
  const letters = Math.floor((left - 12) / PIXELS_A_LETTER);
  return html`<div ref=${box}>
    <svg class="spans" width=${wide} height=${height} viewBox=${`0 0 ${wide} ${height}`} role="img" aria-label=${label}>
      ${ticks.map(
        (at) => html`<g key=${at}>
          <line class="grid" x1=${x(at)} x2=${x(at)} y1="0" y2=${height - AXIS + 4}></line>
          ${tickLabel(axis === "clock" ? clockTime(at) : duration(at - from), { x: x(at), y: height - 5, right: wide })}
        </g>`,
      )}
      ${rows.map(({ label: name, spans }, at) => {
        const y = at * ROW + (ROW - BAR) / 2;
        return html`<g key=${`${at} ${name}`}>
          <text class="label" x="0" y=${y + 12}>${cut(name, letters)}<title>${name}</title></text>
          ${spans.map((span) => drawn(span, { x, y, right: wide }))}
        </g>`;
      })}
    </svg>
  </div>`;
}

/** Below its line, but never beyond the right end. */
function tickLabel(
  text: string,
  { x, y, right }: { readonly x: number; readonly y: number; readonly right: number },
): View {
  const isAtEnd = x + (text.length * PIXELS_A_LETTER) / 2 > right;
  return html`<text x=${isAtEnd ? right : x} y=${y} text-anchor=${isAtEnd ? "end" : "middle"}>${text}</text>`;
}

interface Place {
  readonly x: (at: number) => number;
  readonly y: number;
  /** Right end of the drawing. */
  readonly right: number;
}

/** The text stands right of the bar or, without room, inside or left of the bar. */
function drawn({ from, to, tone, title, link, text = "" }: Span, { x, y, right }: Place): View {
  const [start, end] = [x(from), x(to)];
  const width = Math.max(2, end - start);
  const rect = html`<rect class=${tone} x=${start} y=${y} width=${width} height=${BAR} rx="3"><title>${title}</title></rect>`;
  const long = text.length * PIXELS_A_LETTER;
  const [at, anchor, inside] =
    end + long + 8 < right
      ? ([end + 6, "start", ""] as const)
      : width > long + 12
        ? ([end - 6, "end", `inside ${tone}`] as const)
        : ([start - 6, "end", ""] as const);
  const after =
    text !== "" && html`<text class=${inside} x=${at} y=${y + 12} text-anchor=${anchor}>${text}</text>`;
  return link === undefined ? html`${rect}${after}` : html`<a href=${link}>${rect}</a>${after}`;
}

function cut(text: string, letters: number): string {
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}

/** Round times of day, or round distances from the beginning. */
function ticksOf(
  from: number,
  to: number,
  { most, axis }: { most: number; axis: SpansProps["axis"] },
): readonly number[] {
  if (axis === "clock") return roundTimes(from, to, most).times;
  const step = Math.max(1, roundStep(to - from, most));
  const ticks: number[] = [];
  for (let at = from + step; at < to; at += step) ticks.push(at);
  return ticks;
}
