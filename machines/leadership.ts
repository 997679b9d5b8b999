// How a coordinator comes to lead and ceases to (docs/lifecycle.md), as a chart. Authoritative is the journal
// alone: the chart says what this process is doing about it. Timers, reads and appends are done by its owner,
// who sends the signals.
//
//   following ─SILENCE→ inspecting ─LOG_SHORT→ healing
//      ↑  ↑                │ LOG_WHOLE           │ HEALED
//      │  │ HEARD          ↓                     ↓
//      │  └──────────── campaigning ←────────────┘
//      │ REFUSED            │ WON
//      │                    ↓        REPLAYED
//      └─ LOST, DEPOSED ─ replaying ─────────→ leading ─ LOST, DEPOSED → following
//   any: HALT → halted

import { type SnapshotFrom, setup } from "xstate";

export type LeadershipSignal =
  /** No batch and no beat for T·(1 + jitter) on our own clock, while we were connected. */
  | { readonly type: "SILENCE" }
  /** Somebody leads, or is ahead of us: a new batch, or a beat with a higher {term, idx}. */
  | { readonly type: "HEARD" }
  /** The journal holds all that we hold. */
  | { readonly type: "LOG_WHOLE" }
  /** The journal ends before what we hold: it lost records. */
  | { readonly type: "LOG_SHORT" }
  /** What was lost is appended again, byte-identical. */
  | { readonly type: "HEALED" }
  /** Our `TermStarted` is stored. */
  | { readonly type: "WON" }
  /** Another record took the position. */
  | { readonly type: "REFUSED" }
  /** State is folded up to and with our own `TermStarted`. */
  | { readonly type: "REPLAYED" }
  /** The journal cannot be reached for too long. */
  | { readonly type: "LOST" }
  /** A record of a higher term stands in the journal. */
  | { readonly type: "DEPOSED" }
  /** The journal is damaged, or an invariant broke: nothing may be decided here any more. */
  | { readonly type: "HALT" };

const halts = { HALT: "halted" } as const;

export const leadershipMachine = setup({ types: { events: {} as LeadershipSignal } }).createMachine({
  id: "leadership",
  description:
    "A coordinator follows the journal until it hears nothing, then campaigns by appending to it; it leads once it has read its own record back.",
  initial: "following",
  states: {
    following: {
      description: "Folds the journal as another writes it.",
      on: { SILENCE: "inspecting", ...halts },
    },
    inspecting: {
      description: "Reads how far the journal goes.",
      on: { HEARD: "following", LOG_WHOLE: "campaigning", LOG_SHORT: "healing", LOST: "following", ...halts },
    },
    healing: {
      description: "Appends again what the journal lost.",
      on: { HEALED: "campaigning", HEARD: "following", REFUSED: "following", LOST: "following", ...halts },
    },
    campaigning: {
      description: "Appends `TermStarted` at the position it knows.",
      on: { WON: "replaying", HEARD: "following", REFUSED: "following", LOST: "following", ...halts },
    },
    replaying: {
      description: "Folds up to its own record: whatever else landed before it counts.",
      on: { REPLAYED: "leading", DEPOSED: "following", LOST: "following", ...halts },
    },
    leading: {
      description: "Decides, appends, and only then answers.",
      on: { DEPOSED: "following", LOST: "following", ...halts },
    },
    halted: {
      type: "final",
      description: "Answers nothing. Somebody must look at the journal.",
    },
  },
});

export type LeadershipSnapshot = SnapshotFrom<typeof leadershipMachine>;

/** Whether this coordinator decides. */
export function isLeading(snapshot: LeadershipSnapshot): boolean {
  return snapshot.matches("leading");
}
