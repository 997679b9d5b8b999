// The world of the model of segments: coordinators, one server, clients, and a scheduler. The scheduler picks
// the next node, the fate of each request, and each fault. Every choice goes through `choose`, so a schedule is
// a seed, or a short list of deviations from the fault-free run. Checkers judge each answer and the end.

import {
  Coordinator,
  type ReadBack,
  type Reply,
  type Request,
  type Rule,
  type Surroundings,
} from "./coordinator.ts";
import { type Answer, type Choose, LogService, type Operation, type Store } from "./log-service.ts";
import type { Batch, StoredRecord, Term } from "./records.ts";
import { restartLog } from "./segment-view.ts";

/** `inside`: within the fault model (docs/fault-model.md). `outside`: anything. */
export type Profile = "inside" | "outside";

export interface WorldOptions {
  readonly store: Store;
  readonly profile: Profile;
  readonly without?: readonly Rule[];
  /** Behind other servers a power loss may also take a claim, an `Opened` or a seal. Default false. */
  readonly losesSeals?: boolean;
  readonly coordinators?: number;
  /** Number of steps with faults. */
  readonly steps?: number;
  readonly choose: Choose;
  readonly isTraced?: boolean;
}

export interface Violation {
  readonly kind: "lost" | "doubled" | "silent loss" | "halted" | "no leader" | "restart differs" | "deleted";
  readonly sentence: string;
  readonly step: number;
}

interface Pending {
  readonly request: Request;
  readonly since: number;
  readonly answers: (Answer | undefined)[];
}

interface Node {
  readonly id: string;
  process: Coordinator | undefined;
  sessions: number;
  pending: Pending | undefined;
  isPaused: boolean;
  isCut: boolean;
  epoch: number;
  order: "compact" | "hand-over" | undefined;
}

/** An acknowledgement to a client. */
interface Acknowledged {
  readonly batch: Batch;
  readonly terms: readonly Term[];
  isKnownLost: boolean;
}

const SETTLE_STEPS = 6_000;
const SYNC_EVERY = 40;
const TASK_EVERY = 12;

export class World implements Surroundings {
  readonly violations: Violation[] = [];
  readonly trace: string[] = [];
  readonly #options: WorldOptions;
  readonly #service: LogService;
  readonly #nodes: Node[];
  readonly #late: Operation[] = [];
  readonly #acknowledged: Acknowledged[] = [];
  readonly #tasks: string[] = [];
  readonly #answeredTasks = new Set<string>();
  #step = 0;
  #isQuiet = false;
  #isDamaged = false;
  /** The journal lost records, and may still miss them. */
  #mayMiss = false;
  /** When the journal last lost records. */
  #lossAt = -1;
  /** When a leader began to read the remaining segments, by the segment to delete. */
  readonly #readBackAt = new Map<number, number>();
  #syncedChain: readonly Batch[] = [];
  #turn = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#service = new LogService(options.store, (count, label) => this.#choose(count, label));
    this.#nodes = Array.from({ length: options.coordinators ?? 3 }, (_, at) => ({
      id: "ABCDE"[at] ?? "Z",
      process: undefined,
      sessions: 0,
      pending: undefined,
      isPaused: false,
      isCut: false,
      epoch: 0,
      order: undefined,
    }));
    for (const node of this.#nodes) this.#start(node);
  }

  /** Faults first, then a quiet phase until the promises hold or clearly will not. */
  run(): readonly Violation[] {
    const steps = this.#options.steps ?? 500;
    while (this.#step < steps && this.violations.length === 0) {
      this.#strike();
      this.#go();
    }
    if (this.violations.length > 0) return this.violations;
    this.#heal();
    const end = this.#step + SETTLE_STEPS;
    const last = this.#newTask();
    while (this.#step < end && this.violations.length === 0 && !this.#isSettled(last)) this.#go();
    if (this.violations.length === 0) this.#judge(last);
    return this.violations;
  }

  // What coordinators see

  #current: Node | undefined;

  now(): number {
    return this.#step;
  }

  epoch(): number {
    return this.#current?.epoch ?? 0;
  }

  has(rule: Rule): boolean {
    return this.#options.without?.includes(rule) !== true;
  }

  nextTasks(): readonly string[] {
    return this.#tasks.filter((task) => !this.#answeredTasks.has(task));
  }

  hasOrder(coordinator: string, order: "compact" | "hand-over"): boolean {
    const node = this.#nodes.find(({ id }) => id === coordinator);
    if (node?.order !== order) return false;
    node.order = undefined;
    return true;
  }

  answered(by: Coordinator, batch: Batch): void {
    this.#compareWithAcknowledged(by);
    this.#mayMiss ||= this.#lossAt >= 0; // the loss may have taken the batch after its acknowledgement
    for (const task of batch.tasks) this.#answeredTasks.add(task);
    if (batch.tasks.length > 0)
      this.#acknowledged.push({ batch, terms: by.log?.terms ?? [], isKnownLost: false });
    if (batch.tasks.length > 0)
      this.note(`${by.id} answers: ${batch.tasks.join()} accepted in ${batch.term}.${batch.idx}`);
  }

  asked(of: Coordinator): void {
    this.#compareWithAcknowledged(of);
  }

  /** The segments read back must give the held log without the deleted segment. Damage after the reading is not
   *  the deletion's fault: the leader holds the log, notices the damage and writes a base, as the end of the
   *  run shows. */
  deletes(by: Coordinator, segment: number, { at, recordsBySegment }: ReadBack): void {
    this.note(`${by.id} deletes segment ${segment}`);
    this.#readBackAt.set(segment, at);
    const kept = new Map(
      [...recordsBySegment].filter(([each]) => each !== segment && !this.#readBackAt.has(each)),
    );
    const log = restartLog(kept);
    const chain = log === "unreadable" ? [] : log.chain;
    const held = by.log?.chain ?? [];
    if (chain[held.length - 1]?.hash === held.at(-1)?.hash) return;
    this.#violate(
      "deleted",
      `without segment ${segment} what ${by.id} read gives ${chain.length} of ${held.length}`,
    );
  }

  note(sentence: string): void {
    if (this.#options.isTraced === true) this.trace.push(`${this.#step}: ${sentence}`);
  }

  // The schedule

  #choose(count: number, label: string): number {
    if (count <= 1 || this.#isQuiet) return 0;
    return this.#options.choose(count, label);
  }

  #go(): void {
    this.#step += 1;
    if (this.#step % SYNC_EVERY === 0) this.#sync();
    if (!this.#isQuiet && this.#step % TASK_EVERY === 0) this.#newTask();
    const ready = this.#nodes.filter((node) => this.#isReady(node));
    const lateOnes = this.#late.length > 0 && !this.#isQuiet ? 1 : 0;
    if (ready.length + lateOnes === 0) return;
    const pick = this.#choose(ready.length + lateOnes, "turn");
    const node = ready[(pick + this.#turn) % Math.max(1, ready.length)];
    if (pick >= ready.length || node === undefined) return this.#runLate();
    this.#turn += 1;
    this.#advance(node);
  }

  #sync(): void {
    this.#service.sync();
    this.#syncedChain = this.#storedChain() ?? [];
  }

  #isReady({ process, pending, isPaused }: Node): boolean {
    if (process === undefined || process.role === "halted" || pending === undefined || isPaused) return false;
    return pending.request.ask !== "time" || this.#step >= pending.since + pending.request.steps;
  }

  #advance(node: Node): void {
    const { pending } = node;
    if (pending === undefined) return;
    if (pending.request.ask === "time") return this.#resume(node, { reply: "time" });
    if (pending.request.ask === "others")
      return this.#resume(node, { reply: "others", held: this.#heldByOthers(node) });
    const open = pending.answers.indexOf(undefined);
    const operation = pending.request.operations[open];
    if (operation !== undefined) pending.answers[open] = this.#carry(node, operation);
    const answers = pending.answers.filter((answer) => answer !== undefined);
    if (answers.length === pending.answers.length) this.#resume(node, { reply: "server", answers });
  }

  /** Done and answered; done, with a lost answer; late or never. */
  #carry(node: Node, operation: Operation): Answer {
    const fate = node.isCut ? 2 : this.#choose(3, "fate");
    if (fate === 2) {
      if (!node.isCut && mayComeLate(operation)) this.#late.push(operation);
      this.note(`${node.id} ${describe(operation)}: no answer`);
      return { kind: "unknown" };
    }
    const answer = this.#run(operation);
    this.note(
      `${node.id} ${describe(operation)}: ${answer.kind}${answer.kind === "refused" ? ` ${answer.why}` : ""}${fate === 1 ? ", answer lost" : ""}`,
    );
    return fate === 1 ? { kind: "unknown" } : answer;
  }

  #runLate(): void {
    const at = this.#choose(this.#late.length, "late");
    const [operation] = this.#late.splice(at, 1);
    if (operation === undefined) return;
    const answer = this.#run(operation);
    this.note(`late: ${describe(operation)}: ${answer.kind}`);
  }

  /** A deletion must keep everything that a restart reads, unless damage came after the leader's reading. */
  #run(operation: Operation): Answer {
    if (operation.op !== "delete") return this.#service.run(operation);
    const before = this.#storedChain() ?? [];
    const answer = this.#service.run(operation);
    const after = this.#storedChain() ?? [];
    const { segment } = operation;
    if (after.length < before.length && this.#lossAt < (this.#readBackAt.get(segment) ?? 0))
      this.#violate(
        "deleted",
        `with segment ${segment} the journal gives ${after.length} of ${before.length}`,
      );
    return answer;
  }

  #heldByOthers(node: Node) {
    if (node.isCut) return [];
    const others = this.#nodes.filter((other) => other !== node && isHealthy(other));
    return others.flatMap(({ process }) => (process?.held === undefined ? [] : [process.held]));
  }

  #start(node: Node): void {
    node.sessions += 1;
    node.order = undefined;
    this.#current = node;
    node.process = new Coordinator(node.id, `${node.id}${node.sessions}`, this);
    this.#goOn(node, node.process.steps.next());
  }

  #resume(node: Node, reply: Reply): void {
    this.#current = node;
    if (node.process !== undefined) this.#goOn(node, node.process.steps.next(reply));
    const { process } = node;
    if (process?.role === "halted" && this.#options.profile === "inside")
      this.#violate("halted", `${node.id}: ${process.haltedBecause ?? "no reason"}`);
  }

  #goOn(node: Node, result: IteratorResult<Request, void>): void {
    if (result.done === true) {
      node.pending = undefined;
      return;
    }
    const request = result.value;
    const count = request.ask === "server" ? request.operations.length : 0;
    node.pending = { request, since: this.#step, answers: Array.from({ length: count }, () => undefined) };
  }

  #newTask(): string {
    const task = `t${this.#tasks.length + 1}`;
    this.#tasks.push(task);
    return task;
  }

  // Faults

  #strike(): void {
    const faults = this.#possibleFaults();
    const picked = this.#choose(faults.length + 1, "fault");
    if (picked > 0) faults[picked - 1]?.();
  }

  #possibleFaults(): (() => void)[] {
    const faults: (() => void)[] = [];
    for (const node of this.#nodes) {
      if (node.process === undefined) faults.push(() => this.#restart(node));
      else if (node.process.role === "halted") faults.push(() => this.#crash(node));
      else if (node.isPaused) faults.push(() => this.#continue(node));
      else if (node.isCut) faults.push(() => this.#reconnect(node));
      else
        for (const strike of [this.#crash, this.#pause, this.#cut])
          faults.push(() => node !== this.#guardian() && strike.call(this, node));
      if (node.process?.role === "leading")
        faults.push(
          () => this.#order(node, "compact"),
          () => this.#order(node, "hand-over"),
        );
    }
    faults.push(() => this.#writeForeign());
    if (this.#options.store !== "three")
      for (const strike of this.#options.store === "one"
        ? [this.#losePower, this.#damage]
        : [this.#losePower])
        faults.push(() => this.#guardian() === undefined && strike.call(this));
    return faults;
  }

  #order(node: Node, order: "compact" | "hand-over"): void {
    node.order = order;
    this.note(`${node.id} is asked to ${order}`);
  }

  #crash(node: Node): void {
    this.note(`${node.id} crashes`);
    this.#leaveLate(node);
    node.process = undefined;
    node.pending = undefined;
  }

  #restart(node: Node): void {
    this.note(`${node.id} starts`);
    node.isPaused = false;
    node.isCut = false;
    this.#start(node);
  }

  #pause(node: Node): void {
    this.note(`${node.id} is paused`);
    node.isPaused = true;
  }

  #continue(node: Node): void {
    this.note(`${node.id} continues`);
    node.isPaused = false;
  }

  #cut(node: Node): void {
    this.note(`${node.id} is cut off`);
    this.#leaveLate(node);
    this.#loseAnswers(node);
    node.isCut = true;
  }

  #reconnect(node: Node): void {
    this.note(`${node.id} is connected again`);
    node.isCut = false;
    node.epoch += 1;
  }

  /** Requests in flight may still arrive. */
  #leaveLate({ pending }: Node): void {
    if (pending?.request.ask !== "server") return;
    pending.request.operations.forEach((operation, at) => {
      if (pending.answers[at] === undefined && mayComeLate(operation)) this.#late.push(operation);
    });
  }

  #loseAnswers({ pending }: Node): void {
    pending?.answers.fill({ kind: "unknown" });
  }

  /** Requests in flight are lost. Every connection to the server itself breaks. */
  #losePower(): void {
    this.#late.length = 0;
    this.#mayMiss = true;
    this.#lossAt = this.#step;
    for (const node of this.#nodes) {
      this.#loseAnswers(node);
      if (this.#options.store === "one") node.epoch += 1;
    }
    this.note(`power loss: ${this.#service.losePower((segment, length) => this.#mayLose(segment, length))}`);
    const stored = hashesOf(this.#storedChain() ?? []);
    const gone = this.#syncedChain.filter(({ hash }) => !stored.has(hash));
    if (gone.length > 0 && !this.#isDamaged)
      this.#violate("deleted", `a power loss took ${gone.length} synced batches`);
  }

  /** A foreign client with permission to publish can append. */
  #writeForeign(): void {
    const contents = this.#service.contents;
    const segments = [...contents.keys()];
    const segment = segments[this.#choose(segments.length, "foreign")];
    if (segment === undefined) return;
    const expected = contents.get(segment)?.length ?? 0;
    this.note(`a foreign record in segment ${segment}`);
    this.#service.run({ op: "append", segment, expected, record: { kind: "foreign", session: "X" } });
  }

  #damage(): void {
    const places = [...this.#service.contents].flatMap(([segment, records]) =>
      records
        .map((_, position) => ({ segment, position }))
        .filter(({ position }) => this.#mayLose(segment, position)),
    );
    const place = places[this.#choose(places.length, "damage")];
    if (place === undefined) return;
    this.#isDamaged = true;
    this.#mayMiss = true;
    this.#lossAt = this.#step;
    this.note(`damage: record ${place.position + 1} of segment ${place.segment}`);
    this.#service.loseWithin(place.segment, place.position);
  }

  /** Inside the fault model, only records held by a living, connected coordinator may be lost. Without `losesSeals`, a
   *  claim, `Opened` or seal is lost only with every connection: its coordinator then takes the lead again. */
  #mayLose(segment: number, length: number): boolean {
    if (this.#options.profile === "outside") return true;
    const holder = this.#longestHealthy()?.process?.log;
    if (holder === undefined) return false;
    const held = hashesOf(holder.chain);
    const atStake = this.#atStake();
    const records = this.#service.contents.get(segment) ?? [];
    const areBatches = records.slice(length).every(({ kind }) => kind === "batch" || kind === "foreign");
    if (this.#options.store === "remote" && this.#options.losesSeals !== true && !areBatches) return false;
    const isHeld = (hash: string) => held.has(hash) || !atStake.has(hash);
    return (
      records
        .slice(length)
        .flatMap(batchesIn)
        .every(({ hash }) => isHeld(hash)) && [...atStake].every(isHeld)
    );
  }

  /** The only coordinator that can restore the journal's lost records. Faults spare the coordinator until the
   *  restoration. */
  #guardian(): Node | undefined {
    if (this.#options.profile === "outside" || !this.#mayMiss) return undefined;
    const chain = this.#storedChain();
    const stored = hashesOf(chain ?? []);
    this.#mayMiss = chain === undefined || ![...this.#atStake()].every((hash) => stored.has(hash));
    return this.#mayMiss ? this.#longestHealthy() : undefined;
  }

  /** Batches acknowledged to a client, or read by a coordinator. */
  #atStake(): ReadonlySet<string> {
    const held = this.#nodes.flatMap(({ process }) => process?.log?.chain ?? []);
    return hashesOf([...this.#acknowledged.map(({ batch }) => batch), ...held]);
  }

  #longestHealthy(): Node | undefined {
    const lengthOf = ({ process }: Node) => process?.log?.chain.length ?? -1;
    const healthy = this.#nodes.filter(isHealthy).sort((a, b) => lengthOf(b) - lengthOf(a));
    return healthy[0];
  }

  // Checkers

  #compareWithAcknowledged(by: Coordinator): void {
    const chain = by.log?.chain ?? [];
    const terms = by.log?.terms ?? [];
    for (const acknowledged of this.#acknowledged) {
      if (acknowledged.isKnownLost || chain[acknowledged.batch.idx - 1]?.hash === acknowledged.batch.hash)
        continue;
      const sentence = `${by.id} in term ${terms.at(-1)?.term} up to ${chain.length} lacks ${acknowledged.batch.tasks.join()} of ${acknowledged.batch.term}.${acknowledged.batch.idx}`;
      if (this.#options.profile === "inside") this.#violate("lost", sentence);
      else if (isVisible(acknowledged, terms, chain.length)) acknowledged.isKnownLost = true;
      else this.#violate("silent loss", sentence);
    }
  }

  #storedChain(): readonly Batch[] | undefined {
    const log = restartLog(this.#service.contents);
    return log === "unreadable" ? undefined : log.chain;
  }

  #heal(): void {
    for (const node of this.#nodes) {
      if (node.process === undefined) this.#restart(node);
      if (node.isCut) this.#reconnect(node);
      node.isPaused = false;
      node.order = undefined;
    }
    this.note("all faults end");
    this.#isQuiet = true;
  }

  #isSettled(last: string): boolean {
    if (this.#options.profile === "outside" && this.#nodes.every(({ process }) => process?.role === "halted"))
      return true;
    // A restart may need the base that the leader writes after noticing damage, so the run waits for it.
    const isStored = this.#storedChain()?.some(({ tasks }) => tasks.includes(last)) === true;
    return this.#isAcceptedByAll(last) && (isStored || this.#options.profile === "outside");
  }

  #isAcceptedByAll(last: string): boolean {
    if (!this.#answeredTasks.has(last)) return false;
    const running = this.#nodes.filter(({ process }) => process?.role !== "halted");
    return running.every(
      ({ process }) => process?.log?.chain.some(({ tasks }) => tasks.includes(last)) === true,
    );
  }

  #judge(last: string): void {
    if (this.#options.profile === "outside") return;
    if (!this.#isAcceptedByAll(last)) {
      const roles = this.#nodes.map(({ id, process }) => `${id} ${process?.role}`).join(", ");
      return this.#violate(
        "no leader",
        `${last} is not accepted by all after ${SETTLE_STEPS} quiet steps: ${roles}`,
      );
    }
    const stored = this.#storedChain() ?? [];
    const counts = new Map<string, number>();
    for (const task of stored.flatMap(({ tasks }) => tasks)) counts.set(task, (counts.get(task) ?? 0) + 1);
    for (const [task, count] of counts)
      if (count > 1) this.#violate("doubled", `${task} is accepted ${count} times`);
    for (const { batch } of this.#acknowledged)
      if (stored[batch.idx - 1]?.hash !== batch.hash)
        this.#violate("lost", `${batch.tasks.join()} is not in the journal`);
    for (const { id, process } of this.#nodes) {
      const chain = process?.log?.chain ?? [];
      const common = Math.min(chain.length, stored.length);
      if (chain.slice(0, common).some(({ hash }, at) => hash !== stored[at]?.hash))
        this.#violate("restart differs", `${id} holds another log than the journal gives`);
    }
  }

  #violate(kind: Violation["kind"], sentence: string): void {
    this.violations.push({ kind, sentence, step: this.#step });
    this.note(`VIOLATION ${kind}: ${sentence}`);
  }
}

function hashesOf(chain: readonly Batch[]): Set<string> {
  return new Set(chain.map(({ hash }) => hash));
}

function isHealthy({ process, isPaused, isCut }: Node): boolean {
  return process !== undefined && process.role !== "halted" && !isPaused && !isCut;
}

/** Rule 11: the present list of terms shows the loss to the client. The term is absent, or ended before the
 *  batch. */
function isVisible({ batch, terms }: Acknowledged, now: readonly Term[], idx: number): boolean {
  const opened = terms.find(({ term }) => term === batch.term)?.opened;
  const at = now.findIndex((term) => term.opened === opened);
  if (at === -1) return true;
  const next = now[at + 1];
  return next === undefined ? idx < batch.idx : next.firstIdx <= batch.idx;
}

/** Late reads have no effect. */
function mayComeLate({ op }: Operation): boolean {
  return op !== "list" && op !== "read";
}

function batchesIn(record: StoredRecord): readonly Batch[] {
  if (record.kind === "batch" || record.kind === "copy") return [record.batch];
  return record.kind === "base" ? record.log.chain : [];
}

function describe(operation: Operation): string {
  if (operation.op === "list") return "lists";
  const record =
    operation.op === "append" ? ` ${recordText(operation.record)} at ${operation.expected ?? "the end"}` : "";
  return `${operation.op} ${operation.segment}${record}`;
}

function recordText(record: StoredRecord): string {
  return record.kind === "batch" || record.kind === "copy"
    ? `${record.kind} ${record.batch.term}.${record.batch.idx}`
    : record.kind;
}
