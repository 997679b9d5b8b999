// The charts of tasks, slots, agents and coordinators as the page draws them, from the same definitions that run.

import type { AnyStateMachine, AnyStateNode } from "xstate";
import { agentMachine } from "../../../machines/agent.ts";
import { coordinatorMachine } from "../../../machines/coordinator.ts";
import { slotMachine } from "../../../machines/slot.ts";
import { taskMachine } from "../../../machines/task.ts";
import { defined } from "../../defined.ts";
import type { StatusResponse } from "../../protocol/schemas.ts";
import type { ChartView } from "../wire.ts";

type Counts = Readonly<Record<string, number>>;

/** With the number of tasks, slots, agents and coordinators in each state now. */
export function chartViews(status: StatusResponse): readonly ChartView[] {
  const online = status.agents.filter((agent) => agent.status !== "offline");
  const ofAgents: Counts = {
    offline: status.agents.length - online.length,
    "alive.membership.online": online.length,
    "alive.load.ready": online.filter((agent) => agent.status === "ready").length,
    "alive.load.busy.available": online.filter((agent) => agent.status === "busy" && !agent.saturated).length,
    "alive.load.busy.saturated": online.filter((agent) => agent.status === "busy" && agent.saturated).length,
    "alive.intake.serving.open": online.filter((agent) => !agent.draining).length,
    "alive.intake.serving.drained": online.filter((agent) => agent.draining).length,
  };
  const held = status.resources.reduce((sum, { inUse }) => sum + inUse, 0);
  const waiting = status.resources.reduce((sum, row) => sum + row.waiting, 0);
  const isLed = status.stale !== true && status.leader !== "";
  const ofCoordinators: Counts = { leading: isLed ? 1 : 0, following: status.standbys?.length ?? 0 };
  return [
    chartView(taskMachine, "Task", { ...status.tasks, deadLettered: status.tasks["dead-lettered"] ?? 0 }),
    chartView(slotMachine, "Slot lease", { held, waiting }),
    chartView(agentMachine, "Agent", ofAgents),
    chartView(coordinatorMachine, "Coordinator", ofCoordinators),
  ];
}

function chartView(machine: AnyStateMachine, title: string, counts: Counts): ChartView {
  const states = descendants(machine.root);
  return {
    id: machine.id,
    title,
    states: states.map((state) => ({
      name: nameOf(state),
      ...defined({
        parent:
          state.parent === undefined || state.parent === machine.root ? undefined : nameOf(state.parent),
        count: counts[nameOf(state)],
      }),
      isInitial: isInitial(state),
      isFinal: state.type === "final",
      isParallel: state.type === "parallel",
    })),
    edges: [machine.root, ...states].flatMap(edgesOf),
  };
}

function isInitial(state: AnyStateNode): boolean {
  const { parent } = state;
  if (parent === undefined) return false;
  return parent.type === "parallel" || (parent.type === "compound" && parent.initial.target.includes(state));
}

/** Signals alone: ends of actors and times are named so by the charts' own library. */
function edgesOf(state: AnyStateNode): ChartView["edges"] {
  return [...state.transitions.values()].flat().flatMap(({ eventType, target }) =>
    (target ?? []).map((to) => ({
      from: nameOf(state),
      to: nameOf(to),
      event: eventType.replace(/^xstate\.(done|error|after)\..*$/, "$1"),
    })),
  );
}

function descendants(state: AnyStateNode): AnyStateNode[] {
  return Object.values<AnyStateNode>(state.states).flatMap((child) => [child, ...descendants(child)]);
}

/** `any` for the chart as a whole. */
function nameOf(state: AnyStateNode): string {
  return state.path.length === 0 ? "any" : state.path.join(".");
}
