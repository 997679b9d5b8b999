// Carries out the faults of a schedule, from the begin to the end of each. Simultaneous faults add up.

import { unreachable } from "../../assert.ts";
import type { Engine } from "./engine.ts";
import {
  BUSY,
  type Fault,
  type FaultKind,
  journalOf,
  LEADER,
  losses,
  type Profile,
  STANDBY,
} from "./fault.ts";
import type { JournalCondition } from "./journal-fates.ts";
import type { Condition, Direction, Link } from "./link.ts";

/** The targets of faults. */
export interface Victims {
  links(): Iterable<Link>;
  /** The leader, or the likely next leader. */
  leader(): string;
  /** T of the current term. */
  readonly timeoutMs: number;
  /** A coordinator without the lead. */
  standby(): string;
  /** The agent whose attempt may still take longest, or any agent. */
  busiest(): string;
  /** Ends the node's process at once, and restarts it after `forMs`. */
  crash(node: string, forMs: number): void;
  /**
   * Ends all coordinators at once. `node` restarts after `forMs`, its wall clock set forward, and the rest after as
   * long again.
   */
  blackout(node: string, options: { forMs: number; ms: number }): void;
  /** Asks the node to end, and restarts it `forMs` after its end. */
  stop(node: string, forMs: number): void;
  pause(node: string, forMs: number): void;
  setSlow(node: string, ms: number): void;
  jumpClock(node: string, ms: number): void;
  /** Sets all clocks wrong, differently per machine: wall clocks differ, and monotonic clocks drift apart. */
  skewClocks(): void;
  startTwin(node: string): void;
  /** Restarts the agent's process, and starts a second process under the same id after `ms`. */
  usurp(node: string, ms: number): void;
  /** Breaks the connections over the link. */
  disconnect(link: string): void;
  setJournal(condition: JournalCondition | undefined): void;
  writeForeign(): void;
  /** Writes the next batch of a copy of the swarm whose last batch differs. */
  writeBranch(): void;
  /** Loses the last records of the newest segment, at most `count`. */
  cutTail(count: number): void;
  /** Loses the newest segment. */
  loseSegment(): void;
  /** Flips a bit of a recent record, and restarts a standby. */
  flipBit(): void;
  /** Stops serving a coordinator's reader of the journal, without telling the reader. */
  stopServing(node: string): void;
  /** Whether every coordinator must be spared until the journal continues from the copies of coordinators. */
  readonly isDelicate: boolean;
  /** Whether a node is an agent or a client. */
  isBystander(node: string): boolean;
  /** Loses records before the last record, at most `count`. */
  makeGap(count: number): void;
  /** Restarts the server: readers must create new consumers. */
  restartServer(): void;
}

/** Target of faults without a node. */
export const SERVER = "server";

export class Nemesis {
  readonly #engine: Engine;
  readonly #victims: Victims;
  readonly #profile: Profile;
  readonly #active = new Set<Fault>();
  /** All faults begun so far. */
  readonly #begun: Fault[] = [];

  constructor(engine: Engine, victims: Victims, profile: Profile = "inside") {
    this.#engine = engine;
    this.#victims = victims;
    this.#profile = profile;
  }

  /** Plans every fault. Call once, at the beginning. */
  follow(schedule: readonly Fault[]): void {
    for (const planned of schedule) {
      this.#engine.after(planned.atMs, planned.kind, () => {
        if (!this.#mayBegin(planned)) return;
        const fault = this.#aimed(planned);
        this.#begin(fault);
        this.#engine.after(fault.forMs, "over", () => this.#end(fault));
      });
    }
  }

  /**
   * The fault model: the store loses records only while every coordinator reaches the journal and its peers. After a
   * loss the coordinators are spared until the journal continues.
   */
  #mayBegin(fault: Fault): boolean {
    if (this.#profile === "outside") return true;
    const sparesCoordinators = (each: Fault) => this.#victims.isBystander(whoOf(each));
    if (this.#victims.isDelicate && !sparesCoordinators(fault)) return false;
    return !isLoss(fault) || [...this.#active].every(sparesCoordinators);
  }

  /**
   * The last time before an instant at which a fault kept a node from receiving or sending, virtual ms. A crash does
   * not count.
   */
  touchedMs(node: string, untilMs: number): number {
    const touching = this.#begun.filter(
      (fault) => fault.kind !== "crash" && isAbout(fault, node) && fault.atMs <= untilMs,
    );
    return Math.max(Number.NEGATIVE_INFINITY, ...touching.map((fault) => Math.min(endOf(fault), untilMs)));
  }

  /** End of the last fault begun so far, virtual ms; perhaps in the future. */
  get calmSinceMs(): number {
    return Math.max(Number.NEGATIVE_INFINITY, ...this.#begun.map(endOf));
  }

  /** Resolves `leader`, `standby` and `busy` to a node at the begin of the fault. */
  #aimed(fault: Fault): Fault {
    const { of } = fault;
    if (of === BUSY) return { ...fault, of: this.#victims.busiest() };
    if (of?.startsWith(STANDBY) === true)
      return { ...fault, of: of.replace(STANDBY, this.#victims.standby()) };
    return of?.startsWith(LEADER) === true
      ? { ...fault, of: of.replace(LEADER, this.#victims.leader()) }
      : fault;
  }

  #begin(fault: Fault): void {
    const { kind, of = "", forMs, ms = 0 } = fault;
    this.#active.add(fault);
    this.#begun.push(fault);
    switch (kind) {
      case "crash":
        return this.#victims.crash(of, forMs);
      case "blackout":
        return this.#victims.blackout(of, { forMs, ms });
      case "transfer":
        return this.#victims.stop(of, forMs);
      case "pause":
        return this.#victims.pause(of, forMs);
      case "clock-jump":
        return this.#victims.jumpClock(of, ms);
      case "skew":
        return this.#victims.skewClocks();
      case "twin":
        return this.#victims.startTwin(of);
      case "twin-after-restart":
        this.#victims.usurp(of, forMs / 2);
        return this.#changeWeather(fault);
      case "foreign":
        return this.#intrude(fault);
      case "other-branch":
        return this.#victims.writeBranch();
      case "slow":
        return this.#victims.setSlow(of, ms);
      case "tail-cut":
        return this.#victims.cutTail(fault.count ?? 1);
      case "segment-lost":
        return this.#victims.loseSegment();
      case "bit-flip":
        return this.#victims.flipBit();
      case "gap":
        return this.#victims.makeGap(fault.count ?? 1);
      case "dead-reader":
        return this.#victims.stopServing(of);
      case "fail-over":
        if (fault.of !== undefined) this.#victims.crash(of, ms / 4);
        for (const phaseMs of [ms, forMs - ms])
          this.#engine.after(phaseMs, kind, () => this.#changeWeather(fault));
        return this.#changeWeather(fault);
      case "agents-silent":
        this.#engine.after(ms, kind, () => this.#changeWeather(fault));
        return this.#changeWeather(fault);
      case "server-restart":
        this.#victims.restartServer();
        return this.#changeWeather(fault);
      case "delay":
      case "loss":
      case "duplicate":
      case "reorder":
      case "cut":
      case "isolated":
      case "partition":
      case "out-of-touch":
      case "clog":
      case "staggered-clog":
      case "answers-lost":
      case "disconnect":
      case "ack-lost":
      case "append-late":
      case "append-dropped":
      case "false-refusal":
      case "false-duplicate":
      case "stale-read":
      case "not-found":
      case "full":
      case "journal-off":
      case "no-responders":
        return this.#changeWeather(fault);
      default:
        return unreachable(kind);
    }
  }

  /** Writes once, or with an interval repeatedly until the end of the fault. */
  #intrude(fault: Fault): void {
    if (!this.#active.has(fault)) return;
    this.#victims.writeForeign();
    if (fault.ms !== undefined) this.#engine.after(fault.ms, fault.kind, () => this.#intrude(fault));
  }

  #end(fault: Fault): void {
    this.#active.delete(fault);
    if (fault.kind === "slow") this.#victims.setSlow(fault.of ?? "", 0);
    else this.#changeWeather(fault);
  }

  #changeWeather(changed: Fault): void {
    for (const link of this.#victims.links()) {
      if (!touches(changed, link.name)) continue;
      const faults = [...this.#active]
        .filter((fault) => touches(fault, link.name))
        .map((fault) => asSeenBy(link.name, fault));
      link.side = sideOf(link.name, this.#active);
      link.isAlone = faults.some(({ kind }) => kind === "isolated");
      link.isDown = faults.some(({ kind }) => kind === "disconnect" || kind === "server-restart");
      link.set("up", conditionOf(faults, "up"));
      link.set("down", conditionOf(faults, "down"));
      const breaks = changed.kind === "disconnect" || changed.kind === "server-restart";
      if (breaks && this.#active.has(changed)) this.#victims.disconnect(link.name);
    }
    this.#victims.setJournal(journalConditionOf([...this.#active], this.#engine.nowMs));
  }
}

/** The node that a fault isolates; the journal's faults isolate none. */
function whoOf({ kind, of }: Fault): string {
  return of ?? (kind === "server-restart" ? SERVER : kind);
}

const linkKinds: ReadonlySet<FaultKind> = new Set<FaultKind>([
  "delay",
  "loss",
  "duplicate",
  "reorder",
  "cut",
  "clog",
  "staggered-clog",
  "answers-lost",
  "disconnect",
  "out-of-touch",
  "twin-after-restart",
]);

function isLoss({ kind }: Fault): boolean {
  return losses.some((loss) => loss === kind);
}

/** Faults that stop all messages in their directions. */
const cuts: ReadonlySet<FaultKind> = new Set<FaultKind>([
  "cut",
  "answers-lost",
  "disconnect",
  "out-of-touch",
]);

/** …and faults that deliver the held messages at their end. */
const clogs: ReadonlySet<FaultKind> = new Set<FaultKind>(["clog", "staggered-clog"]);

/** A partition isolates every node from some node. */
function isAbout(fault: Fault, node: string): boolean {
  return fault.kind === "partition" || whoOf(fault) === node || isUnheard(fault, node);
}

function isUnheard({ kind, nodes = [] }: Fault, node: string): boolean {
  return kind === "agents-silent" && nodes.includes(node);
}

/** Links reach each other only if they are on the same side of every partition. */
function sideOf(link: string, active: Iterable<Fault>): string {
  const partitions = [...active].filter(({ kind }) => kind === "partition");
  return partitions.map(({ nodes = [] }) => (nodes.includes(link) ? "1" : "0")).join("");
}

function touches(fault: Fault, link: string): boolean {
  const { kind, of } = fault;
  if (kind === "partition" || isUnheard(fault, link)) return true;
  if (kind === "isolated") return link === of || link === journalOf(of);
  return kind === "server-restart" || (linkKinds.has(kind) && of === link);
}

/** For a coordinator's link to the journal, `isolated` and the far side of a partition are a cut. */
function asSeenBy(link: string, fault: Fault): Fault {
  const { kind, of, nodes = [] } = fault;
  if (isUnheard(fault, link)) return { ...fault, kind: "cut", direction: "up" };
  const isCut =
    (kind === "isolated" && link === journalOf(of)) ||
    (kind === "partition" && nodes.some((node) => link === journalOf(node)));
  return isCut ? { ...fault, kind: "cut" } : fault;
}

function conditionOf(faults: readonly Fault[], direction: Direction): Condition | undefined {
  const weather = faults.filter(
    (fault) => linkKinds.has(fault.kind) && (fault.direction === undefined || fault.direction === direction),
  );
  if (weather.length === 0) return undefined;
  const isLost = ({ kind }: Fault) =>
    cuts.has(kind) || (kind === "twin-after-restart" && direction === "down");
  return {
    lossShare: weather.some(isLost) ? 1 : shareOf(weather, "loss"),
    duplicateShare: shareOf(weather, "duplicate"),
    reorderShare: shareOf(weather, "reorder"),
    lateShare: shareOf(weather, "delay"),
    lateMs: Math.max(0, ...weather.map(({ kind, ms = 0 }) => (kind === "delay" ? ms : 0))),
    heldUntilMs: Math.max(0, ...weather.map((fault) => (clogs.has(fault.kind) ? endOf(fault) : 0))),
  };
}

function journalConditionOf(faults: readonly Fault[], nowMs: number): JournalCondition | undefined {
  const kinds = new Set(faults.map(({ kind }) => kind));
  const failOvers = faults.filter(({ kind }) => kind === "fail-over");
  const isUnderstated = (fault: Fault) => {
    const { atMs, ms = 0 } = fault;
    return nowMs < atMs + ms || nowMs >= endOf(fault) - ms;
  };
  const condition = {
    droppedShare: shareOf(faults, "append-dropped"),
    ackLostShare: shareOf(faults, "ack-lost"),
    lateShare: shareOf(faults, "append-late"),
    lateMs: Math.max(0, ...faults.map(({ kind, ms = 0 }) => (kind === "append-late" ? ms : 0))),
    falseRefusalShare: shareOf(faults, "false-refusal"),
    staleShare: failOvers.some(isUnderstated) ? 1 : shareOf(faults, "stale-read"),
    notFoundShare: shareOf(faults, "not-found"),
    falseDuplicateShare: shareOf(faults, "false-duplicate"),
    isFull: kinds.has("full"),
    isAway: kinds.has("server-restart"),
    isOff: kinds.has("journal-off"),
    isUnanswered:
      kinds.has("no-responders") ||
      failOvers.some((fault) => !isUnderstated(fault)) ||
      faults.some(({ kind, atMs, ms = 0 }) => kind === "agents-silent" && nowMs < atMs + ms),
  };
  return Object.values(condition).some(Boolean) ? condition : undefined;
}

/** The share of messages hit by at least one of several faults of a kind. */
function shareOf(faults: readonly Fault[], kind: Fault["kind"]): number {
  return (
    1 -
    faults.reduce((spared, fault) => (fault.kind === kind ? spared * (1 - (fault.share ?? 1)) : spared), 1)
  );
}

function endOf({ atMs, forMs }: Fault): number {
  return atMs + forMs;
}
