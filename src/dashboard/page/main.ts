// Starts the page in the browser: reads the session, makes the shared objects, and draws the shell.

import { signal } from "@preact/signals";
import { h, render } from "preact";
import { Api, readSession } from "./api.ts";
import { type Dashboard, DashboardContext, type Overlay } from "./context.ts";
import { Live } from "./live.ts";
import { Notices } from "./notices.ts";
import { Router } from "./router.ts";
import { Shell } from "./shell.ts";
import { ThemeChoice } from "./theme.ts";
import { html } from "./ui/html.ts";

const root = document.getElementById("app");
if (root !== null) void start(root);

async function start(into: HTMLElement): Promise<void> {
  const theme = new ThemeChoice();
  try {
    const session = await readSession();
    const dashboard: Dashboard = {
      session,
      api: new Api(session),
      live: new Live(),
      router: new Router(),
      theme,
      notices: new Notices(),
      overlay: signal<Overlay | undefined>(undefined),
    };
    into.replaceChildren();
    render(h(DashboardContext.Provider, { value: dashboard, children: h(Shell as () => null, null) }), into);
  } catch (error) {
    into.replaceChildren();
    render(html`<p class="boot" role="alert">${(error as Error).message}</p>` as never, into);
  }
}
