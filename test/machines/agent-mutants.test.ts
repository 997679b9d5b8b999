// Each part of the agent's chart does something: without the part, a scenario fails, which runs the product.

import { describe } from "vitest";
import { agentMachine } from "../../machines/agent.ts";
import { agentScenarios } from "./agent-scenarios.ts";
import { everyPartIsNeeded } from "./mutants.ts";

describe("the agent's session, by its chart", () => {
  everyPartIsNeeded(agentMachine, agentScenarios, {
    "joins, and reports each edge of its load": [
      "offline ─START→ alive",
      "alive: pushes",
      "alive.membership.joining: join",
      "alive.membership.joining ─JOINED→ online",
      "alive.membership.online #online",
      "alive.membership.online: heartbeat",
      "alive.load.ready ─FIRST_TASK→ busy",
      "alive.load.busy #busy",
      "alive.load.busy ─IDLE→ ready",
      "alive.load.busy.available ─FULL→ saturated",
      "alive.load.busy.saturated #saturated",
      "alive.load.busy.saturated ─FREED→ available",
    ],
    "asks for slots and obeys what waited, once it has joined": ["alive.membership.online: service"],
    "aborts what runs before its lease could expire": ["alive: leases"],
    "fails when its connection is closed": [
      "any: connection",
      "any ─FAILED→ .closed",
      "any ─FAILED→ .closed / keepError",
    ],
    "is fenced, says farewell, and aborts what runs": [
      "any ─FENCED→ .fenced",
      "any ─FENCED→ .fenced / sayFarewell",
      "alive / endIncarnation",
    ],
    "lapses with a free slot, and joins as a new incarnation at once": [
      "alive ─LAPSED [hasFreeSlot]→ #agent.alive",
      "alive ─LAPSED [hasFreeSlot]→ #agent.alive / nextIncarnation",
    ],
    "lapses with no free slot, and asks by a heartbeat before it joins": [
      "alive ─LAPSED→ .membership.waiting",
      "alive ─LAPSED→ .membership.waiting / nextIncarnation",
      "alive.membership.waiting / logWait",
      "alive.membership.waiting ─SLOT_FREED→ returning",
      "alive.membership.returning: heartbeat",
    ],
    "is drained by an operator, and serves again": [
      "alive.intake.serving.open ─DRAIN→ drained",
      "alive.intake.serving.drained #draining",
      "alive.intake.serving.drained ─UNDRAIN→ open",
    ],
    "drains before it has joined: says farewell and ends": [
      "alive.intake.serving ─FINISH [isUnknown]→ #agent.closed",
      "alive.intake.serving ─FINISH [isUnknown]→ #agent.closed / sayFarewell",
    ],
    "stops before it has joined: says farewell and ends": [
      "alive.intake.serving ─STOP [isUnknown]→ #agent.closed",
      "alive.intake.serving ─STOP [isUnknown]→ #agent.closed / sayFarewell",
    ],
    "drains: tells at once, finishes, leaves": [
      "alive.intake.serving ─FINISH→ draining",
      "alive.intake.draining #draining",
      "alive.intake.draining #ending",
      "alive.intake.draining: drainLog",
      "alive.intake.draining.unheard: announcement",
      "alive.intake.draining.unheard ─DRAIN_HEARD→ heard",
      "alive.intake.draining.heard: debts",
      "alive.intake.draining.heard ─SETTLED→ #agent.leaving",
    ],
    "drains with no leader: leaves unheard, and says so": [
      "alive.intake.draining.unheard ─UNHEARD→ #agent.leaving",
      "leaving #draining",
      "leaving ─leaveWait→ closed",
      "leaving ─leaveWait→ closed / logUnheard",
    ],
    "drains, lapses, and ends": ["alive.intake.draining ─LAPSED→ #agent.closed"],
    "drains, and is stopped": ["alive.intake.draining ─STOP→ stopping"],
    "stops: aborts, and leaves when its handlers have ended": [
      "alive.intake.serving ─STOP→ stopping",
      "alive.intake.stopping #draining",
      "alive.intake.stopping / abortAttempts",
      "alive.intake.stopping: debts",
      "alive.intake.stopping ─SETTLED→ #agent.leaving",
      "leaving: goodbye",
      "leaving ─LEFT→ closed",
    ],
    "stops: says so in its heartbeats, and gives back what still comes": [
      "alive.intake.stopping #ending",
      "alive.intake.stopping #stopping",
    ],
    "stops, lapses, and ends": ["alive.intake.stopping ─LAPSED→ #agent.closed"],
    "stops, and reports for handlers that do not end": [
      "alive.intake.stopping.aborting ─stopGrace→ reporting",
      "alive.intake.stopping.reporting / reportTheRest",
    ],
    "stops, and leaves though its reports are not answered": [
      "alive.intake.stopping.reporting ─leaveWait→ #agent.leaving",
    ],
  });
});
