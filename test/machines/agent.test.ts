// The agent's chart and the coordinator's row give the same status after any signals. Also: the signals for a change of
// load. The proof that the chart is the program is agent-mutants.test.ts.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getInitialSnapshot, getNextSnapshot } from "xstate";
import { type AgentSignal, agentMachine, agentStanding, loadSignals } from "../../machines/agent.ts";
import type { AgentRow } from "../../src/state/state.ts";
import { standingOf } from "../../src/views/status-rows.ts";

const slots = 3;
/** Load by the number of attempts in flight, else a signal. */
const step = fc.oneof(
  fc.nat(slots + 1),
  fc.constantFrom<AgentSignal>(
    { type: "JOINED" },
    { type: "DRAIN" },
    { type: "UNDRAIN" },
    { type: "FINISH" },
    { type: "STOP" },
    { type: "DRAIN_HEARD" },
    { type: "LAPSED", why: "walked" },
  ),
);

describe("the agent's chart", () => {
  it("gives the same status of an agent as the coordinator's row", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const chart = new Chart();
        let row = { online: false, isOwnDrain: false, draining: false, inFlight: 0 };
        for (const each of steps) {
          if (typeof each === "number") {
            chart.sendAll(loadSignals({ before: row.inFlight, after: each, capacity: slots }));
            row.inFlight = each;
          } else {
            if (chart.isOverBy(each)) continue;
            chart.sendAll([each]);
            row = rowAfter(row, each);
          }
          const expected = standingOf(rowOf(row));
          expect({ ...chart.standing, ...(row.online ? {} : { draining: false }) }).toEqual(expected);
        }
      }),
      { numRuns: 500 },
    );
  });
});

class Chart {
  #snapshot = getNextSnapshot(agentMachine, getInitialSnapshot(agentMachine), { type: "START" });

  sendAll(signals: readonly AgentSignal[]): void {
    for (const signal of signals) this.#snapshot = getNextSnapshot(agentMachine, this.#snapshot, signal);
  }

  /** Whether the signal ends the agent: a status has no meaning afterwards. */
  isOverBy(signal: AgentSignal): boolean {
    return !getNextSnapshot(agentMachine, this.#snapshot, signal).matches("alive");
  }

  get standing() {
    return agentStanding(this.#snapshot);
  }
}

type Known = { online: boolean; isOwnDrain: boolean; draining: boolean; inFlight: number };

/** The coordinator's row of an agent after a signal of the agent arrived. */
function rowAfter(row: Known, { type }: AgentSignal): Known {
  switch (type) {
    case "JOINED":
      return { ...row, online: true };
    case "LAPSED":
      return { online: false, isOwnDrain: false, draining: false, inFlight: 0 };
    case "FINISH":
    case "STOP":
      return { ...row, isOwnDrain: true, draining: true };
    case "DRAIN":
      return { ...row, draining: true };
    case "UNDRAIN":
      return { ...row, draining: row.isOwnDrain };
    default:
      return row;
  }
}

function rowOf({ online, draining, inFlight }: Known): AgentRow {
  const open = new Map(Array.from({ length: inFlight }, (_, at) => [`t${at}`, {}]));
  // The function reads only these fields of a row.
  return {
    online,
    draining: online && draining,
    open,
    maxConcurrent: slots,
    prefetch: 0,
  } as unknown as AgentRow;
}

describe("the signals of a change of load", () => {
  const typesOf = (change: Parameters<typeof loadSignals>[0]) => loadSignals(change).map(({ type }) => type);

  it.each([
    [{ before: 0, after: 1, capacity: 4 }, ["FIRST_TASK"]],
    [{ before: 0, after: 1, capacity: 1 }, ["FIRST_TASK", "FULL"]],
    [{ before: 0, after: 4, capacity: 4 }, ["FIRST_TASK", "FULL"]],
    [{ before: 1, after: 3, capacity: 4 }, []],
    [{ before: 3, after: 4, capacity: 4 }, ["FULL"]],
    [{ before: 4, after: 3, capacity: 4 }, ["FREED"]],
    [{ before: 4, after: 0, capacity: 4 }, ["IDLE"]],
    [{ before: 1, after: 0, capacity: 1 }, ["IDLE"]],
    [{ before: 5, after: 4, capacity: 4 }, []],
    [{ before: 0, after: 0, capacity: 1 }, []],
  ])("%o is %o", (change, expected) => {
    expect(typesOf(change)).toEqual(expected);
  });
});
