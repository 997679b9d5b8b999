// What the dashboard calls lost: the broker only where it cannot be reached, else the leader.

import { describe, expect, it } from "vitest";
import { type Look, SwarmWatch } from "../../src/dashboard/swarm-watch.ts";
import { NoLeaderError, UnreachableError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLogger } from "../support/swarm.ts";

const noLeader = new NoLeaderError("none answers");
const silent = new UnreachableError("No coordinator answered: no answer came in time");
const cutOff = new UnreachableError("No coordinator answered: the connection to the server was lost");

/** The first look at a swarm whose questions fail. */
async function lookOf(error: Error, isConnected: boolean): Promise<Look> {
  return await new Promise((resolve) => {
    const watch: SwarmWatch = new SwarmWatch({
      swarm: { status: () => Promise.reject(error), settings: () => Promise.reject(error) },
      ...{ clock: new ManualClock(), logger: silentLogger, isWatched: () => true },
      isConnected: () => isConnected,
      onLook: (look) => {
        resolve(look);
        void watch.close();
      },
    });
    watch.start();
  });
}

describe("a question without an answer", () => {
  it.each([
    ["that nobody received", noLeader, true, { what: "leader", next: "waggle up" }],
    ["that a coordinator received and left open", silent, true, { what: "leader", next: "waggle doctor" }],
    ["over a connection that broke", cutOff, false, { what: "server", next: "waggle doctor" }],
  ])("%s names what is lost, and the next command", async (_, error, isConnected, expected) => {
    const { lost, totals } = await lookOf(error, isConnected);
    expect(lost).toMatchObject({ ...expected, message: error.message });
    expect(totals).toBeUndefined();
  });
});
