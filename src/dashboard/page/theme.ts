// Light or dark: the system's choice, until a reader chooses. The choice is kept in the browser.

import { type ReadonlySignal, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "waggle-theme";

export class ThemeChoice {
  readonly #theme = signal<Theme>("light");

  constructor() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const kept = readKept();
    this.#set(kept ?? (dark.matches ? "dark" : "light"));
    dark.addEventListener("change", () => {
      if (readKept() === undefined) this.#set(dark.matches ? "dark" : "light");
    });
  }

  get theme(): ReadonlySignal<Theme> {
    return this.#theme;
  }

  toggle(): void {
    const next = this.#theme.peek() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // A browser without storage forgets the choice with the page.
    }
    this.#set(next);
  }

  #set(theme: Theme): void {
    document.documentElement.dataset["theme"] = theme;
    this.#theme.value = theme;
  }
}

function readKept(): Theme | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : undefined;
  } catch {
    return undefined; // Storage is off: the system's choice applies.
  }
}
