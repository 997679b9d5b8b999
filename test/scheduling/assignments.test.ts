// Properties of every assignment, under any rule of turns: no broken filter or gate, scores within [0, 1],
// and no waiting task is left with a willing agent. The test states each filter independently.

import { expect, it } from "vitest";
import { checkAfterTurn } from "../../src/core/invariants.ts";
import { budgetRoom, rateGate } from "../../src/scheduling/gates.ts";
import type { EventOf, TaskSpec } from "../../src/state/event.ts";
import { holdsOn, phaseOf } from "../../src/state/hold-rows.ts";
import { isHard } from "../../src/state/settings.ts";
import type { AgentRow, SwarmState } from "../../src/state/state.ts";
import { aRandomSwarm } from "./random-swarm.ts";
import type { SwarmFixture } from "./swarm-fixture.ts";

type Assigned = EventOf<"TaskAssigned">;

const seeds = 600;

/** The filters and gates that an assignment breaks, checked before it is applied. */
function brokenBy({ state, at }: SwarmFixture, event: EventOf<"TaskAssigned">): string[] {
  const row = state.taskById.get(event);
  const agent = state.agentById.get(event.agent);
  if (row === undefined || agent === undefined) return ["both are known"];
  const { spec, projectRow } = row;
  const kind = event.runsAs ?? spec.kind;
  const others = [...state.agentById.values()].filter(
    (other) =>
      couldServe(state, other, kind, spec) &&
      (event.cheaperType === undefined || other.agentType === event.cheaperType),
  );
  const unheld = others.filter((other) => holdsOn(state, other, kind).length === 0);
  const settled = unheld.filter((other) => !other.suspensionByKind.has(kind));
  const suspension = settled.length > 0 ? agent.suspensionByKind.get(kind) : undefined;
  const peers = [settled, unheld, others].find((some) => some.length > 0) ?? [];
  const open = [...state.agentById.values()].flatMap((other) => [...other.open.values()]);
  const ofProject = open.filter(({ project }) => project === spec.project);
  const claims = {
    "the task waits": row.state === "queued" && event.attempt === row.attempt + 1,
    "the agent is there": couldServe(state, agent, kind, spec) && agent.incarnation === event.incarnation,
    "the agent answers": !agent.unresponsive,
    "capacity is free": agent.open.size < agent.maxConcurrent + agent.prefetch,
    "its rate is not used up": !rateGate(state, agent.agentType, at),
    "a suspended agent is probed, once and when it is due":
      suspension === undefined ||
      (suspension.until <= at &&
        event.receipt.decidedBy === "probe" &&
        ![...agent.open.values()].some(
          (attempt) =>
            attempt.kind === kind && attempt.state !== "revoked" && attempt.assignedAt >= suspension.until,
        )),
    "what is on hold gets the probe alone, once its time is over": holdsOn(state, agent, kind).every(
      (hold) => phaseOf(hold) === "due" && event.receipt.decidedBy === "probe",
    ),
    "who failed it has it again only where nobody else could":
      !row.failedBy.includes(agent.id) || peers.every((other) => row.failedBy.includes(other.id)),
    "neither the swarm nor the project is paused": !state.isPaused && !projectRow.isPaused,
    "TopN is kept": open.length < (state.policy.topN ?? Number.POSITIVE_INFINITY),
    "the project's concurrency is kept":
      ofProject.length < (projectRow.settings?.maxConcurrent ?? Number.POSITIVE_INFINITY),
    "it runs as another kind only as its kind's settings say":
      event.runsAs === undefined || state.kindByName.get(spec.kind)?.settings?.cheaper === event.runsAs,
    "it is kept to a type only as its kind's settings say, and goes to an agent of it":
      event.cheaperType === undefined ||
      (state.kindByName.get(spec.kind)?.settings?.cheaperType === event.cheaperType &&
        agent.agentType === event.cheaperType),
    "what a budget made of it is whole, and its receipt says which": isDowngradeWhole(state, event, spec),
  };
  return Object.entries(claims).flatMap(([claim, holds]) => (holds ? [] : [claim]));
}

/** A used-up budget in mode downgrade imposes all downgrades of the kind, as does a hold on all agents of a kind with a
 *  cheaper kind. Nothing else does. */
function isDowngradeWhole(
  state: SwarmState,
  { runsAs, cheaperType, receipt }: Assigned,
  { kind, ...spec }: TaskSpec,
): boolean {
  const own = [...state.agentById.values()].filter((agent) =>
    couldServe(state, agent, kind, { kind, ...spec }),
  );
  const isOnHold = own.length > 0 && own.every((agent) => holdsOn(state, agent, kind).length > 0);
  const { project, global } = receipt.budget ?? {};
  const settings = state.kindByName.get(kind)?.settings;
  const isUsedUp = project === "downgrade" || global === "downgrade";
  return isUsedUp || (runsAs !== undefined && isOnHold)
    ? runsAs === settings?.cheaper && cheaperType === settings?.cheaperType
    : runsAs === undefined && cheaperType === undefined;
}

function couldServe(
  { grants }: SwarmState,
  agent: AgentRow,
  kind: string,
  { project, role, needs = {} }: TaskSpec,
): boolean {
  const { projects = [project] } = grants.byGroup.get(agent.group) ?? {};
  return (
    projects.includes(project) &&
    Object.entries(needs).every(([label, values]) => values.some((value) => value === agent.labels[label])) &&
    agent.online &&
    !agent.draining &&
    [...agent.kinds].some((own) => own === kind) &&
    (role === undefined || agent.role === role)
  );
}

/** Hard budgets that are exceeded although they were not before. */
function exceeded(state: SwarmState, before: ReadonlySet<string>): string[] {
  return [...exceededNow(state)].filter((name) => !before.has(name));
}

function exceededNow({ ledger, policy, projectById, at }: SwarmState): Set<string> {
  const found = new Set<string>();
  if (isHard(policy.budget) && budgetRoom(ledger, policy.budget, at) < 0) found.add("swarm");
  for (const { project, settings, ledger: own } of projectById.values()) {
    if (isHard(settings?.budget) && budgetRoom(own, settings.budget, at) < 0) found.add(project);
  }
  return found;
}

it("no assignment breaks a filter, and no task is left that an agent would take", () => {
  let assignments = 0;
  for (let seed = 0; seed < seeds; seed += 1) {
    const swarm = aRandomSwarm(100_000 + seed);
    swarm.state.at = swarm.at;
    let round = swarm.planner.open(swarm.at);
    for (;;) {
      const event = round.next();
      if (event === undefined && !round.mayLeaveMore) break;
      if (event === undefined) {
        round = swarm.planner.open(swarm.at);
        continue;
      }
      assignments += 1;
      expect(brokenBy(swarm, event)).toEqual([]);
      for (const { score, successRate, speed = 1, backlog = 0, load } of event.receipt.candidates) {
        for (const share of [score, successRate, speed, backlog]) {
          expect(share).toBeGreaterThanOrEqual(0);
          expect(share).toBeLessThanOrEqual(1);
        }
        expect(load).toBeGreaterThanOrEqual(0);
      }
      const before = exceededNow(swarm.state);
      swarm.apply(event);
      expect(exceeded(swarm.state, before)).toEqual([]);
    }
    const late = checkAfterTurn(swarm.state).filter(({ name }) => name === "work-conserving");
    expect(late).toEqual([]);
  }
  expect(assignments).toBeGreaterThan(seeds);
});
