// The frame of every page: navigation, search, connection, theme, notices, and the window above the page.

import { Component, type ComponentChildren, h } from "preact";
import { useEffect } from "preact/hooks";
import type { Session } from "../wire.ts";
import { type Dashboard, useDashboard } from "./context.ts";
import { clockTime } from "./format.ts";
import { icon } from "./icons.ts";
import type { Connection, Lost } from "./live.ts";
import { pageOf, pages } from "./pages.ts";
import { href } from "./router.ts";
import { openSearch } from "./search.ts";
import { Command } from "./ui/command.ts";
import { html, type View } from "./ui/html.ts";
import { failure } from "./ui/states.ts";

export function Shell(): View {
  const dashboard = useDashboard();
  const { router, session, live } = dashboard;
  const { path } = router.route.value;
  const place = path[0] ?? "";
  useEffect(() => listenToKeys(dashboard), [dashboard]);
  useEffect(() => {
    // On a narrow screen the navigation is a scrolling strip.
    const chosen = document.querySelector(".nav [aria-current]");
    chosen?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [place]);
  useEffect(() => {
    const name = pages.find(({ id }) => id === place)?.title ?? "Waggle";
    document.title = `${[...path.slice(1).reverse(), name].join(" · ")} – ${session.swarm}`;
  }, [path, place, session]);
  const { lost } = live;
  return html`<div class="frame">
    <aside class="side">
      <a class="brand" href="/"><img src="/assets/icon.svg" alt="" /><span>Waggle<small>${session.swarm}</small></span></a>
      <nav class="nav" aria-label="Pages">
        ${pages.map(
          ({
            id,
            title,
          }) => html`<a key=${id} href=${href(id === "" ? [] : [id])} aria-current=${id === place ? "page" : undefined}>
            ${icon(id === "" ? "overview" : id)}${title}
          </a>`,
        )}
      </nav>
      <p class="side-foot">Waggle ${session.version}${mayChange(session) ? "" : ", read-only"}</p>
    </aside>
    <div class="page">
      <header class="top">
        <button type="button" class="search-button" aria-label="Search" onClick=${() => openSearch(dashboard)}>Search <kbd>/</kbd></button>
        <span class="grow"></span>
        ${h(LinkState, null)} ${h(ThemeButton, null)}
      </header>
      ${lost.value !== undefined && banner(lost.value, () => live.retryNow())}
      <main class="main" id="main">${h(Guard, { key: path.join("/"), children: pageOf(path) })}</main>
    </div>
    ${h(Notes, null)} ${h(OverlayView, null)}
  </div>`;
}

/** Whether any change from the page can succeed. */
function mayChange({ isReadOnly, verbs, refusals }: Session): boolean {
  return !isReadOnly && verbs.some((verb) => refusals[verb] === undefined);
}

const lostWords: Readonly<Record<Lost["what"], string>> = {
  leader: "No leader answers.",
  server: "The broker is gone.",
  dashboard: "The dashboard's server is gone.",
  session: "The dashboard was started again, with another token.",
};

function banner({ what, message, next, sinceAt }: Lost, retry: () => void): View {
  const isSession = what === "session";
  const advice = isSession
    ? "Open the link that the newest start printed, in any tab: this page then goes on"
    : message.replace(/\.?$/, "");
  return html`<div class="banner bad row" role="alert" data-lost=${what}>
    <span>${lostWords[what]} ${advice}. The figures are those of ${clockTime(sinceAt)}.</span>
    ${!isSession && h(Command, { text: next })}
    ${(what === "dashboard" || isSession) && html`<button type="button" class="button" onClick=${retry}>Try now</button>`}
  </div>`;
}

const linkWords: Readonly<Record<Connection, readonly [word: string, tone: string]>> = {
  connecting: ["Connecting", "warn"],
  live: ["Live", "good"],
  hidden: ["Paused", ""],
  lost: ["Reconnecting", "bad"],
};

function LinkState(): View {
  const { live } = useDashboard();
  const isLost = live.lost.value !== undefined && live.connection.value === "live";
  const [word, tone] = isLost ? ["No leader", "bad"] : linkWords[live.connection.value];
  return html`<span class=${`link-state ${live.connection.value}`} role="status"><i class=${`dot ${tone}`}></i>${word}</span>`;
}

function ThemeButton(): View {
  const { theme } = useDashboard();
  const other = theme.theme.value === "dark" ? "light" : "dark";
  return html`<button type="button" class="icon-button" aria-label=${`Use the ${other} theme`} title=${`Use the ${other} theme`} onClick=${() => theme.toggle()}>
    ${icon(other === "dark" ? "moon" : "sun")}
  </button>`;
}

function Notes(): View {
  const { notices } = useDashboard();
  return html`<div class="toasts" role="status" aria-live="polite">
    ${notices.shown.value.map(
      ({ id, text, isBad }) => html`<div class=${`toast ${isBad ? "bad" : ""}`} key=${id}>
        <span>${text}</span><button type="button" aria-label="Dismiss" onClick=${() => notices.dismiss(id)}>✕</button>
      </div>`,
    )}
  </div>`;
}

function OverlayView(): View {
  const { overlay } = useDashboard();
  const draw = overlay.value;
  return draw === undefined ? null : (draw(() => (overlay.value = undefined)) as View);
}

/** `/` searches; `g` and the first letter of a page open the page. */
function listenToKeys(dashboard: Dashboard): () => void {
  const last = { key: "" };
  const keys = (event: KeyboardEvent) => {
    const { target, key } = event;
    const isTyping =
      target instanceof Element && target.closest("input, textarea, select, [role=dialog]") !== null;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = last.key === "g" ? pages.find(({ shortcut }) => shortcut === key) : undefined;
    last.key = key;
    if (key === "/") {
      event.preventDefault();
      openSearch(dashboard);
    } else if (page !== undefined) dashboard.router.go(href(page.id === "" ? [] : [page.id]));
  };
  addEventListener("keydown", keys);
  return () => removeEventListener("keydown", keys);
}

interface GuardProps {
  readonly children: ComponentChildren;
}

/** An error in a page leaves the rest of the dashboard usable. */
class Guard extends Component<GuardProps, { readonly error?: Error }> {
  override state: { readonly error?: Error } = {};

  static override getDerivedStateFromError(error: Error): { readonly error: Error } {
    return { error };
  }

  override render(): ComponentChildren {
    const { error } = this.state;
    return error === undefined
      ? this.props.children
      : failure(`This page could not be drawn: ${error.message}`, () => location.reload());
  }
}
