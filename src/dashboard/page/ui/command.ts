// A command for a terminal, with a button to copy the command.

import { useSignal } from "@preact/signals";
import { COPIED_MS } from "../bounds.ts";
import { html, type View } from "./html.ts";

export function Command({ text }: { readonly text: string }): View {
  const said = useSignal("Copy");
  const copy = async () => {
    said.value = (await copied(text)) ? "Copied" : "Select it";
    setTimeout(() => {
      said.value = "Copy";
    }, COPIED_MS);
  };
  return html`<span class="command">
    <code title=${text}>${text}</code>
    <button type="button" aria-label=${`Copy ${text}`} onClick=${copy}>${said}</button>
  </span>`;
}

/** @returns false where the browser refuses */
export async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // No permission, or a page without a secure context: the text can be selected.
  }
}
