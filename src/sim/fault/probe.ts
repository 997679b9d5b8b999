// The end of a seed, after all faults healed and all tasks ended: single failures in sequence, with no other fault. The
// leader crashes, then an agent with work; the next leader is asked to stop. Then either a leader crashes while a
// foreign client writes into the journal, or no agent or client can reach the leader. recovery-check.ts judges how
// soon the swarm recovers. During the seed, faults strike every few seconds and rarely leave enough time for that.

import { connect } from "../../client/connect.ts";
import { WaggleError } from "../../errors.ts";
import { type AgentId, refOfKey, type TaskRef, taskKey } from "../../ids.ts";
import type { OpenAttempt } from "../../state/state.ts";
import type { SeededRandom } from "../random.ts";
import type { AgentNode } from "./agent-node.ts";
import type { CoordinatorNode } from "./coordinator-node.ts";
import type { FaultKind } from "./fault.ts";
import type { Habitat } from "./habitat.ts";
import type { JournalTruth } from "./journal-truth.ts";
import { payloadOf } from "./payload.ts";
import {
  lostWithinMs,
  newTermAmongForeignWithinMs,
  newTermWithinMs,
  type RecoveryCheck,
} from "./recovery-check.ts";
import { newMachine } from "./session.ts";
import { kinds } from "./workload.ts";

export interface ProbeDeps {
  readonly habitat: Habitat;
  readonly truth: JournalTruth;
  readonly coordinators: readonly CoordinatorNode[];
  readonly agents: readonly AgentNode[];
  readonly recovery: RecoveryCheck;
  readonly random: SeededRandom;
  /** Begin of the time without faults, virtual ms. */
  readonly calmSinceMs: number;
  readonly without: readonly FaultKind[];
}

/**
 * Time without faults, with every node running, before the first failure, ms: longer than old messages are late or
 * still count.
 */
const CALM_MS = 10_000;
/** Interval between checks of a condition, ms. */
const LOOK_MS = 100;
/** Duration of the task whose agent crashes, ms: most are confirmed as running by then. */
const TASK_MS = 3_000;
const TASK_TIMEOUT_MS = 20_000;
/** Downtime of an ended node beyond the bound of recovery, ms. */
const AWAY_MS = 1_000;
/** Interval between records of the foreign client, ms: an election takes far less. */
const FOREIGN_MS = 100;
/** Pause before a refused task is submitted again, ms. */
const AGAIN_MS = 500;

export class Probe {
  readonly #deps: ProbeDeps;
  #calmSinceMs: number;
  #isOver = false;
  #waitsFor = "calm";

  constructor(deps: ProbeDeps) {
    this.#deps = deps;
    this.#calmSinceMs = deps.calmSinceMs;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get waitsFor(): string {
    return this.#waitsFor;
  }

  start(): void {
    this.#run().then(
      () => {
        this.#isOver = true;
      },
      (error: unknown) => this.#deps.habitat.escaped("probe", error),
    );
  }

  async #run(): Promise<void> {
    const { without } = this.#deps;
    if (!without.includes("crash")) {
      await this.#crashLeader();
      await this.#crashAgent();
    }
    if (!without.includes("transfer")) await this.#stopLeader();
    if (this.#deps.random.chance(0.5)) {
      if (!without.includes("crash") && !without.includes("foreign")) await this.#crashAmongForeign();
    } else if (!without.includes("disconnect")) await this.#cutLeaderOff();
  }

  async #crashLeader(): Promise<void> {
    const { recovery, truth } = this.#deps;
    const leader = await this.#leaderAtRest();
    recovery.leaderCrashed();
    leader.crash(newTermWithinMs(truth.state.leaderTimeoutMs) + AWAY_MS);
    await this.#until("a new term", () => recovery.isOver);
  }

  async #crashAmongForeign(): Promise<void> {
    const { recovery, truth, habitat } = this.#deps;
    const leader = await this.#leaderAtRest();
    recovery.leaderCrashedAmongForeign();
    leader.crash(newTermAmongForeignWithinMs(truth.state.leaderTimeoutMs) + AWAY_MS);
    while (!recovery.isOver) {
      habitat.writeForeign();
      await this.#wait(FOREIGN_MS);
    }
  }

  async #cutLeaderOff(): Promise<void> {
    const { recovery, habitat } = this.#deps;
    const { id } = await this.#leaderAtRest();
    recovery.leaderUnheard();
    const link = habitat.linkOf(id);
    link.isDown = true;
    habitat.disconnect(id);
    await this.#until("a new term", () => recovery.isOver);
    link.isDown = false;
  }

  async #stopLeader(): Promise<void> {
    const { recovery } = this.#deps;
    const leader = await this.#leaderAtRest();
    recovery.leaderStopped();
    leader.stop(AWAY_MS);
    await this.#until("a new term", () => recovery.isOver);
  }

  async #crashAgent(): Promise<void> {
    const { truth, recovery, agents, habitat } = this.#deps;
    const ref = await this.#submit();
    const { task } = ref;
    const open = await this.#attemptOf(ref);
    const node = agents.find(({ id }) => id === open.agent);
    if (node === undefined) throw new Error(`${task} is with a stranger`);
    recovery.agentCrashed({ id: open.agent, incarnation: open.incarnation }, this.#heardMs(open.agent));
    node.crash(lostWithinMs(truth.state.leaderTimeoutMs) + AWAY_MS);
    await this.#until(`${open.agent} to be lost`, () => recovery.isOver);
    await this.#until(`the end of ${task}`, () => truth.state.taskById.size === 0);
    const { state: end = "forgotten" } = truth.state.endedById.get(ref) ?? {};
    if (end !== "completed")
      habitat.found(
        "recovery-is-bounded",
        `${task} is ${end} after a crash of its agent without other faults`,
      );
  }

  /**
   * Waits for an open attempt and a while after its begin. The leader may revoke it meanwhile, if a session of the
   * agent is replaced.
   */
  async #attemptOf(ref: TaskRef): Promise<OpenAttempt> {
    const { truth, random } = this.#deps;
    const openAttempt = () => truth.state.taskById.get(ref)?.open;
    for (;;) {
      await this.#until(`${ref.task} to be assigned`, () => openAttempt() !== undefined);
      await this.#wait((TASK_MS / 2) * random.fraction());
      const open = openAttempt();
      if (open !== undefined) return open;
    }
  }

  /** Arrival of the agent's last message: copies of messages sent during faults may still be on their way. */
  #heardMs(agent: AgentId): number {
    const links = [...this.#deps.habitat.links()].filter(
      ({ name }) => name === agent || name.startsWith(`${agent}/`),
    );
    return Math.max(...links.map(({ lastArrivalMs }) => lastArrivalMs));
  }

  /** The leader, after a long time without faults, when every node runs and holds the whole journal. */
  async #leaderAtRest(): Promise<CoordinatorNode> {
    const { coordinators, truth, habitat } = this.#deps;
    const leaders = () => coordinators.filter(({ isLeading }) => isLeading);
    await this.#until("a leader with followers", () => {
      const calmMs = habitat.engine.nowMs - CALM_MS;
      const { idx, leader } = truth.state;
      const follows = ({ knownIdx = 0, session }: CoordinatorNode) =>
        knownIdx >= idx && (session?.bornMs ?? calmMs) < calmMs;
      const [first, second] = leaders();
      const isLed = first?.id === leader && second === undefined;
      return this.#calmSinceMs < calmMs && truth.isWhole && isLed && coordinators.every(follows);
    });
    const [leader] = leaders();
    if (leader === undefined) throw new Error("nobody leads");
    return leader;
  }

  /** @returns the task's name, once accepted */
  async #submit(): Promise<TaskRef> {
    const { habitat } = this.#deps;
    const session = habitat.newSession("probe", newMachine());
    const transport = habitat.newConnection("probe", session);
    const { clock, random } = session;
    const { swarm } = habitat;
    const logger = habitat.loggerOf("probe");
    const options = { transport, swarm, project: "ops", user: "probe", clock, random, logger };
    const connected = await connect(options);
    const orders = { does: "complete", ms: TASK_MS, healedMs: TASK_MS, limitMs: TASK_TIMEOUT_MS } as const;
    const payload = payloadOf(orders);
    for (;;) {
      this.#waitsFor = "a task to be accepted";
      try {
        const [kind = ""] = kinds;
        const { id, project } = await connected.submit({
          id: "probe",
          kind,
          payload,
          timeoutMs: TASK_TIMEOUT_MS,
        });
        return refOfKey(taskKey({ project, task: id }));
      } catch (error) {
        if (!(error instanceof WaggleError)) throw error;
        await this.#wait(AGAIN_MS);
      }
    }
  }

  async #until(what: string, isSo: () => boolean): Promise<void> {
    this.#waitsFor = what;
    while (!isSo()) await this.#wait(LOOK_MS);
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#deps.habitat.engine.after(ms, "probe", resolve));
  }
}
