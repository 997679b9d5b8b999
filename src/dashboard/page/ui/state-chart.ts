// A state chart: a box per state, nested boxes for regions, arrows with signals, and the number of tasks, agents or
// slots in each state. Signals of outer states are listed below the drawing.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ChartView } from "../../wire.ts";
import { whole } from "../format.ts";
import type { ChartLayout, PlacedState } from "./chart-layout.ts";
import { html, type View } from "./html.ts";
import { loading } from "./states.ts";

/** A wide chart shrinks to this part of its size, and is then scrolled: smaller letters are hard to read. */
const SCALE_MIN = 0.85;

export function StateChart({ chart }: { readonly chart: ChartView }): View {
  const layout = useSignal<ChartLayout | undefined>(undefined);
  const shape = JSON.stringify([chart.states.map(({ name }) => name), chart.edges]);
  // The counts of a chart change, and the shape does not.
  useEffect(() => {
    void import("./chart-layout.ts").then(({ layoutOf }) => {
      layout.value = layoutOf(chart);
    });
  }, [shape]);
  const sight = useRef<HTMLDivElement>(null);
  const placed = layout.value;
  // A narrow screen begins with the initial state, not with the left edge.
  useEffect(() => {
    const { current } = sight;
    const first = placed?.states.find(({ name }) => name === chart.states.find(isBeginning)?.name);
    if (current === null || placed === undefined || first === undefined) return;
    current.scrollLeft = (first.x / placed.width) * current.scrollWidth - current.clientWidth / 2;
  }, [placed]);
  if (placed === undefined) return loading("Drawing the chart");
  const counts = new Map(chart.states.map(({ name, count }) => [name, count]));
  const tip = `tip-${chart.id}`;
  return html`
    <div class="scroll-x" tabindex="0" role="group" aria-label=${`${chart.title}, drawn`} ref=${sight}>
    <svg style=${{ minWidth: `${Math.round(placed.width * SCALE_MIN)}px` }} width=${placed.width} height=${placed.height} viewBox=${`0 0 ${placed.width} ${placed.height}`} role="img" aria-label=${chart.title} preserveAspectRatio="xMidYMid meet">
      <defs>
        <marker id=${tip} width=${placed.width} height=${placed.height} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
          <path class="tip" d="M0 0 8 4 0 8z"></path>
        </marker>
      </defs>
      ${placed.states.filter(({ isGroup }) => isGroup).map((state) => box(state, counts.get(state.name)))}
      ${placed.edges.map(({ path }, at) => html`<path key=${at} class="edge" d=${path} marker-end=${`url(#${tip})`}></path>`)}
      ${placed.edges.map(
        ({ label, x, y }, at) => html`<g key=${`label ${at}`} class="signal">
          ${label.map((line, row) => html`<text x=${x} y=${y + row * 12 - (label.length - 1) * 6} text-anchor="middle">${line}</text>`)}
        </g>`,
      )}
      ${placed.states.filter(({ isGroup }) => !isGroup).map((state) => box(state, counts.get(state.name)))}
    </svg>
    </div>
    ${
      placed.outer.length > 0 &&
      html`<ul class="small muted">
        ${placed.outer.map((line) => html`<li key=${line}>${line}</li>`)}
      </ul>`
    }
  `;
}

/** True for the initial state of the whole chart, not of a part of it. */
function isBeginning({ isInitial, parent }: ChartView["states"][number]): boolean {
  return isInitial && parent === undefined;
}

function box(
  { name, title, x, y, width, height, isGroup, isFinal }: PlacedState,
  count: number | undefined,
): View {
  const isNow = count !== undefined && count > 0;
  return html`<g key=${name}>
    <rect
      class=${`${isGroup ? "group" : "state"} ${isNow ? "now" : ""}`}
      x=${x - width / 2}
      y=${y - height / 2}
      width=${width}
      height=${height}
      rx=${isFinal ? height / 2 : 8}
    ></rect>
    ${
      isGroup
        ? html`<text x=${x - width / 2 + 10} y=${y - height / 2 + 16}>${title}${isNow ? ` (${whole(count)})` : ""}</text>`
        : html`<text class="name" x=${x} y=${y + (count === undefined ? 4 : -2)} text-anchor="middle">${title}</text>
            ${count !== undefined && html`<text class=${isNow ? "amount" : ""} x=${x} y=${y + 13} text-anchor="middle">${whole(count)}</text>`}`
    }
  </g>`;
}
