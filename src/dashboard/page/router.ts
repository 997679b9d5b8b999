// The page's address: a path and filters, so each view has a link: `/tasks?kind=ocr&state=failed`. The server
// answers every path with the same page.

import { type ReadonlySignal, signal } from "@preact/signals";

export interface Route {
  /** Parts of the path, decoded: `["tasks", "acme", "t1"]`. Empty for the overview. */
  readonly path: readonly string[];
  readonly filters: Filters;
}

/** Absent or empty: no condition. */
export type Filters = Readonly<Record<string, string | undefined>>;

export class Router {
  readonly #route = signal<Route>(read(location));

  constructor() {
    addEventListener("popstate", () => this.#follow());
    document.addEventListener("click", (event) => {
      const address = ownAddress(event);
      if (address === undefined) return;
      event.preventDefault();
      this.go(address);
    });
  }

  get route(): ReadonlySignal<Route> {
    return this.#route;
  }

  /** Opens a view; the back button returns to the present view. @param address from `href` */
  go(address: string): void {
    history.pushState(null, "", address);
    this.#follow();
    scrollTo(0, 0);
  }

  /** Changes filters of the present view, without an entry in the history for each keystroke. */
  filter(change: Filters): void {
    const { path, filters } = this.#route.peek();
    history.replaceState(null, "", href(path, { ...filters, ...change }));
    this.#follow();
  }

  #follow(): void {
    this.#route.value = read(location);
  }
}

/** The address of a view. */
export function href(path: readonly string[], filters: Filters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value) query.set(name, value);
  const text = query.toString();
  return `/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function read({ pathname, search }: Location): Route {
  return {
    path: pathname.split("/").filter(Boolean).map(decoded),
    filters: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** A part with an invalid encoding is taken literally. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a clicked link of the dashboard; undefined for all other clicks. */
function ownAddress(event: MouseEvent): string | undefined {
  if (event.defaultPrevented || event.button !== 0) return undefined;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  const address = link?.getAttribute("href");
  return address?.startsWith("/") && !link?.hasAttribute("target") ? address : undefined;
}
