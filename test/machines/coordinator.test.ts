// The coordinator's chart: every edge.

import { it } from "vitest";
import { coordinatorMachine } from "../../machines/coordinator.ts";
import { type SignalTable, walkEveryEdge } from "./walk.ts";

const types = ["READY", "ELECTED", "DEPOSED", "STOP", "HANDED_OVER", "HALT"] as const;
const signals: SignalTable<typeof coordinatorMachine> = Object.fromEntries(
  types.map((type) => [type, { type }]),
);

it("the coordinator's chart goes where the table says and nowhere else", () => {
  walkEveryEdge(coordinatorMachine, signals, {
    starting: { READY: "standingBy", STOP: "stopped", HALT: "halted" },
    standingBy: { ELECTED: "leading", STOP: "stopped", HALT: "halted" },
    leading: { DEPOSED: "standingBy", STOP: "handingOver", HALT: "halted" },
    handingOver: { HANDED_OVER: "stopped", DEPOSED: "stopped", STOP: "stopped", HALT: "halted" },
    stopped: {},
    halted: {},
  });
});
