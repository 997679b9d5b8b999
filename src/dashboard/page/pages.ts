// The pages and their addresses.

import { h } from "preact";
import { AgentPage } from "./pages/agent.ts";
import { AgentsPage } from "./pages/agents.ts";
import { BudgetsPage } from "./pages/budgets.ts";
import { EventsPage } from "./pages/events.ts";
import { FairnessPage } from "./pages/fairness.ts";
import { OverviewPage } from "./pages/overview.ts";
import { ResourcesPage } from "./pages/resources.ts";
import { SystemPage } from "./pages/system.ts";
import { TaskDetailPage } from "./pages/task.ts";
import { TasksPage } from "./pages/tasks.ts";
import { html, type View } from "./ui/html.ts";
import { empty, head } from "./ui/states.ts";

export interface Page {
  /** First part of the address; empty for the overview. */
  readonly id: string;
  readonly title: string;
  /** After `g`. */
  readonly shortcut: string;
}

export const pages: readonly Page[] = [
  { id: "", title: "Overview", shortcut: "o" },
  { id: "agents", title: "Agents", shortcut: "a" },
  { id: "tasks", title: "Tasks", shortcut: "t" },
  { id: "fairness", title: "Fairness", shortcut: "f" },
  { id: "resources", title: "Resources", shortcut: "r" },
  { id: "budgets", title: "Budgets", shortcut: "b" },
  { id: "events", title: "Events", shortcut: "e" },
  { id: "system", title: "System", shortcut: "s" },
];

export function pageOf([place = "", second, third]: readonly string[]): View {
  if (place === "agents" && second !== undefined) return h(AgentPage, { id: second });
  if (place === "tasks" && second !== undefined && third !== undefined)
    return h(TaskDetailPage, { project: second, id: third });
  switch (place) {
    case "":
      return h(OverviewPage, null);
    case "agents":
      return h(AgentsPage, null);
    case "tasks":
      return h(TasksPage, null);
    case "fairness":
      return h(FairnessPage, null);
    case "resources":
      return h(ResourcesPage, null);
    case "budgets":
      return h(BudgetsPage, null);
    case "events":
      return h(EventsPage, null);
    case "system":
      return h(SystemPage, null);
    default:
      return html`${head({ title: "No such page" })}
        <div class="card">${empty({ title: `There is no page /${place}`, text: "The navigation lists all pages." })}</div>`;
  }
}
