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
    const first = box.current?.querySelector<HTMLElement>(
      "[autofocus], input, select, textarea, .primary, button",
    );
    first?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape") close();
    if (event.key === "Tab") keepInside(event, box.current);
  };
  return html`<div
    class="veil"
    onKeyDown=${keys}
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
  if (event.shiftKey && document.activeElement === first) {
    event.preventDefault();
    last?.focus();
  } else if (!event.shiftKey && document.activeElement === last) {
    event.preventDefault();
    first?.focus();
  }
}
