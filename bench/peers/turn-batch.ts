// Collects what a program does in one turn of its event loop, as a careful user of a bulk API would.

/** @returns adds an item; `send` gets the items of a turn at its end */
export function batchPerTurn<T>(send: (items: readonly T[]) => void): (item: T) => void {
  let items: T[] = [];
  return (item) => {
    if (items.length === 0)
      setImmediate(() => {
        const taken = items;
        items = [];
        send(taken);
      });
    items.push(item);
  };
}
