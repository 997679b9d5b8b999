// Random histories: after any commands, in any order, right or wrong, the invariants hold after every turn. No accepted
// task is lost or ends twice, whatever settings change. Replaying the batches gives the same state (promises P1, P2,
// P13).

import fc from "fast-check";
import { expect, it } from "vitest";
import { refOfKey, taskKey } from "../../src/ids.ts";
import type { EventType } from "../../src/state/event.ts";
import { refOf } from "../../src/state/task-rows.ts";
import { describeState, fingerprint } from "../support/fingerprint.ts";
import { history, Model, type Wish } from "../support/random-history.ts";

const eventTypes: readonly EventType[] = [
  "TermStarted",
  "TermRenewed",
  "TaskSubmitted",
  "TaskReleased",
  "TaskAssigned",
  "TaskCompleted",
  "AttemptFailed",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
  "AttemptReleased",
  "TokensCharged",
  "AgentJoined",
  "AssignmentsConfirmed",
  "AgentLeft",
  "AgentDrained",
  "TaskRetried",
  "AgentUndrained",
  "AgentUnresponsive",
  "AgentResponsive",
  "AgentSuspended",
  "AgentForgotten",
  "HoldPlaced",
  "HoldElapsed",
  "HoldEnded",
  "TasksRefused",
  "AuditTrimmed",
  "PolicyChanged",
  "ProjectConfigured",
  "ProjectRemoved",
  "KindConfigured",
  "ResourceConfigured",
  "ResourceRemoved",
  "RateConfigured",
  "RateRemoved",
  "GrantConfigured",
  "GrantRemoved",
  "ProjectPaused",
  "ProjectResumed",
  "SwarmPaused",
  "SwarmResumed",
];

interface Wanted {
  isExperienced: boolean;
  turns: { wishes: Wish[]; passMs: number }[];
}

/** An agent's refusal places a hold, and an operator ends the hold in the same turn: the agent gets the task again. */
const heldAndUnheld: Wanted = {
  isExperienced: false,
  turns: [
    { wishes: [{ what: "submit", pick: 0, detail: 425, number: 0 }], passMs: 0 },
    { wishes: [{ what: "join", pick: 14, detail: 0, number: 0 }], passMs: 0 },
    {
      wishes: [
        { what: "result", pick: 0, detail: 303, number: 7 },
        { what: "set", pick: 21, detail: 558, number: 0 },
      ],
      passMs: 0,
    },
    { wishes: [], passMs: 0 },
  ],
};

/** The whole swarm is paused, and resumed: rarely drawn. */
const pausedAndResumed: Wanted = {
  isExperienced: false,
  turns: [
    { wishes: [{ what: "set", pick: 8, detail: 0, number: 0 }], passMs: 0 },
    { wishes: [{ what: "set", pick: 11, detail: 0, number: 0 }], passMs: 0 },
  ],
};

/** A project is configured, and removed while it has no live tasks: rarely drawn. */
const projectRemoved: Wanted = {
  isExperienced: false,
  turns: [
    { wishes: [{ what: "set", pick: 3, detail: 0, number: 1 }], passMs: 0 },
    { wishes: [{ what: "set", pick: 4, detail: 0, number: 0 }], passMs: 0 },
  ],
};

/** A group's grant is set, and removed: rarely drawn. */
const grantRemoved: Wanted = {
  isExperienced: false,
  turns: [
    { wishes: [{ what: "set", pick: 10, detail: 0, number: 1 }], passMs: 0 },
    { wishes: [{ what: "set", pick: 10, detail: 0, number: 0 }], passMs: 0 },
  ],
};

/** A task is revoked at an agent that never confirms, forgotten, and submitted again under its id. */
const forgottenAndSubmittedAgain: Wanted = {
  isExperienced: false,
  turns: [
    {
      wishes: [
        { what: "join", pick: 27, detail: 826, number: 0 },
        { what: "submit", pick: 7, detail: 0, number: 0 },
        { what: "submit", pick: 0, detail: 388, number: 0 },
      ],
      passMs: 0,
    },
    { wishes: [], passMs: 50 },
    { wishes: [{ what: "result", pick: 0, detail: 439, number: 2 }], passMs: 90_000_000 },
    { wishes: [{ what: "submit", pick: 7, detail: 496, number: 0 }], passMs: 0 },
    { wishes: [{ what: "join", pick: 11, detail: 0, number: 0 }], passMs: 0 },
    { wishes: [], passMs: 0 },
  ],
};

/** Some 5 s on an idle machine, and many times as long on a busy one. */
const historiesMs = 120_000;

it(
  "every history leaves the invariants whole, loses no task, and replays to the same state",
  () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(history, ({ isExperienced, turns: wanted }) => {
        const model = new Model();
        if (isExperienced) model.learn();
        model.run(wanted);
        const { turns, accepted } = model;
        for (const key of accepted) {
          const ref = refOfKey(key);
          const isLive = turns.state.taskById.has(ref);
          // The horizon forgets tasks that ended more than a day ago, and their ids may come again.
          const endings = turns.effects.filter(
            (effect) => effect.kind === "ended" && taskKey(effect) === key,
          );
          const rounds = [...turns.all("TaskSubmitted"), ...turns.all("TaskRetried")].filter(
            ({ task }) => taskKey(refOf(task)) === key,
          );
          expect(endings).toHaveLength(rounds.length - (isLive ? 1 : 0));
        }
        const replayed = turns.replayed().state;
        if (fingerprint(replayed) !== fingerprint(turns.state))
          expect(describeState(replayed)).toEqual(describeState(turns.state));
        for (const { type } of turns.events) seen.set(type, (seen.get(type) ?? 0) + 1);
      }),
      {
        numRuns: 1_500,
        examples: [
          [forgottenAndSubmittedAgain],
          [projectRemoved],
          [grantRemoved],
          [heldAndUnheld],
          [pausedAndResumed],
        ],
      },
    );
    // The histories covered everything, except rare events and the shell's decisions.
    expect(eventTypes.filter((type) => !seen.has(type))).toEqual([]);
  },
  historiesMs,
);
