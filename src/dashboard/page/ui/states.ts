// In place of a list: loading, nothing, or an error, each with a distinct look.

import { h } from "preact";
import { Command } from "./command.ts";
import { html, type View } from "./html.ts";

export function loading(label = "Loading"): View {
  return html`<div class="skeleton" role="status" aria-label=${label}><i></i><i></i><i></i><i></i></div>`;
}

export interface Empty {
  readonly title: string;
  readonly text?: string;
  /** The command to change the state. */
  readonly command?: string;
}

export function empty({ title, text, command }: Empty): View {
  return html`<div class="empty">
    <strong>${title}</strong>
    ${text !== undefined && html`<p>${text}</p>`}
    ${command !== undefined && h(Command, { text: command })}
  </div>`;
}

export function failure(message: string, retry?: () => void): View {
  return html`<div class="empty" role="alert">
    <strong class="bad-text">This could not be read</strong>
    <p>${message}</p>
    ${retry !== undefined && html`<p><button class="button" onClick=${retry}>Try again</button></p>`}
  </div>`;
}

/** A page whose address is wrong. */
export function refusedView(title: string, message: string): View {
  return html`${head({ title })}<div class="card">${failure(message)}</div>`;
}

/** A section with a head. */
export function section(
  { title, note, side }: { readonly title: string; readonly note?: View; readonly side?: View },
  body: View,
): View {
  return html`<section class="section">
    <div class="section-head">
      <h2>${title}</h2>
      ${note !== undefined && html`<p>${note}</p>`}
      ${side !== undefined && html`<span class="grow"></span>${side}`}
    </div>
    ${body}
  </section>`;
}

/** The head of a page. */
export function head({
  title,
  note,
  crumb,
  side,
}: {
  readonly title: View;
  readonly note?: View;
  readonly crumb?: View;
  readonly side?: View;
}): View {
  return html`<header class="head">
    <div>
      ${crumb !== undefined && html`<div class="crumb">${crumb}</div>`}
      <h1>${title}</h1>
      ${note !== undefined && html`<p>${note}</p>`}
    </div>
    ${side !== undefined && html`<div class="row">${side}</div>`}
  </header>`;
}

/** A choice, as a row of buttons. */
export function segments<Value extends string>(
  label: string,
  values: readonly (readonly [value: Value, text: string])[],
  chosen: Value,
  choose: (value: Value) => void,
): View {
  return html`<div class="segments" role="group" aria-label=${label}>
    ${values.map(
      ([value, text]) =>
        html`<button aria-pressed=${String(value === chosen)} onClick=${() => choose(value)}>${text}</button>`,
    )}
  </div>`;
}
