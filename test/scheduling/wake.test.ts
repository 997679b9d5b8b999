// When time alone gives a planner work: every turn that does work without a request was foreseen.

import { expect, it } from "vitest";
import { agentId, instant, kind, projectId, taskId } from "../../src/ids.ts";
import { Wake } from "../../src/scheduling/wake.ts";
import { defaultProjectSettings } from "../../src/state/state.ts";
import { join, submit, Turns } from "../support/turns.ts";

const suspended = (agent: string, until: number) =>
  ({
    type: "AgentSuspended",
    agent: agentId(agent),
    kind: kind("k"),
    until: instant(until),
    step: 1,
  }) as const;

function expectIdleUntil(swarm: Turns, wakeAt: number | undefined): void {
  expect(wakeAt).toBeGreaterThan(swarm.at);
  swarm.at = instant((wakeAt ?? 0) - 1);
  const before = swarm.events.length;
  swarm.turn();
  expect(swarm.events.length).toBe(before);
  swarm.at = instant(wakeAt ?? 0);
  swarm.turn();
  expect(swarm.events.length).toBeGreaterThan(before);
}

it("is a probe's instant, once a task waits", () => {
  const swarm = new Turns();
  swarm.turn(join("a1"), join("full"));
  swarm.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
  swarm.turn(swarm.report(idAt(swarm, "a1"), { kind: "completed", result: "" }));
  const wake = new Wake(swarm.state);
  swarm.configure(suspended("a1", swarm.at + 5_000));
  wake.touch([agentId("a1")]);
  expect(wake.nextAt(swarm.at)).toBe(swarm.state.timers.peek()?.dueAt);
  swarm.turn(submit({ id: taskId("t3") }));
  expect(wake.nextAt(swarm.at)).toBe(swarm.at + 5_000);
  expectIdleUntil(swarm, wake.nextAt(swarm.at));
  expect(swarm.task("t3").open?.agent).toBe("a1");
});

it("is the instant at which a budget has room again", () => {
  const swarm = new Turns();
  swarm.turn(join("a1"));
  const budget = { tokens: 100, windowMs: 60_000, mode: "wait" as const };
  const settings = { ...defaultProjectSettings, budget };
  swarm.configure({ type: "ProjectConfigured", project: projectId("p"), settings });
  swarm.turn(submit({ id: taskId("t1"), tokens: 60 }));
  swarm.turn(swarm.report("t1", { kind: "completed", result: "", tokens: 60 }));
  swarm.turn(submit({ id: taskId("t2"), tokens: 60 }));
  expectIdleUntil(swarm, new Wake(swarm.state).nextAt(swarm.at));
  expect(swarm.task("t2").state).toBe("assigned");
});

it("forgets reinstated agents and agents that are gone", () => {
  const swarm = new Turns();
  swarm.turn(join("a1"), join("a2", { kinds: [kind("other")] }));
  swarm.configure(suspended("a1", swarm.at + 5_000));
  swarm.turn(submit({ id: taskId("t1") }), submit({ id: taskId("t2") }));
  const wake = new Wake(swarm.state);
  const timerAt = swarm.state.timers.peek()?.dueAt;
  expect(wake.nextAt(swarm.at)).toBe(swarm.at + 5_000);
  swarm.configure({ type: "AgentReinstated", agent: agentId("a1"), kind: kind("k") });
  wake.touch([agentId("a1")]);
  expect(wake.nextAt(swarm.at)).toBe(timerAt);
  expect(new Wake(swarm.state).nextAt(swarm.at)).toBe(timerAt);
});

function idAt(swarm: Turns, agent: string): string {
  const [attempt] = swarm.agent(agent).open.values();
  return attempt?.task ?? "";
}
