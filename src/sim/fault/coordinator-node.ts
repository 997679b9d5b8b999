// A simulated machine that runs a coordinator, and restarts an ended coordinator as an operator's tools would.

import { baseMakerHere } from "../../coordinator/compacting/make-next-segment.ts";
import { type ProbedCoordinator, startProbedCoordinator } from "../../coordinator/coordinator.ts";
import type { PendingBatch } from "../../coordinator/leader/writer.ts";
import { timingOf } from "../../coordinator/timing.ts";
import type { WaggleError } from "../../errors.ts";
import { stateFingerprint } from "../history/check-readings.ts";
import type { Habitat } from "./habitat.ts";
import type { JournalTruth } from "./journal-truth.ts";
import { FAST_SHARE, type MachineClock, newMachine, type Session } from "./session.ts";
import type { SimJournal } from "./sim-journal.ts";
import type { CoordinatorCharacter } from "./workload.ts";

/** Delay before a restart after the coordinator ended by itself, ms. */
const RESTART_MS = 1_000;

export class CoordinatorNode {
  readonly id: string;
  readonly machine: MachineClock;
  readonly #character: CoordinatorCharacter;
  readonly #habitat: Habitat;
  readonly #truth: JournalTruth;
  #session: Session | undefined;
  #journal: SimJournal | undefined;
  #coordinator: ProbedCoordinator | undefined;
  #isLeading = false;
  #ledTerm = 0;
  /** Start of the current break of the connection to agents and clients, virtual ms. */
  #awayFromMs: number | undefined;
  /** Longest break of the connection in the term led. */
  #awayMs = 0;
  #restartMs = RESTART_MS;
  #isEnding = false;

  constructor(character: CoordinatorCharacter, habitat: Habitat, truth: JournalTruth) {
    this.id = character.id;
    this.#truth = truth;
    this.#character = character;
    this.#habitat = habitat;
    this.machine = newMachine();
  }

  /** Undefined while no coordinator runs. */
  get session(): Session | undefined {
    return this.#session;
  }

  get isLeading(): boolean {
    return this.#isLeading;
  }

  /**
   * The last batch that the coordinator holds. Undefined while none runs, or after a request to stop: the copy ends
   * with the process. A leader counts as holding all batches. It leads the newest term; or it was deposed unaware, and
   * its successor restores what both lose.
   */
  get knownIdx(): number | undefined {
    if (this.#coordinator === undefined || this.#isEnding) return undefined;
    return this.#isLeading ? Number.POSITIVE_INFINITY : (this.#coordinator.probe.settledState?.idx ?? 0);
  }

  /** Hash of a leader's last batch, unless batches are in flight. */
  get ledHash(): string | undefined {
    return this.#isLeading ? this.#coordinator?.probe.settledHash : undefined;
  }

  /** Batches decided, and not yet known to be in the journal. */
  get pending(): readonly PendingBatch[] {
    return this.#coordinator?.probe.pending ?? [];
  }

  start(): void {
    if (this.#session !== undefined) return;
    const { swarm } = this.#habitat;
    const logger = this.#habitat.loggerOf(this.id);
    const session = this.#habitat.newSession(this.id, this.machine);
    const journal = this.#habitat.newJournal(this.id, session);
    this.#session = session;
    this.#journal = journal;
    this.#restartMs = RESTART_MS;
    const transport = this.#habitat.newConnection(this.id, session);
    this.#awayFromMs = undefined;
    transport.onStatus((status) => this.#noteStatus(status === "connected"));
    const { clock, random } = session;
    const { everyEvents, retention, baseSyncMs, leaderTimeoutMs } = this.#character;
    const maker = baseMakerHere({ journal, clock });
    const compaction = { maker, retention, everyEvents, baseSyncMs };
    const options = { id: this.id, swarm, transport, journal, compaction, clock, random, logger };
    startProbedCoordinator({ ...options, leaderTimeoutMs }).then(
      (coordinator) => this.#runs(coordinator),
      (error) => this.#ended(error),
    );
  }

  crash(forMs: number): void {
    if (this.#session === undefined) return;
    if (this.#isLeading && (this.#journal?.inFlight ?? 0) > 0)
      this.#habitat.occurrences.note("leader-killed-with-batches-in-flight");
    this.#end(forMs);
  }

  /** Asks the coordinator to stop, as by SIGTERM. */
  stop(forMs: number): void {
    const coordinator = this.#coordinator;
    this.#restartMs = forMs;
    this.#isEnding = coordinator !== undefined;
    // Asked within the session, so a coordinator killed meanwhile does nothing.
    if (coordinator !== undefined) this.#session?.after(0, "stop", () => void coordinator.stop());
  }

  /** Records the coordinator's state at its last batch, unless batches are in flight. */
  read(): void {
    const { settledState: state, settledHash: hash } = this.#coordinator?.probe ?? {};
    if (state === undefined || hash === undefined || state.idx === 0) return;
    const reader = this.#isLeading ? `leader ${this.id}` : `standby ${this.id}`;
    this.#habitat.readings.push({ reader, idx: state.idx, hash, state: stateFingerprint(state) });
  }

  #runs(coordinator: ProbedCoordinator): void {
    this.#coordinator = coordinator;
    const [first = 1] = this.#habitat.segmentNumbers();
    if (first > 1) this.#habitat.occurrences.note("begun-from-a-base");
    coordinator.role$.subscribe((role) => this.#became(role));
    void coordinator.closed.then((error) => this.#ended(error));
  }

  #became(role: string): void {
    const wasLeading = this.#isLeading;
    this.#isLeading = role === "leading";
    if (this.#isLeading) void this.#coordinator?.whenLeading().then((term) => this.#led(term));
    if (!wasLeading || role !== "standing-by") return;
    this.#requireReason();
    this.#habitat.occurrences.note("deposed");
    if ((this.#journal?.inFlight ?? 0) > 0) this.#habitat.occurrences.note("deposed-with-batches-in-flight");
  }

  #led(term: number): void {
    this.#ledTerm = term;
    this.#awayMs = 0;
  }

  #noteStatus(isConnected: boolean): void {
    const { nowMs } = this.#habitat.engine;
    if (this.#awayFromMs !== undefined) this.#awayMs = Math.max(this.#awayMs, nowMs - this.#awayFromMs);
    this.#awayFromMs = isConnected ? undefined : (this.#awayFromMs ?? nowMs);
  }

  /**
   * A leader gives up its term only if another coordinator sealed the segment, or after a long break of its connection.
   */
  #requireReason(): void {
    const { term } = this.#truth.readOn();
    const { live } = this.#truth; // perhaps opened, without a batch yet
    if (!this.#truth.isWhole || Math.max(term, live?.opened.term ?? 0) > this.#ledTerm) return;
    this.#noteStatus(this.#awayFromMs === undefined);
    const { isolationMs } = timingOf(this.#character.leaderTimeoutMs);
    const wasIsolated = this.#awayMs >= isolationMs * FAST_SHARE;
    if (wasIsolated) this.#habitat.occurrences.note("isolated-leader-stepped-down");
    else if (!this.#truth.isSealed)
      this.#habitat.found(
        "leaders-lead-on",
        `${this.id} ended term ${this.#ledTerm} with its segment unsealed`,
      );
  }

  /** The coordinator ended by itself, or never started. */
  #ended(error: WaggleError | undefined): void {
    // A starting coordinator does not wait for an unreachable server: the machine restarts it.
    const isTooEarly = this.#coordinator === undefined && error?.code === "WAGGLE_UNREACHABLE";
    if (error !== undefined && !isTooEarly)
      this.#habitat.found("coordinators-go-on", `${this.id} halted: ${textOf(error)}`);
    const staysDown = this.#habitat.profile === "outside" && error !== undefined && !isTooEarly;
    this.#end(staysDown ? undefined : this.#restartMs); // outside the fault model an operator decides
  }

  /** @param forMs undefined: no restart */
  #end(forMs: number | undefined): void {
    this.#session?.kill();
    this.#session = undefined;
    this.#coordinator = undefined;
    this.#isLeading = false;
    this.#isEnding = false;
    if (forMs !== undefined) this.#habitat.engine.after(forMs, "start", () => this.start());
  }
}

function textOf(error: WaggleError): string {
  const { cause } = error;
  return cause instanceof Error ? `${error.message} (${cause.stack ?? cause.message})` : error.message;
}
