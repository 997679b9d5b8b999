// A list of equally high rows. Only visible rows are drawn, so ten thousand rows cost as much as thirty.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { SPARE_ROWS } from "../bounds.ts";
import { html, type View } from "./html.ts";

export interface VirtualListProps<Row> {
  readonly label: string;
  readonly rows: readonly Row[];
  readonly rowPixels: number;
  /** Maximum height of the list; more rows scroll. */
  readonly pixelsMax: number;
  /** An element with the `style`. @param place among the drawn rows, from 0 */
  readonly draw: (row: Row, style: Placement, place: number) => View;
  /** Called when the last rows are near. */
  readonly more?: () => void;
}

export interface Placement {
  readonly top: string;
  readonly height: string;
}

export function VirtualList<Row>(props: VirtualListProps<Row>): View {
  const { label, rows, rowPixels, pixelsMax, draw, more } = props;
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const height = Math.min(pixelsMax, rows.length * rowPixels);
  const first = Math.max(0, Math.floor(top.value / rowPixels) - SPARE_ROWS);
  const last = Math.min(rows.length, Math.ceil((top.value + height) / rowPixels) + SPARE_ROWS);

  const isNearEnd = last >= rows.length - SPARE_ROWS;
  useLayoutEffect(() => {
    if (isNearEnd) more?.();
  }, [isNearEnd, rows.length, more]);

  return html`<div
    class="vlist"
    role="list"
    aria-label=${label}
    tabindex="0"
    ref=${box}
    style=${{ height: `${height}px` }}
    onScroll=${() => {
      top.value = box.current?.scrollTop ?? 0;
    }}
  >
    <div class="vlist-space" style=${{ height: `${rows.length * rowPixels}px` }}>
      ${rows
        .slice(first, last)
        .map((row, place) =>
          draw(row, { top: `${(first + place) * rowPixels}px`, height: `${rowPixels}px` }, place),
        )}
    </div>
  </div>`;
}
