// Which rows fit a message. The server refuses a message above its limit.

/** As many rows, from the first, as fit so many bytes of JSON; the others are not even made. */
export function rowsWithin<Row>(
  rows: Iterable<Row>,
  bytesMax: number,
): { readonly rows: Row[]; readonly bytes: number } {
  const fitting: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    const rowBytes = Buffer.byteLength(JSON.stringify(row)) + 1;
    if (bytes + rowBytes > bytesMax) break;
    bytes += rowBytes;
    fitting.push(row);
  }
  return { rows: fitting, bytes };
}

/** Items with their rows: all items if all fit so many bytes of JSON, else items of the highest rank, highest
 *  first. */
export function mostWithin<Item, Row>(
  items: Iterable<Item>,
  {
    bytesMax,
    rowOf,
    rankOf,
  }: {
    readonly bytesMax: number;
    readonly rowOf: (item: Item) => Row;
    readonly rankOf: (item: Item) => number;
  },
): { readonly item: Item; readonly row: Row }[] {
  const all = [...items];
  const within = (some: readonly Item[]) => {
    const { rows } = rowsWithin(made(some, rowOf), bytesMax);
    return rows.map((row, at) => ({ item: some[at] as Item, row }));
  };
  const fitting = within(all);
  if (fitting.length === all.length) return fitting;
  return within(highest(all, rankOf, RANKED_PER_ROW * fitting.length + 1));
}

/** Items ranked per row that fitted: rows differ in size. */
const RANKED_PER_ROW = 4;

function* made<Item, Row>(items: readonly Item[], rowOf: (item: Item) => Row): Generator<Row> {
  for (const item of items) yield rowOf(item);
}

/** The items of the highest rank, highest first, in their order at equal rank. One pass over all items. */
function highest<Item>(items: readonly Item[], rankOf: (item: Item) => number, count: number): Item[] {
  const kept: { readonly item: Item; readonly rank: number }[] = [];
  let floor = Number.NEGATIVE_INFINITY;
  const cut = () => {
    kept.sort((one, other) => other.rank - one.rank);
    kept.length = Math.min(kept.length, count);
    if (kept.length === count) floor = kept[count - 1]?.rank ?? floor;
  };
  for (const item of items) {
    const rank = rankOf(item);
    if (rank > floor) kept.push({ item, rank });
    if (kept.length >= 2 * count) cut();
  }
  cut();
  return kept.map(({ item }) => item);
}
