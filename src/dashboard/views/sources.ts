// What each live view shows, put together from the parts of the dashboard.

import type { Swarm } from "../../client/swarm.ts";
import type { ActivityBook } from "../activity-book.ts";
import type { EventTap } from "../event-tap.ts";
import type { HistoryRing } from "../history.ts";
import type { EventFilter, LiveQuery } from "../requests.ts";
import type { SwarmWatch } from "../swarm-watch.ts";
import { type TaskDeps, TaskFollower, taskNow, waitOf } from "../task-follower.ts";
import type { TopicSource } from "../topic.ts";
import type { LiveView, LiveViews, System } from "../wire.ts";
import { agentsView, agentView } from "./agents.ts";
import { budgetsView } from "./budgets.ts";
import { EventTail, eventsState } from "./events.ts";
import { fairnessView } from "./fairness.ts";
import { overviewView } from "./overview.ts";
import { resourcesView } from "./resources.ts";
import { systemView } from "./system.ts";
import { taskCountsView } from "./tasks.ts";

export interface ViewsDeps {
  readonly swarm: Pick<Swarm, "explainSlots" | "taskPage">;
  readonly watch: SwarmWatch;
  readonly book: ActivityBook;
  readonly tap: EventTap;
  readonly history: HistoryRing;
  readonly tasks: TaskDeps;
  readonly broker: () => System["broker"];
  readonly dashboard: () => System["dashboard"];
}

/** A view whose subject is not named, or is an agent. */
type PlainView = Exclude<LiveView, "task" | "events">;

export class Views {
  readonly #deps: ViewsDeps;

  constructor(deps: ViewsDeps) {
    this.#deps = deps;
  }

  /** The present data of a view. @param asked.mayBeOld accept the last status while nobody answers
   *  @throws WaggleError WAGGLE_UNKNOWN_AGENT; NoLeaderError, UnreachableError */
  async now<View extends PlainView>(
    view: View,
    { id = "", mayBeOld = false }: { readonly id?: string; readonly mayBeOld?: boolean } = {},
  ): Promise<LiveViews[View]> {
    const { swarm, watch, book, history, tasks, broker, dashboard } = this.#deps;
    const status = await watch.whole({ mayBeOld });
    book.forget(status.at);
    const data: { readonly [Each in PlainView]: () => LiveViews[Each] | Promise<LiveViews[Each]> } = {
      overview: () => overviewView(status, { book, history }),
      agents: () => agentsView(status, book),
      agent: () => agentView(status, book, id),
      tasks: () => taskCountsView(status),
      fairness: async () => fairnessView(status, await watch.settings(), book),
      resources: () => resourcesView(status, book, swarm),
      budgets: () => budgetsView(status, { swarm, waitOf: (task) => waitOf(tasks, task) }),
      system: async () =>
        systemView({ status, settings: await watch.settings(), broker: broker(), dashboard: dashboard() }),
    };
    return await data[view]();
  }

  /** @throws as `taskNow` */
  async task(task: string, project: string | undefined) {
    return await taskNow(this.#deps.tasks, { task, project });
  }

  sourceOf({ view, subject }: LiveQuery): TopicSource {
    const { tap, watch } = this.#deps;
    const idx = () => Math.max(tap.lastIdx, watch.status?.idx ?? 0);
    switch (view) {
      case "task":
        return this.#taskSource(subject as { readonly id: string; readonly project: string });
      case "events":
        return this.#eventsSource(subject as EventFilter);
      default: {
        const { id = "" } = subject as { readonly id?: string };
        let hasBegun = false;
        const compute = () => {
          const mayBeOld = hasBegun || watch.lost !== undefined; // a viewer begins with the present
          hasBegun = true;
          return this.now(view, { id, mayBeOld });
        };
        return { idx, compute };
      }
    }
  }

  #taskSource({ id, project }: { readonly id: string; readonly project: string }): TopicSource {
    const follower = new TaskFollower({ ...this.#deps.tasks, tap: this.#deps.tap }, { task: id, project });
    return {
      idx: () => follower.lastIdx,
      compute: () => follower.compute(),
      onChange: (listener) => follower.onChange(listener),
      close: () => follower.close(),
    };
  }

  #eventsSource(filter: EventFilter): TopicSource {
    const { watch, tap } = this.#deps;
    const tail = new EventTail(tap, filter);
    return {
      idx: () => tap.lastIdx,
      compute: async () => eventsState(await watch.whole({ mayBeOld: true }), tap, filter),
      takeRows: () => tail.take(),
      rowsSince: (idx) => tail.since(idx),
      close: () => tail.close(),
    };
  }
}
