// A table. Columns of lesser rank leave on narrower screens: `wide` below 1,080 px, `mid` below 760 px.

import { useSignal } from "@preact/signals";
import { useDashboard } from "../context.ts";
import { counted } from "../format.ts";
import { html, type View } from "./html.ts";

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => View;
  /** Sorting value; a click on the title sorts. */
  readonly by?: (row: Row) => number | string;
  readonly rank?: "wide" | "mid";
  readonly numeric?: boolean;
}

export interface TableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly id: (row: Row) => string;
  /** Address of the row's own page. */
  readonly link?: (row: Row) => string;
}

/** Rows at first, and more with each click. */
const ROWS = 60;
/** From here on, columns keep their widths: the browser then measures no cell when a text changes. */
const MANY = 60;

interface Order {
  readonly title: string;
  readonly isUp: boolean;
}

export function Table<Row>({ label, columns, rows, id, link }: TableProps<Row>): View {
  const { router } = useDashboard();
  const order = useSignal<Order | undefined>(undefined);
  const most = useSignal(ROWS);
  const sorted = sortedBy(rows, columns, order.value);
  const sort = (title: string) => {
    const now = order.peek();
    order.value = now?.title === title ? { title, isUp: !now.isUp } : { title, isUp: false };
  };
  const direction = (title: string) => {
    if (order.value?.title !== title) return undefined;
    return order.value.isUp ? "ascending" : "descending";
  };
  return html`<div class="card table-card scroll-x">
    <table aria-label=${label} class=${rows.length > MANY ? "many" : ""}>
      <thead>
        <tr>
          ${columns.map(
            (column) => html`<th class=${classOf(column)} aria-sort=${direction(column.title)} scope="col">
              ${
                column.by === undefined
                  ? column.title
                  : html`<button type="button" onClick=${() => sort(column.title)}>
                    ${column.title}${arrow(direction(column.title))}
                  </button>`
              }
            </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${sorted.slice(0, most.value).map(
          (row) => html`<tr
            key=${id(row)}
            class=${link === undefined ? "" : "link"}
            onClick=${(event: MouseEvent) => follow(event, link?.(row), (address) => router.go(address))}
          >
            ${columns.map((column) => html`<td class=${classOf(column)}>${column.cell(row)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
    ${
      sorted.length > most.value &&
      html`<button type="button" class="button quiet" onClick=${() => (most.value += ROWS)}>
        ${counted(sorted.length - most.value, "more row")}
      </button>`
    }
  </div>`;
}

function classOf<Row>({ rank, numeric }: Column<Row>): string {
  return [rank ?? "", numeric ? "number" : ""].join(" ").trim();
}

function arrow(direction: string | undefined): string {
  if (direction === undefined) return "";
  return direction === "ascending" ? " ↑" : " ↓";
}

/** A click on a link or a button of the row is not a click on the row. */
function follow(event: MouseEvent, address: string | undefined, go: (address: string) => void): void {
  if (address === undefined || (event.target as Element).closest("a, button, input") !== null) return;
  go(address);
}

function sortedBy<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order | undefined,
): readonly Row[] {
  const by = columns.find(({ title }) => title === order?.title)?.by;
  if (order === undefined || by === undefined) return rows;
  const sign = order.isUp ? 1 : -1;
  return [...rows].sort((one, other) => sign * compared(by(one), by(other)));
}

function compared(one: number | string, other: number | string): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other));
}
