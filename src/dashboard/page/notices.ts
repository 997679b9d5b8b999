// Short notices about results of actions, at the corner of the page.

import { type ReadonlySignal, signal } from "@preact/signals";
import { NOTICE_MS } from "./bounds.ts";

export interface Notice {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

export class Notices {
  readonly #shown = signal<readonly Notice[]>([]);
  #last = 0;

  get shown(): ReadonlySignal<readonly Notice[]> {
    return this.#shown;
  }

  say(text: string, { isBad = false }: { readonly isBad?: boolean } = {}): void {
    this.#last += 1;
    const notice = { id: this.#last, text, isBad };
    this.#shown.value = [...this.#shown.peek(), notice];
    // A failure stays until dismissed.
    if (!isBad) setTimeout(() => this.dismiss(notice.id), NOTICE_MS);
  }

  dismiss(id: number): void {
    this.#shown.value = this.#shown.peek().filter((notice) => notice.id !== id);
  }
}
