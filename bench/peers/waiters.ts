// The tasks of a client that have not ended, by id.

export interface Waiters {
  /** @returns a new id, and a promise that resolves with `end(id)` */
  open(): { readonly id: string; readonly ended: Promise<void> };
  end(id: string): void;
}

/** @param prefix prefix of the ids, for servers that keep ids of earlier clients */
export function waiters(prefix = ""): Waiters {
  const waiting = new Map<string, () => void>();
  let made = 0;
  return {
    open: () => {
      made += 1;
      const id = prefix + made.toString(36);
      return { id, ended: new Promise<void>((resolve) => waiting.set(id, resolve)) };
    },
    end: (id) => {
      waiting.get(id)?.();
      waiting.delete(id);
    },
  };
}
