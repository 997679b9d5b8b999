// A table. Columns of lesser rank leave on narrower screens: `wide` below 1,080 px, `mid` below 760 px. A row is drawn
// again when it changed and the reader sees it, or comes to see it: 200 agents change each second, and 15 are visible.

import { useSignal } from "@preact/signals";
import { Component, createRef, h } from "preact";
import { useEffect, useMemo } from "preact/hooks";
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
  /** The same array each time, if the cells follow from the row alone: unchanged rows are then left as they are. */
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
  const sight = useMemo(() => new Sight(), []);
  useEffect(() => () => sight.end(), [sight]);
  const order = useSignal<Order | undefined>(undefined);
  const most = useSignal(ROWS);
  const sorted = sortedBy(rows, columns, order.value);
  const sort = (title: string) => {
    const now = order.peek();
    order.value = now?.title === title ? { title, isUp: !now.isUp } : { title, isUp: false };
  };
  const go = (address: string) => router.go(address);
  const direction = (title: string) => {
    if (order.value?.title !== title) return undefined;
    return order.value.isUp ? "ascending" : "descending";
  };
  return html`<div class="card table-card scroll-x">
    <table aria-label=${label} class=${rows.length > MANY ? "many" : ""}>
      <thead>
        <tr>
          ${columns.map(
            (
              column,
            ) => html`<th class=${classOf(column, columns)} aria-sort=${direction(column.title)} scope="col">
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
        ${sorted
          .slice(0, most.value)
          .map((row) => h(TableRow<Row>, { key: id(row), row, columns, sight, address: link?.(row), go }))}
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

interface TableRowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly sight: Sight;
  /** Address of the row's own page; undefined without one. */
  readonly address: string | undefined;
  readonly go: (address: string) => void;
}

class TableRow<Row> extends Component<TableRowProps<Row>> implements Seen {
  readonly #element = createRef<HTMLTableRowElement>();
  #isVisible = true;
  #isOutdated = false;

  override componentDidMount(): void {
    const { current } = this.#element;
    if (current !== null) this.props.sight.watch(current, this);
  }

  override componentWillUnmount(): void {
    const { current } = this.#element;
    if (current !== null) this.props.sight.forget(current);
  }

  override shouldComponentUpdate({ row, columns }: TableRowProps<Row>): boolean {
    if (columns !== this.props.columns) return true;
    if (row === this.props.row) return false;
    if (!this.#isVisible) this.#isOutdated = true;
    return this.#isVisible;
  }

  seen(isVisible: boolean): void {
    this.#isVisible = isVisible;
    if (!isVisible || !this.#isOutdated) return;
    this.#isOutdated = false;
    this.forceUpdate();
  }

  override render(): View {
    const { row, columns, address, go } = this.props;
    return html`<tr
      ref=${this.#element}
      class=${address === undefined ? "" : "link"}
      onClick=${(event: MouseEvent) => follow(event, address, go)}
    >
      ${columns.map((column) => html`<td class=${classOf(column, columns)}>${column.cell(row)}</td>`)}
    </tr>`;
  }
}

interface Seen {
  seen(isVisible: boolean): void;
}

/** Which rows the reader sees, or nearly sees. */
class Sight {
  readonly #seenBy = new WeakMap<Element, Seen>();
  readonly #observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) this.#seenBy.get(target)?.seen(isIntersecting);
    },
    { rootMargin: "120px" },
  );

  watch(element: Element, row: Seen): void {
    this.#seenBy.set(element, row);
    this.#observer.observe(element);
  }

  forget(element: Element): void {
    this.#observer.unobserve(element);
  }

  end(): void {
    this.#observer.disconnect();
  }
}

/** The last column that a narrower screen shows keeps the distance to the border. */
function classOf<Row>(column: Column<Row>, columns: readonly Column<Row>[]): string {
  const { rank, numeric } = column;
  const isLast = (isShown: (other: Column<Row>) => boolean) => columns.findLast(isShown) === column;
  return [
    rank ?? "",
    numeric ? "number" : "",
    isLast((other) => other.rank !== "wide") ? "last-mid" : "",
    isLast((other) => other.rank === undefined) ? "last-narrow" : "",
  ]
    .filter(Boolean)
    .join(" ");
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
