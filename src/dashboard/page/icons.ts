// The few icons, as strokes in the colour of their text.

import { html, type View } from "./ui/html.ts";

const paths: Readonly<Record<string, string>> = {
  overview: "M3 12h4l3-8 4 16 3-8h4",
  agents: "M12 3l7.5 4.5v9L12 21l-7.5-4.5v-9z M12 9v6 M9 12h6",
  tasks: "M4 6h2 M4 12h2 M4 18h2 M10 6h10 M10 12h10 M10 18h10",
  fairness: "M12 4v16 M7 20h10 M5 7h14 M5 7l-3 7h6z M19 7l-3 7h6z",
  resources: "M4 5h16v5H4z M4 14h16v5H4z M8 7.5h.01 M8 16.5h.01",
  budgets: "M12 3a9 9 0 1 0 9 9h-9z M15.5 3.7a9 9 0 0 1 4.8 4.8h-4.8z",
  events: "M5 4v16 M5 7h9 M5 12h14 M5 17h6",
  system:
    "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z M12 3v3 M12 18v3 M3 12h3 M18 12h3 M5.6 5.6l2.2 2.2 M16.2 16.2l2.2 2.2 M18.4 5.6l-2.2 2.2 M7.8 16.2l-2.2 2.2",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z M12 2v2 M12 20v2 M2 12h2 M20 12h2 M4.9 4.9l1.4 1.4 M17.7 17.7l1.4 1.4 M19.1 4.9l-1.4 1.4 M6.3 17.7l-1.4 1.4",
};

export function icon(name: string): View {
  return html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
    <path d=${paths[name] ?? ""}></path>
  </svg>`;
}
