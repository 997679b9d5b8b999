// The colour of a word. A colour only repeats the word.

import { html, type View } from "./html.ts";

export type Tone = "good" | "warn" | "bad" | "idle" | "accent";

const toneOfTask: Readonly<Record<string, Tone>> = {
  queued: "idle",
  delayed: "idle",
  assigned: "accent",
  running: "accent",
  completed: "good",
  failed: "bad",
  "dead-lettered": "bad",
  cancelled: "warn",
  expired: "warn",
};

export function taskTone(state: string): Tone {
  return toneOfTask[state] ?? "idle";
}

export function badge(text: string, tone: Tone, title?: string): View {
  return html`<span class=${`badge tone-${tone}`} title=${title}>${text}</span>`;
}

export function plainBadge(text: string, tone: Tone = "idle"): View {
  return html`<span class=${`badge plain tone-${tone}`}>${text}</span>`;
}

export function taskBadge(state: string): View {
  return badge(state, taskTone(state));
}

/** A bar of shares of a whole. @param parts `share` in [0, 1]; together at most 1 */
export function bar(
  parts: readonly { readonly share: number; readonly tone?: Tone | "soft" }[],
  label: string,
): View {
  return html`<div class="bar" role="img" aria-label=${label} title=${label}>
    ${parts.map(
      ({ share, tone = "accent" }) =>
        html`<i class=${tone} style=${{ width: `${Math.min(100, Math.max(0, share * 100))}%` }}></i>`,
    )}
  </div>`;
}
