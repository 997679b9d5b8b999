// Each part of the coordinator's chart does something: without the part, a scenario fails, which runs the product.

import { describe } from "vitest";
import { coordinatorMachine } from "../../machines/coordinator.ts";
import { coordinatorScenarios } from "./coordinator-scenarios.ts";
import { everyPartIsNeeded } from "./mutants.ts";

describe("the coordinator, by its chart", () => {
  everyPartIsNeeded(coordinatorMachine, coordinatorScenarios, {
    "starts alone, and leads at once": [
      "restoring: restore",
      "restoring ─restore done [isAlone]→ takingLead",
      "takingLead: takeLead",
      "takingLead ─takeLead done [hasWon]→ leading",
      "leading: lead",
    ],
    "starts beside a leader, and reads what the leader writes": [
      "restoring ─restore done→ following",
      "following: follow",
    ],
    "takes the lead when the leader is silent": ["following ─follow done→ takingLead"],
    "lets the first of two standbys lead, and follows": ["takingLead ─takeLead done→ following"],
    "halts when it cannot reach the journal at its start": [
      "restoring ─restore failed→ #coordinator.halted",
      "restoring ─restore failed→ #coordinator.halted / keepError",
    ],
    "halts when the journal continues differently from its log": [
      "following ─follow failed→ #coordinator.halted",
      "following ─follow failed→ #coordinator.halted / keepError",
    ],
    "halts when the journal is damaged as it takes the lead": [
      "takingLead ─takeLead failed→ #coordinator.halted",
      "takingLead ─takeLead failed→ #coordinator.halted / keepError",
    ],
    "halts when its term cannot begin": [
      "leading ─lead failed→ #coordinator.halted",
      "leading ─lead failed→ #coordinator.halted / keepError",
    ],
    "leads, and halts when the list of segments is damaged": [
      "leading ─HALT→ #coordinator.halted",
      "leading ─HALT→ #coordinator.halted / keepError",
    ],
    "is deposed, reads the journal again, and follows": ["leading ─DEPOSED→ restoring"],
    "stops while it reads the journal": ["restoring ─STOP→ stopped"],
    "stops while it follows": ["following ─STOP→ stopped"],
    "stops while it takes the lead": ["takingLead ─STOP→ stopped"],
    "leads, stops, and leaves the lead to a standby at once": [
      "leading ─ENDED→ stopped",
      "leading.deciding ─STOP→ handingOver",
      "leading.handingOver / endTerm",
    ],
    "hands over as an operator asks, and follows": [
      "leading ─HANDED_OVER→ following",
      "leading.deciding ─STEP_DOWN→ steppingDown",
      "leading.steppingDown / endTerm",
    ],
    "stops within limits.handOverMs of a journal that does not answer": [
      "leading.handingOver ─handOver→ #coordinator.stopped",
    ],
    "stops at once when it is asked a second time": ["leading.handingOver ─STOP→ #coordinator.stopped"],
    "stops, and is deposed meanwhile": ["leading.handingOver ─DEPOSED→ #coordinator.stopped"],
    "hands over, and is asked to stop meanwhile": [
      "leading.handingOver ─HANDED_OVER→ #coordinator.stopped",
      "leading.steppingDown ─STOP→ handingOver",
    ],
  });
});
