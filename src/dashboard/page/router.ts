// The page's address: a path and filters behind `#`, so that each view can be linked, and the server needs one page only.
// `#/tasks?kind=ocr&state=failed`.

import { type ReadonlySignal, signal } from "@preact/signals";

export interface Route {
  /** Parts of the path, decoded: `["tasks", "acme", "t1"]`. Empty for the overview. */
  readonly path: readonly string[];
  readonly filters: Filters;
}

/** Absent or empty: no condition. */
export type Filters = Readonly<Record<string, string | undefined>>;

export class Router {
  readonly #route = signal<Route>(read(location.hash));

  constructor() {
    addEventListener("hashchange", () => {
      this.#route.value = read(location.hash);
    });
  }

  get route(): ReadonlySignal<Route> {
    return this.#route;
  }

  /** Opens a view; the back button returns to the present one. */
  open(path: readonly string[], filters: Filters = {}): void {
    location.hash = href(path, filters);
  }

  /** Changes filters of the present view, without an entry in the history for each keystroke. */
  filter(change: Filters): void {
    const { path, filters } = this.#route.peek();
    const hash = href(path, { ...filters, ...change });
    history.replaceState(null, "", hash);
    this.#route.value = read(hash);
  }
}

/** The address of a view. */
export function href(path: readonly string[], filters: Filters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function read(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    filters: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** A part that is no valid encoding stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
