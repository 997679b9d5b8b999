// The life of an agent as a chart. It runs in the agent's process, is what the heartbeat reports, and is
// mirrored by the coordinator. It gets signals on edges (the first task, the last free place), not for each
// task; `loadSignals` says which. What an agent holds in its hands is not here: the chart counts nothing.
//
//                     FIRST_TASK               FULL
//   offline ─JOINED→ ready ────→ busy.available ────→ busy.saturated
//      ↑               ↑ ←─IDLE──── busy ↑ ←───FREED────── │
//      │             DRAIN, UNDRAIN lead to the same place in draining and back:
//      │                draining.idle    draining.available    draining.saturated
//      └── LEFT, LAPSED, FENCED from anywhere

import { type SnapshotFrom, setup } from "xstate";

export type AgentSignal =
  /** The leader accepted it; what it still held is told by `loadSignals` after this. */
  | { readonly type: "JOINED" }
  /** From nothing in flight to something. */
  | { readonly type: "FIRST_TASK" }
  /** The last place was taken. */
  | { readonly type: "FULL" }
  /** A place is free again, and others are not. */
  | { readonly type: "FREED" }
  /** Nothing is in flight any more. */
  | { readonly type: "IDLE" }
  | { readonly type: "DRAIN" }
  | { readonly type: "UNDRAIN" }
  /** It said goodbye. */
  | { readonly type: "LEFT" }
  /** Nothing was heard from it for too long, or its attempts were given away. */
  | { readonly type: "LAPSED" }
  /** Another process joined under its id. */
  | { readonly type: "FENCED" };

const endsOfLife = {
  LEFT: "#agent.offline",
  LAPSED: "#agent.offline",
  FENCED: "#agent.offline",
} as const;

export const agentMachine = setup({ types: { events: {} as AgentSignal } }).createMachine({
  id: "agent",
  description:
    "An agent takes tasks while it is ready or available. Draining, it finishes what it has and takes nothing new.",
  initial: "offline",
  states: {
    offline: {
      description: "Not joined: before its first join, and after it left, lapsed or was fenced.",
      on: { JOINED: "ready" },
    },
    ready: {
      description: "Joined, nothing in flight.",
      on: { FIRST_TASK: "busy", DRAIN: "draining", ...endsOfLife },
    },
    busy: {
      description: "Something is in flight.",
      initial: "available",
      on: { IDLE: "ready", ...endsOfLife },
      states: {
        available: {
          description: "Places are free.",
          on: { FULL: "saturated", DRAIN: "#agent.draining.available" },
        },
        saturated: {
          description: "Every place is taken: nothing is assigned to it.",
          on: { FREED: "available", DRAIN: "#agent.draining.saturated" },
        },
      },
    },
    draining: {
      description: "Takes nothing new. What was on its way when it began to drain is still run.",
      initial: "idle",
      on: endsOfLife,
      states: {
        idle: {
          description: "Nothing in flight.",
          on: { FIRST_TASK: "available", UNDRAIN: "#agent.ready" },
        },
        available: {
          description: "Finishing; places are free and stay free.",
          on: { FULL: "saturated", IDLE: "idle", UNDRAIN: "#agent.busy.available" },
        },
        saturated: {
          description: "Finishing; every place is taken.",
          on: { FREED: "available", IDLE: "idle", UNDRAIN: "#agent.busy.saturated" },
        },
      },
    },
  },
});

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;
export type AgentStatus = "ready" | "busy" | "offline";

/** What the heartbeat says: `ready` has nothing in flight, `busy` has something. Draining is told apart by
 *  `isDraining`. */
export function agentStatus(snapshot: AgentSnapshot): AgentStatus {
  if (snapshot.matches("offline")) return "offline";
  return snapshot.matches("ready") || snapshot.matches({ draining: "idle" }) ? "ready" : "busy";
}

export function isDraining(snapshot: AgentSnapshot): boolean {
  return snapshot.matches("draining");
}

/** The chart's state for people, as a path: `busy.saturated`. Not for programs. */
export function describeAgent(snapshot: AgentSnapshot): string {
  const { value } = snapshot;
  return typeof value === "string" ? value : Object.entries(value).flat().join(".");
}

/** The signals for a change of what is in flight; none when no edge is crossed. `places` is how many attempts
 *  the agent has room for, at least 1. */
export function loadSignals(change: {
  readonly before: number;
  readonly after: number;
  readonly places: number;
}): readonly AgentSignal[] {
  const { before, after, places } = change;
  const wasFull = before >= places;
  const isFull = after >= places;
  if (after === 0) return before === 0 ? [] : [{ type: "IDLE" }];
  const signals: AgentSignal[] = [];
  if (before === 0) signals.push({ type: "FIRST_TASK" });
  if (!wasFull && isFull) signals.push({ type: "FULL" });
  if (wasFull && !isFull && before !== 0) signals.push({ type: "FREED" });
  return signals;
}
