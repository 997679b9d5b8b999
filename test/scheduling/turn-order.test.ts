// Whose turn, by priority and order of submission.

import { describe, expect, it } from "vitest";
import { SubmissionOrder } from "../../src/scheduling/turn-order.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

function aQueue() {
  const swarm = new SwarmFixture();
  swarm.join("a", { kinds: ["x", "y", "z"], maxConcurrent: 100 });
  swarm.submit("x1", { kind: "x" });
  swarm.submit("y1", { kind: "y", priority: 5 });
  swarm.submit("x2", { kind: "x", priority: 1 });
  swarm.submit("z1", { kind: "z" });
  swarm.submit("y2", { kind: "y" });
  return swarm;
}

describe("the order of submission", () => {
  it("takes the lowest (priority, submission) over all lanes", () => {
    const swarm = aQueue();
    const order = new SubmissionOrder(swarm.state.laneByKey.values());
    const taken: string[] = [];
    for (let lane = order.next(); lane !== undefined; lane = order.next()) {
      expect(order.next()).toBe(lane);
      const first = lane.queue.peek()?.spec.id as string;
      taken.push(first);
      swarm.assign(first, "a");
      order.granted();
    }
    expect(taken).toEqual(["x2", "y1", "x1", "z1", "y2"]);
  });

  it("puts a blocked lane aside and goes on with the others", () => {
    const swarm = aQueue();
    const order = new SubmissionOrder(swarm.state.laneByKey.values());
    order.block();
    const left: string[] = [];
    for (let lane = order.next(); lane !== undefined; lane = order.next()) {
      left.push(lane.kind);
      order.block();
    }
    expect(left).toEqual(["y", "z"]);
  });

  it("has nobody's turn where nothing waits", () => {
    expect(new SubmissionOrder([]).next()).toBeUndefined();
  });
});
