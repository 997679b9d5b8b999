// A window above the page. Escape and a click outside close the window, and the focus returns.

import { useEffect, useRef } from "preact/hooks";
import { html, type View } from "./html.ts";

export interface DialogProps {
  readonly title: string;
  readonly note?: View;
  readonly close: () => void;
  readonly children: View;
  readonly kind?: "palette";
}

export function Dialog({ title, note, close, children, kind }: DialogProps): View {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current
      ?.querySelector<HTMLElement>("[autofocus], input, select, textarea, .primary, button")
      ?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  // On the window: a button that was disabled by a click has lost the focus, and keys arrive at the page.
  useEffect(() => {
    const keys = (event: KeyboardEvent) => {
      if (event.key === "Escape") close();
      if (event.key === "Tab") keepInside(event, box.current);
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [close]);
  return html`<div
    class="veil"
    onMouseDown=${(event: MouseEvent) => event.target === event.currentTarget && close()}
  >
    <div class=${`dialog ${kind ?? ""}`} role="dialog" aria-modal="true" aria-label=${title} ref=${box}>
      ${
        kind === undefined &&
        html`<header><h2>${title}</h2>${note !== undefined && html`<p>${note}</p>`}</header>`
      }
      ${children}
    </div>
  </div>`;
}

function keepInside(event: KeyboardEvent, box: HTMLElement | null): void {
  const stops = [
    ...(box?.querySelectorAll<HTMLElement>("a[href], button:not(:disabled), input, select, textarea") ?? []),
  ];
  const [first] = stops;
  const last = stops.at(-1);
  const { activeElement } = document;
  const isOutside = box?.contains(activeElement) !== true;
  if (event.shiftKey && (isOutside || activeElement === first)) {
    event.preventDefault();
    last?.focus();
  } else if (!event.shiftKey && (isOutside || activeElement === last)) {
    event.preventDefault();
    first?.focus();
  }
}
