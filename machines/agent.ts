// The agent as a chart: the session runs the chart (src/agent/session.ts), and the heartbeat reports the chart's state.
// The work of a state is an invoked actor. The actor starts and stops with the state, and the chart drops later signals
// of the actor. The session provides the actors and answers the guards. Load signals come at the limits (the first
// task, the last free slot), never for each task: see `loadSignals`. The chart counts nothing.
//
//   offline ─START→ alive: one incarnation, in a state of each region at once; LAPSED begins the next incarnation
//     membership   joining ─JOINED→ online          waiting ─SLOT_FREED→ returning
//     load         ready ⇄ busy { available ⇄ saturated }
//     intake       serving { open ⇄ drained } ─FINISH→ draining ─STOP→ stopping
//   alive ─draining or stopping, and nothing is left→ leaving ─LEFT, or too late→ closed
//   any: FENCED → fenced, FAILED → closed

import { and, assign, type EventObject, fromCallback, not, type SnapshotFrom, setup, stateIn } from "xstate";
import { limits } from "../src/limits.ts";

export type AgentSignal =
  /** The session begins. */
  | { readonly type: "START" }
  // Membership.
  /** A leader accepted the agent. */
  | { readonly type: "JOINED" }
  /** A handler of an earlier incarnation ended: a slot is free. */
  | { readonly type: "SLOT_FREED" }
  /** A leader gave the attempts of the incarnation away, or does not know the incarnation. */
  | { readonly type: "LAPSED"; readonly why: string }
  /** A second process joined under the id. */
  | { readonly type: "FENCED" }
  /** The agent cannot continue: the connection was closed, a leader refuses the agent, or an actor failed. */
  | { readonly type: "FAILED"; readonly error: unknown }
  // Load.
  /** From nothing in flight to something. */
  | { readonly type: "FIRST_TASK" }
  /** The last free slot was taken. */
  | { readonly type: "FULL" }
  /** A slot is free again, and others are not. */
  | { readonly type: "FREED" }
  /** Nothing is in flight any more. */
  | { readonly type: "IDLE" }
  // Intake.
  /** An operator drains the agent, or ends the drain. */
  | { readonly type: "DRAIN" }
  | { readonly type: "UNDRAIN" }
  /** The agent's program asks: take nothing new, finish, leave. */
  | { readonly type: "FINISH" }
  /** The agent's program asks: abort all attempts, leave. */
  | { readonly type: "STOP" }
  /** A leader confirmed a heartbeat of the draining agent. */
  | { readonly type: "DRAIN_HEARD" }
  /** The agent holds nothing, and no leader has confirmed the drain for long. */
  | { readonly type: "UNHEARD" }
  /** Every attempt has ended, and every result has an answer. */
  | { readonly type: "SETTLED" }
  /** A leader confirmed the departure. */
  | { readonly type: "LEFT" };

// Each actor sends signals to the chart while its state is active. Without a session, actors do nothing.
const actor = fromCallback<EventObject>(() => undefined);
const heartbeatActor = fromCallback<EventObject, { readonly isUrgent: boolean }>(() => undefined);
const nothing = () => undefined;

export const agentMachine = setup({
  types: {
    events: {} as AgentSignal,
    /** `error`: why the agent ended without a request of its program. */
    context: {} as { readonly error: unknown },
  },
  actors: {
    /** Watches the connection and answers questions for logs. FAILED when the connection is closed. */
    connection: actor,
    /** Listens to the leader's pushes. */
    pushes: actor,
    /** Aborts attempts before their leases could expire. */
    leases: actor,
    /** Asks to join until a leader answers: JOINED, or the signal for the refusal. */
    join: actor,
    /** Obeys requests that waited for the join, and asks for slots in the name of the incarnation. */
    service: actor,
    /** Sends heartbeats: DRAIN_HEARD, or the signal for a refusal. `isUrgent`: the first is sent at once. */
    heartbeat: heartbeatActor,
    /** Logs the reason why the drain waits, at each change. */
    drainLog: actor,
    /** Sends a heartbeat at once. UNHEARD when nothing has been held for `limits.agentDrainUnheardMs`. */
    announcement: actor,
    /** SETTLED as soon as nothing is held. */
    debts: actor,
    /** Asks to leave until a leader answers: LEFT. */
    goodbye: actor,
  },
  actions: {
    /** The old incarnation has ended. */
    nextIncarnation: nothing,
    /** Aborts all attempts, and forgets unanswered results. */
    endIncarnation: (_, _params: { readonly signal: AgentSignal }) => undefined,
    logWait: nothing,
    abortAttempts: nothing,
    reportTheRest: nothing,
    /** Tells a leader once, without waiting for an answer. */
    sayFarewell: nothing,
    logUnheard: nothing,
    keepError: assign({ error: (_, params: { readonly error: unknown }) => params.error }),
  },
  guards: {
    /** The handlers of all incarnations together leave a slot free. */
    hasFreeSlot: () => true,
    /** No attempt runs, and no result waits for an answer. */
    isSettled: () => true,
    /** No leader knows the agent, and nothing is left to settle. */
    isUnknown: and([not(stateIn("#online")), "isSettled"]),
  },
  delays: { stopGrace: limits.agentStopMs, leaveWait: limits.agentLeaveMs },
}).createMachine({
  id: "agent",
  description:
    "An agent takes tasks while it is online and its intake is open. A draining agent finishes its tasks and leaves.",
  context: { error: undefined },
  initial: "offline",
  invoke: { src: "connection" },
  on: {
    FENCED: { target: ".fenced", actions: "sayFarewell" },
    FAILED: {
      target: ".closed",
      actions: { type: "keepError", params: ({ event }) => ({ error: event.error }) },
    },
  },
  states: {
    offline: {
      description: "Has not begun to join.",
      on: { START: "alive" },
    },
    alive: {
      description: "One incarnation of the agent. Its attempts and unanswered results end with this state.",
      type: "parallel",
      exit: { type: "endIncarnation", params: ({ event }) => ({ signal: event }) },
      invoke: [{ src: "pushes" }, { src: "leases" }],
      on: {
        LAPSED: [
          { guard: "hasFreeSlot", target: "#agent.alive", reenter: true, actions: "nextIncarnation" },
          { target: ".membership.waiting", reenter: true, actions: "nextIncarnation" },
        ],
      },
      states: {
        membership: {
          description: "Whether a leader knows the agent.",
          initial: "joining",
          states: {
            joining: {
              description: "Asks to join until a leader answers.",
              invoke: { src: "join" },
              on: { JOINED: "online" },
            },
            online: {
              id: "online",
              tags: "online",
              description: "A leader knows the agent and hears its heartbeats.",
              invoke: [{ src: "service" }, { src: "heartbeat", input: { isUrgent: false } }],
            },
            waiting: {
              description: "Waits for a slot: handlers of earlier incarnations use all slots.",
              entry: "logWait",
              on: { SLOT_FREED: "returning" },
            },
            returning: {
              description:
                "Learns by a heartbeat whether a second process has joined under the id: FENCED if so, else LAPSED.",
              invoke: { src: "heartbeat", input: { isUrgent: true } },
            },
          },
        },
        load: {
          description: "Attempts in flight, before and after the join.",
          initial: "ready",
          states: {
            ready: {
              description: "Nothing in flight.",
              on: { FIRST_TASK: "busy" },
            },
            busy: {
              tags: "busy",
              description: "Something is in flight.",
              initial: "available",
              on: { IDLE: "ready" },
              states: {
                available: {
                  description: "Slots are free.",
                  on: { FULL: "saturated" },
                },
                saturated: {
                  tags: "saturated",
                  description: "Every slot is taken: the coordinator assigns nothing.",
                  on: { FREED: "available" },
                },
              },
            },
          },
        },
        intake: {
          description: "Whether the agent takes tasks.",
          initial: "serving",
          states: {
            serving: {
              description: "Stays in the swarm.",
              initial: "open",
              on: {
                FINISH: [
                  { guard: "isUnknown", target: "#agent.closed", actions: "sayFarewell" },
                  { target: "draining" },
                ],
                STOP: [
                  { guard: "isUnknown", target: "#agent.closed", actions: "sayFarewell" },
                  { target: "stopping" },
                ],
              },
              states: {
                open: {
                  description: "Takes tasks.",
                  on: { DRAIN: "drained" },
                },
                drained: {
                  tags: "draining",
                  description: "An operator drains the agent: it takes nothing new until the drain ends.",
                  on: { UNDRAIN: "open" },
                },
              },
            },
            draining: {
              tags: ["draining", "ending"],
              description: "Takes nothing new, finishes its tasks, and leaves.",
              initial: "unheard",
              invoke: { src: "drainLog" },
              on: { STOP: "stopping", LAPSED: "#agent.closed" },
              states: {
                unheard: {
                  description: "No leader knows yet: an assignment may be on its way.",
                  invoke: { src: "announcement" },
                  on: { DRAIN_HEARD: "heard", UNHEARD: "#agent.leaving" },
                },
                heard: {
                  description: "A leader knows: no assignment is on its way.",
                  invoke: { src: "debts" },
                  on: { SETTLED: "#agent.leaving" },
                },
              },
            },
            stopping: {
              tags: ["draining", "ending", "stopping"],
              description: "Aborts all attempts, reports their ends, and leaves.",
              initial: "aborting",
              entry: "abortAttempts",
              invoke: { src: "debts" },
              on: { SETTLED: "#agent.leaving", LAPSED: "#agent.closed" },
              states: {
                aborting: {
                  description: "Waits until the handlers end.",
                  after: { stopGrace: "reporting" },
                },
                reporting: {
                  description: "Has reported for handlers that did not end; waits for answers.",
                  entry: "reportTheRest",
                  after: { leaveWait: "#agent.leaving" },
                },
              },
            },
          },
        },
      },
    },
    leaving: {
      tags: "draining",
      description: "Holds nothing and takes nothing; tells a leader about the departure.",
      invoke: { src: "goodbye" },
      on: { LEFT: "closed" },
      after: { leaveWait: { target: "closed", actions: "logUnheard" } },
    },
    closed: { type: "final", description: "Ended, as asked or by an error." },
    fenced: {
      type: "final",
      description: "Ended: a second process has the id. The agent does not join again.",
    },
  },
});

export type AgentSnapshot = SnapshotFrom<typeof agentMachine>;
export type AgentStatus = "ready" | "busy" | "offline";

/** The status of an agent: the agent reports the status in heartbeats, and the coordinator derives the status from a
 *  row. */
export interface AgentStanding {
  /** `ready` has nothing in flight, `busy` has something, `offline` has not joined. */
  readonly status: AgentStatus;
  /** Every slot is taken. */
  readonly saturated: boolean;
  /** Takes nothing new. */
  readonly draining: boolean;
}

export function agentStanding(snapshot: AgentSnapshot): AgentStanding {
  const draining = snapshot.hasTag("draining");
  if (!snapshot.hasTag("online")) return { status: "offline", saturated: false, draining };
  const status = snapshot.hasTag("busy") ? "busy" : "ready";
  return { status, saturated: snapshot.hasTag("saturated"), draining };
}

/** The signals for a change of the attempts in flight; none between the limits. `capacity`: maximum concurrent attempts
 *  of the agent, at least 1. */
export function loadSignals(change: {
  readonly before: number;
  readonly after: number;
  readonly capacity: number;
}): readonly AgentSignal[] {
  const { before, after, capacity } = change;
  const wasFull = before >= capacity;
  const isFull = after >= capacity;
  if (after === 0) return before === 0 ? [] : [{ type: "IDLE" }];
  const signals: AgentSignal[] = [];
  if (before === 0) signals.push({ type: "FIRST_TASK" });
  if (!wasFull && isFull) signals.push({ type: "FULL" });
  if (wasFull && !isFull && before !== 0) signals.push({ type: "FREED" });
  return signals;
}
