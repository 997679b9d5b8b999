// A whole swarm in virtual time. Runs a seed through its faults to the quiet after them, in which every accepted task
// must end. victims.ts applies the faults.

import { limits } from "../../limits.ts";
import type { EventOf } from "../../state/event.ts";
import { checkHistory } from "../history/check-history.ts";
import { checkLosses } from "../history/check-losses.ts";
import { SeededRandom } from "../random.ts";
import { AgentNode } from "./agent-node.ts";
import { ClientNode } from "./client-node.ts";
import { CoordinatorNode } from "./coordinator-node.ts";
import type { Fault, FaultKind, Profile } from "./fault.ts";
import { Habitat, type NodeLog } from "./habitat.ts";
import { HandlerWatch, type LimitReached } from "./handler-watch.ts";
import { JournalTruth } from "./journal-truth.ts";
import { Nemesis, SERVER } from "./nemesis.ts";
import { Operator } from "./operator.ts";
import { Probe } from "./probe.ts";
import { RecoveryCheck } from "./recovery-check.ts";
import { SwarmVictims } from "./victims.ts";
import type { Workload } from "./workload.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly workload: Workload;
  readonly schedule: readonly Fault[];
  /** Faults that the probe at the end leaves out, too. */
  readonly without: readonly FaultKind[];
  /** Default: inside the fault model. */
  readonly profile?: Profile | undefined;
  /** Time at which all faults heal, virtual ms. */
  readonly untilMs: number;
  readonly log?: NodeLog | undefined;
}

/**
 * Longest time after all faults heal until every accepted task ends, ms: a task's longest back-off, and a term or two.
 */
const LIVENESS_MS = 8 * 60_000;
/** …and until every node has received all messages, ms. */
const SETTLING_MS = 20_000;
/** H, and a few heartbeats, ms. */
const LOST_MS = limits.agentLostMs + 3 * limits.heartbeatMs;
/** Clients and agents report a loss within 30 s; a coordinator halts or leads earlier, ms. */
const REPORTED_MS = 60_000;
/** Longest delay until a following standby has read a record, ms. */
const FOLLOWED_MS = 1_000;
/** Interval between comparisons of the coordinators' states, ms: a comparison costs as much as a snapshot. */
const READING_MS = 15_000;

export class World {
  readonly habitat: Habitat;
  readonly truth: JournalTruth;
  readonly #options: WorldOptions;
  readonly #coordinators: readonly CoordinatorNode[];
  readonly #agents: readonly AgentNode[];
  readonly #clients: readonly ClientNode[];
  readonly #operator: Operator;
  readonly #nemesis: Nemesis;
  readonly #handlers: HandlerWatch;
  readonly #recovery: RecoveryCheck;
  readonly #random: SeededRandom;

  constructor(options: WorldOptions) {
    const { seed, workload } = options;
    const random = new SeededRandom(`torture/${seed}/world`);
    this.#options = options;
    this.#random = random;
    this.habitat = new Habitat(random.split("habitat"), options.log, options.profile);
    this.truth = new JournalTruth(this.habitat);
    this.habitat.onObserved = (observation) => this.truth.noteObserved(observation);
    this.truth.onLapsed = (lapsed, decidedMs) => this.#requireLost(lapsed, decidedMs);
    this.#recovery = new RecoveryCheck({
      engine: this.habitat.engine,
      state: () => this.truth.state,
      found: (check, sentence) => this.habitat.found(check, sentence),
      note: (occurrence) => this.habitat.occurrences.note(occurrence),
    });
    this.#handlers = new HandlerWatch(this.habitat);
    this.truth.onLimitReached = (closed) => {
      this.#handlers.limitReached(closed);
      this.#requireBegun(closed);
    };
    this.#coordinators = workload.coordinators.map(
      (character) => new CoordinatorNode(character, this.habitat, this.truth),
    );
    this.#agents = workload.agents.map(
      (character) =>
        new AgentNode(character, {
          habitat: this.habitat,
          watch: this.#handlers,
          random: random.split(`handlers/${character.id}`),
          mayBeForbidden: workload.groups.length > 0,
        }),
    );
    this.truth.pending = () => this.#coordinators.flatMap(({ pending }) => pending);
    // Without retries clients pass refusals on. After `answers-lost` a refused task may have been accepted before.
    const retries = options.schedule.every(({ kind }) => kind !== "answers-lost");
    this.#clients = workload.clients.map((character) => new ClientNode(character, this.habitat, { retries }));
    this.#operator = new Operator(this.habitat, workload, () => this.#isAnyMeddling());
    const victims = new SwarmVictims({
      habitat: this.habitat,
      truth: this.truth,
      coordinators: this.#coordinators,
      agents: this.#agents,
      clients: this.#clients,
    });
    this.#nemesis = new Nemesis(this.habitat.engine, victims, options.profile);
  }

  /** Runs the seed to its end; the habitat holds the findings. @throws the reason of `signal` */
  async run(signal?: AbortSignal): Promise<void> {
    const { workload, schedule, untilMs } = this.#options;
    const { engine } = this.habitat;
    for (const node of this.#nodes()) node.start();
    for (const operation of workload.operations)
      engine.after(operation.atMs, operation.does, () =>
        this.#clients.find(({ id }) => id === operation.client)?.do(operation),
      );
    this.#nemesis.follow(schedule);
    this.#readStates();
    await this.#runUntil(untilMs, () => false, signal);
    if (this.#hasFound()) return;
    this.#heal();
    if (this.habitat.profile === "outside") return await this.#judgeLosses(signal);
    await this.#runUntil(untilMs + LIVENESS_MS, () => this.#isDone(), signal);
    if (this.#hasFound()) return;
    if (!this.#isDone()) return this.#noteUndone();
    await this.#probe(signal);
    if (this.#hasFound()) return;
    await this.#runUntil(engine.nowMs + SETTLING_MS, () => false, signal);
    if (this.#hasFound()) return;
    this.#noteUnheard();
    this.#noteKept();
    this.#noteBehind();
    for (const coordinator of this.#coordinators) coordinator.read();
    this.#judgeHistory();
  }

  #nodes(): (CoordinatorNode | AgentNode | ClientNode)[] {
    return [...this.#coordinators, ...this.#agents, ...this.#clients];
  }

  #runUntil(untilMs: number, isEnough: () => boolean, signal: AbortSignal | undefined): Promise<void> {
    const afterEvent = () => {
      this.truth.readOn();
      this.#recovery.check();
      return this.#hasFound() || isEnough();
    };
    return this.habitat.engine.run(untilMs, afterEvent, signal);
  }

  #hasFound(): boolean {
    return this.habitat.findings.length > 0;
  }

  /**
   * No session counts as lost while its messages could be heard, whatever happened to leaders. An ended process is
   * rightly lost, also while its successor's join still waits for the journal. Messages after the decision come too
   * late, even before the batch is stored.
   */
  #requireLost({ agent, incarnation }: EventOf<"AgentLeft">, decidedMs: number): void {
    if (this.#agents.find(({ id }) => id === agent)?.isRunning(incarnation) !== true) return;
    if (this.#heardForMs(agent, decidedMs) < LOST_MS) return;
    this.habitat.found(
      "the-living-are-not-lost",
      `${agent} counts as lost, though no fault stopped its messages`,
    );
  }

  /** No attempt is closed for silence while it waits at its agent, which reports it with each heartbeat. */
  #requireBegun(closed: LimitReached): void {
    const { task, attempt, by, agent, decidedMs } = closed;
    if (by !== "stalled" || this.#handlers.hasStarted(closed)) return;
    if (this.#heardForMs(agent, decidedMs) < LOST_MS) return;
    this.habitat.found(
      "what-waits-is-not-stalled",
      `attempt ${attempt} of ${task} is closed for silence before it began at ${agent}`,
    );
  }

  /** Time since the last fault kept an agent from being heard, up to an instant, ms. */
  #heardForMs(agent: string, untilMs: number): number {
    const nodes = [agent, ...this.#coordinators.map(({ id }) => id), SERVER];
    return untilMs - Math.max(...nodes.map((node) => this.#nemesis.touchedMs(node, untilMs)));
  }

  /** Compares the states of all coordinators at intervals. */
  #readStates(): void {
    this.habitat.engine.after(READING_MS, "reading", () => {
      for (const coordinator of this.#coordinators) coordinator.read();
      this.#readStates();
    });
  }

  #judgeHistory(): void {
    for (const { session } of this.#nodes()) session?.kill(); // open requests are recorded as unanswered
    const { history: observations, readings } = this.habitat;
    const violations = checkHistory(
      { observations, readings, journal: this.truth.batches.map((bytes) => ({ bytes })) },
      { mustAllHaveEnded: true },
    );
    for (const { promise, checker, sentence } of violations)
      this.habitat.found(`${promise} ${checker}`, sentence);
  }

  /** Outside the fault model: no loss is silent, and no answer contradicts the final leader's log. */
  async #judgeLosses(signal: AbortSignal | undefined): Promise<void> {
    const { engine, lossReports, history: observations } = this.habitat;
    await this.#runUntil(engine.nowMs + REPORTED_MS, () => false, signal);
    const ledHash = () => this.#coordinators.map((each) => each.ledHash).find((hash) => hash !== undefined);
    if (ledHash() === undefined) {
      await this.#runUntil(engine.nowMs + REPORTED_MS, () => ledHash() !== undefined, signal);
      // A leader that has just begun has sent no client yet what its log holds.
      await this.#runUntil(engine.nowMs + REPORTED_MS, () => lossReports.length > 0, signal);
    }
    const hash = ledHash();
    const isReported = lossReports.length > 0;
    if (hash === undefined && !isReported)
      this.habitat.found("outside never-silent", "no coordinator leads, and none reported a reason");
    if (hash === undefined || this.#hasFound()) return;
    for (const { session } of this.#nodes()) session?.kill(); // open requests are recorded as unanswered
    const journal = this.truth.logUpTo(hash);
    if (journal === undefined)
      return this.habitat.found(
        "outside never-silent",
        "the leader's log holds a batch that no leader decided",
      );
    const elsewhere = this.truth.pointsBeside(journal);
    for (const { promise, checker, sentence } of checkLosses({
      observations,
      journal,
      elsewhere,
      isReported,
    }))
      this.habitat.found(`outside ${promise} ${checker}`, sentence);
  }

  #heal(): void {
    this.habitat.hasHealed = true;
    for (const agent of this.#agents) agent.heal();
    this.#operator.start();
  }

  /** Whether a client may still set a limit, pause or drain, or a copy of a request may still reach a coordinator. */
  #isAnyMeddling(): boolean {
    const { engine } = this.habitat;
    const isOnItsWay = ({ id }: CoordinatorNode) => this.habitat.linkOf(id).lastArrivalMs > engine.nowMs;
    return this.#clients.some(({ isMeddling }) => isMeddling) || this.#coordinators.some(isOnItsWay);
  }

  /** Checks that the swarm recovers in time from the end of nodes, without other faults. */
  async #probe(signal: AbortSignal | undefined): Promise<void> {
    const { nowMs } = this.habitat.engine;
    const { calmSinceMs } = this.#nemesis;
    if (calmSinceMs > nowMs) return; // a given schedule may go on longer
    const probe = new Probe({
      habitat: this.habitat,
      truth: this.truth,
      coordinators: this.#coordinators,
      agents: this.#agents,
      recovery: this.#recovery,
      random: this.#random.split("probe"),
      without: this.#options.without,
      calmSinceMs,
    });
    this.habitat.occurrences.isProbing = true;
    probe.start();
    await this.#runUntil(nowMs + LIVENESS_MS, () => probe.isOver, signal);
    if (!probe.isOver && !this.#hasFound())
      this.habitat.found(
        "recovery-is-bounded",
        `${LIVENESS_MS / 1_000} s after all tasks ended, the probe still waits for ${probe.waitsFor}`,
      );
  }

  /** False while a client still submits unaccepted tasks: they may wait for longer than settling takes. */
  #isDone(): boolean {
    const isSubmitting = () => this.#clients.some(({ submitting }) => submitting.length > 0);
    return this.#operator.isDone && this.truth.state.taskById.size === 0 && !isSubmitting();
  }

  #noteUndone(): void {
    const { taskById } = this.truth.state;
    const some = [...taskById.values()]
      .slice(0, 5)
      .map(({ spec, state, attempt }) => `${spec.id} ${state}#${attempt}`);
    const unanswered = [
      ...(this.#operator.isDone ? [] : [`the operator still waits for: ${this.#operator.waitsFor}`]),
      ...this.#clients
        .filter(({ submitting }) => submitting.length > 0)
        .map(({ id, submitting }) => `${id} still submits ${submitting.slice(0, 5).join(", ")}`),
    ];
    const undone = [`${taskById.size} tasks have not ended: ${some.join(", ")}`, ...unanswered];
    this.habitat.found(
      "everything-accepted-ends",
      `${LIVENESS_MS / 1_000} s after all faults healed, ${undone.join("; ")}`,
    );
  }

  /** An ended attempt occupies no capacity: its agent knows the end, and the leader has the confirmation. */
  #noteKept(): void {
    for (const { id, online, open } of this.truth.state.agentById.values())
      for (const { task, attempt, state } of online ? open.values() : [])
        this.habitat.found(
          "places-are-given-back",
          `ended attempt ${attempt} of ${task} occupies capacity of ${id} and is ${state}`,
        );
  }

  /** A standby that lacks batches after a second cannot follow. */
  #noteBehind(): void {
    const idx = this.truth.state.idx - this.truth.storedSince(this.habitat.engine.nowMs - FOLLOWED_MS);
    if (!this.truth.isWhole)
      this.habitat.found("the-journal-is-mended", "the journal still lacks lost records");
    for (const { id, knownIdx } of this.#coordinators)
      if ((knownIdx ?? 0) < idx)
        this.habitat.found(
          "standbys-follow",
          `${id} holds batch ${knownIdx ?? 0}, but the journal had batch ${idx} a second ago`,
        );
  }

  #noteUnheard(): void {
    for (const { id, awaited } of this.#clients)
      for (const task of awaited)
        this.habitat.found("endings-are-notified", `${id} still waits for ${task}, which has ended`);
  }
}
