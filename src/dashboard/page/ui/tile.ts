// A figure with a name and a link to the list behind the figure.

import { html, type View } from "./html.ts";

export function tile({
  label,
  value,
  sub,
  to,
  tone = "",
}: {
  readonly label: string;
  readonly value: string;
  readonly sub?: string;
  readonly to?: string;
  readonly tone?: string;
}): View {
  const body = html`<span class="label">${label}</span><span class=${`value ${tone}`}>${value}</span>
    <span class="sub">${sub ?? ""}</span>`;
  return to === undefined
    ? html`<div class="tile">${body}</div>`
    : html`<a class="tile" href=${to}>${body}</a>`;
}
