// Objects for every view, made once by main.ts.

import type { Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "../wire.ts";
import type { Api } from "./api.ts";
import type { Live } from "./live.ts";
import type { Notices } from "./notices.ts";
import type { Router } from "./router.ts";
import type { ThemeChoice } from "./theme.ts";

export interface Dashboard {
  readonly session: Session;
  readonly api: Api;
  readonly live: Live;
  readonly router: Router;
  readonly theme: ThemeChoice;
  readonly notices: Notices;
  /** The window above the page, if any: the search, a form, a question. */
  readonly overlay: Signal<Overlay | undefined>;
}

/** Draws the window, which `close` ends. */
export type Overlay = (close: () => void) => unknown;

export const DashboardContext = createContext<Dashboard | undefined>(undefined);

export function useDashboard(): Dashboard {
  const dashboard = useContext(DashboardContext);
  if (dashboard === undefined) throw new Error("the view stands outside the dashboard");
  return dashboard;
}
