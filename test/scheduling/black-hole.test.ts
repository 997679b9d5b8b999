// A whole swarm in simulated time, through the production step: an agent that fails every task at once is always free.
// No task may be lost to it, and once repaired the agent must be used again.

import { describe, expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { Turn } from "../../src/core/step.ts";
import {
  type AgentId,
  agentId,
  assignmentNumber,
  batchIndex,
  incarnation,
  instant,
  kind,
  projectId,
  taskId,
  term,
  userId,
} from "../../src/ids.ts";
import { Planner } from "../../src/scheduling/planner.ts";
import { Wake } from "../../src/scheduling/wake.ts";
import type { Event, EventOf } from "../../src/state/event.ts";
import { emptyState } from "../../src/state/state.ts";
import { Dice } from "./random-swarm.ts";

interface Report {
  readonly dueAt: number;
  readonly command: Command;
}

/** How long an attempt takes its agent and whether it succeeds. */
type Behaviour = (agent: AgentId, at: number) => { readonly ms: number; readonly succeeds: boolean };

class SimulatedSwarm {
  readonly state = emptyState();
  readonly events: Event[] = [];
  readonly #planner = new Planner(this.state);
  readonly #wake = new Wake(this.state);
  #at = 1_000_000;
  #idx = 0;
  #reports: Report[] = [];
  readonly #behaviour: Behaviour;
  readonly #dice = new Dice(1);

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
    this.#turn([{ type: "StartTerm", term: term(1), leader: "c1", opened: "o1", timeoutMs: 3_000 }]);
  }

  join(id: string, maxConcurrent: number): void {
    this.#turn([
      {
        type: "JoinAgent",
        agent: agentId(id),
        incarnation: incarnation(id),
        kinds: [kind("k")],
        maxConcurrent,
        held: [],
        seen: assignmentNumber(0),
      },
    ]);
  }

  submit(count: number): void {
    const first = this.state.submissions;
    const commands = Array.from({ length: count }, (_, n): Command => {
      const id = taskId(`t${first + n}`);
      const spec = {
        id,
        kind: kind("k"),
        project: projectId("p"),
        user: userId("u"),
        weight: 1,
        priority: 100,
      };
      return {
        type: "SubmitTask",
        task: { ...spec, payload: "", maxAttempts: 3, timeoutMs: 3_600_000 },
        hash: id,
      };
    });
    this.#turn(commands);
  }

  /** Runs until nothing happens any more. */
  run(): void {
    for (let dueAt = this.#nextAt(); dueAt !== undefined; dueAt = this.#nextAt()) {
      this.#at = dueAt;
      const now = this.#reports.filter((report) => report.dueAt <= dueAt);
      this.#reports = this.#reports.filter((report) => report.dueAt > dueAt);
      this.#turn(now.map(({ command }) => command));
    }
  }

  assignmentsSince(index: number): EventOf<"TaskAssigned">[] {
    return this.events.slice(index).filter((event) => event.type === "TaskAssigned");
  }

  /** The next report or timer, while any task is live. */
  #nextAt(): number | undefined {
    if (this.state.taskById.size === 0) return undefined;
    const due = [
      ...this.#reports.map(({ dueAt }) => dueAt),
      this.#wake.nextAt(instant(this.#at)) ?? Number.POSITIVE_INFINITY,
    ];
    const next = due.reduce((a, b) => Math.min(a, b));
    if (next === Number.POSITIVE_INFINITY) throw new Error("live tasks wait for nothing");
    return next;
  }

  /** Turns until nothing more can be done at this instant. */
  #turn(commands: readonly Command[]): void {
    for (let waiting = commands, isDone = false; !isDone; ) {
      this.#idx += 1;
      const turn = new Turn(this.state, instant(this.#at), batchIndex(this.#idx), this.#planner);
      const taken = waiting.findIndex((command) => {
        turn.take(command);
        return turn.isFull;
      });
      waiting = taken === -1 ? [] : waiting.slice(taken + 1);
      isDone = waiting.length === 0 && turn.takeDue(() => this.#dice.next()) && turn.plan();
      this.#wake.touch(turn.touchedAgents);
      for (const { event } of turn.recorded) {
        this.events.push(event);
        if (event.type === "TaskAssigned") this.#work(event);
      }
    }
  }

  #work(event: EventOf<"TaskAssigned">): void {
    const { ms, succeeds } = this.#behaviour(event.agent, this.#at);
    const { agent, incarnation: session, project, task, attempt, token } = event;
    this.#reports.push({
      dueAt: this.#at + ms,
      command: {
        type: "ReportResult",
        agent,
        incarnation: session,
        project,
        task,
        attempt,
        token,
        outcome: succeeds ? { kind: "completed", result: "" } : { kind: "failed", error: "broken" },
        jitter: this.#dice.next(),
      },
    });
  }
}

function aSwarm(behaviour: Behaviour): SimulatedSwarm {
  const swarm = new SimulatedSwarm(behaviour);
  for (const id of ["gap", "a", "b", "c"]) swarm.join(id, 4);
  return swarm;
}

describe("an agent that fails everything at once", () => {
  it("ends no task, and costs few tasks their first attempt", () => {
    const swarm = aSwarm((agent) => ({
      ms: agent === "gap" ? 1 : 1000 + (agent.charCodeAt(0) % 7),
      succeeds: agent !== "gap",
    }));
    swarm.submit(1000);
    swarm.run();
    expect(swarm.state.counts).toMatchObject({ completed: 1000, "dead-lettered": 0 });
    const wasted = swarm.assignmentsSince(0).filter(({ agent }) => agent === "gap");
    // Ten until it is suspended, the attempts under way then, and a probe per back-off.
    expect(wasted.length).toBeLessThan(30);
  });

  it("is used again once it is repaired", () => {
    let isBroken = true;
    const swarm = aSwarm((agent) => {
      const fails = agent === "gap" && isBroken;
      return { ms: fails ? 1 : 1000, succeeds: !fails };
    });
    swarm.submit(200);
    swarm.run();
    expect(swarm.events.some(({ type }) => type === "AgentSuspended")).toBe(true);
    isBroken = false;
    const repairedAt = swarm.events.length;
    swarm.submit(2000);
    swarm.run();
    expect(swarm.events.slice(repairedAt).some(({ type }) => type === "AgentReinstated")).toBe(true);
    const assigned = swarm.assignmentsSince(repairedAt);
    const share = assigned.filter(({ agent }) => agent === "gap").length / assigned.length;
    expect(share).toBeGreaterThan(0.2);
    expect(swarm.state.counts).toMatchObject({ completed: 2200, "dead-lettered": 0 });
  });

  it("does not stop a kind without other agents", () => {
    const swarm = new SimulatedSwarm(() => ({ ms: 1, succeeds: false }));
    swarm.join("gap", 4);
    swarm.submit(100);
    swarm.run();
    expect(swarm.state.counts).toMatchObject({ "dead-lettered": 100 });
    expect(swarm.events.some(({ type }) => type === "AgentSuspended")).toBe(false);
  });
});
