// A coordinator in the model of segments: restores, follows, takes the lead and leads by the twelve rules of
// docs/adr. A generator that yields its requests to the server, to time and to other coordinators; the
// scheduler (world.ts) decides when each answer comes. Each of the `rules` can be switched off, and a search
// must then fail.

import { createHash } from "node:crypto";
import type { Answer, Operation } from "./log-service.ts";
import type { Batch, Log, StoredRecord } from "./records.ts";
import {
  BASE_PARTS,
  inspect,
  lastHash,
  logOf,
  restartLog,
  type SegmentView,
  viewOf,
  withSegment,
} from "./segment-view.ts";

/** Each names a sentence of the rules that a search can leave out. */
export const rules = [
  "seal-before-reading",
  "nothing-behind-a-seal",
  "compare-with-held",
  "ask-the-others",
  "list-again",
  "one-writer",
  "verify-the-base",
  "growth-is-heartbeat",
  "seal-the-unopened",
  "look-after-reconnection",
  "fresh-answers",
  "number-once",
  "closing-with-nothing-in-flight",
  "synced-before-deletion",
  "whole-before-deletion",
  "inspect-each-timeout",
  "in-order",
  "restart-after-reconnection",
  "late-is-unknown",
  "look-after-silence",
  "outwait-the-leader",
  "read-the-end-again",
  "mind-claims",
] as const;

export type Rule = (typeof rules)[number];

/** T, in steps of the schedule. */
export const LEADER_TIMEOUT = 60;
/** Maximum age of the acknowledged append behind an answer: rule 9. */
const FRESH = 0.8 * LEADER_TIMEOUT;
const SYNC_INTERVAL = 80;
const IN_FLIGHT_MAX = 2;
const TRIES = 12;
/** Number of batches behind the newest base that makes a compaction due. */
const COMPACTION_DUE = 4;

export type Request =
  | { readonly ask: "server"; readonly operations: readonly Operation[] }
  | { readonly ask: "others" }
  | { readonly ask: "time"; readonly steps: number };

export type Reply =
  | { readonly reply: "server"; readonly answers: readonly Answer[] }
  | { readonly reply: "others"; readonly held: readonly Held[] }
  | { readonly reply: "time" };

/** A coordinator's report of its log. */
interface Held {
  readonly term: number;
  readonly idx: number;
}

/** The records that a leader read from step `at` on, before a deletion. */
export interface ReadBack {
  readonly at: number;
  readonly recordsBySegment: ReadonlyMap<number, readonly StoredRecord[]>;
}

/** The coordinator's interface to the world. */
export interface Surroundings {
  now(): number;
  /** Grows with each reconnection to the server. */
  epoch(): number;
  has(rule: Rule): boolean;
  nextTasks(): readonly string[];
  hasOrder(coordinator: string, order: "compact" | "hand-over"): boolean;
  /** A client learns of accepted tasks. */
  answered(by: Coordinator, batch: Batch): void;
  /** A client asks for the accepted tasks, and gets the content of the leader's log. */
  asked(of: Coordinator): void;
  /** The coordinator decided to delete `segment`. */
  deletes(by: Coordinator, segment: number, readBack: ReadBack): void;
  note(sentence: string): void;
}

interface Newest {
  readonly view: SegmentView;
  /** Folded onto the held log when an earlier segment cannot be read. */
  readonly log: Log | "unreadable";
  /** A restart, which holds nothing, can read the log as well. */
  readonly isWhole: boolean;
}

type Steps<Value> = Generator<Request, Value, Reply>;
type Stop = "stand-by" | "again" | "halt";

/** The connection broke: earlier requests are void. */
class Reconnected extends Error {}

export class Coordinator {
  readonly id: string;
  readonly session: string;
  readonly steps: Steps<void>;
  log: Log | undefined;
  role: "restoring" | "following" | "taking the lead" | "leading" | "halted" = "restoring";
  haltedBecause: string | undefined;
  readonly #world: Surroundings;
  #segment = 0;
  #position = 0;
  #baseIdx = 0;
  #highestSeen = 0;
  #heardAt: number;
  #sentAt = Number.NEGATIVE_INFINITY;
  #openedAt = 0;
  #inspectedAt = 0;
  #epoch = 0;
  #seen = { segment: 0, written: 0 };
  #inFlight: Batch[] = [];
  readonly #growth = new Map<number, { written: number; at: number }>();

  constructor(id: string, session: string, world: Surroundings) {
    this.id = id;
    this.session = session;
    this.#world = world;
    this.#heardAt = world.now();
    this.#epoch = world.epoch();
    this.steps = this.#run();
  }

  /** The answer to a peer's question of rule 5e. The log of a halted coordinator does not count. */
  get held(): Held | undefined {
    if (this.log === undefined || this.role === "halted") return undefined;
    return { term: this.log.terms.at(-1)?.term ?? 0, idx: this.log.chain.length };
  }

  get segment(): number {
    return this.#segment;
  }

  *#run(): Steps<void> {
    while (!this.#isHalted()) {
      try {
        yield* this.#live();
      } catch (error) {
        if (!(error instanceof Reconnected)) throw error;
        this.role = this.log === undefined ? "restoring" : "following";
      }
    }
  }

  *#live(): Steps<void> {
    for (;;) {
      this.#epoch = this.#world.epoch();
      if (this.role === "halted") return;
      yield* this.#follow();
      if (this.#isHalted()) return;
      if (this.#world.now() - this.#heardAt < LEADER_TIMEOUT) {
        yield { ask: "time", steps: 5 };
        continue;
      }
      this.role = "taking the lead";
      const outcome = yield* this.#takeTheLead([]);
      if (outcome === "halt") return;
      if (outcome === "leads") yield* this.#leadOn();
      if (this.#isHalted()) return;
      this.role = this.log === undefined ? "restoring" : "following";
      this.#heardAt = this.#world.now();
      this.#inFlight = [];
    }
  }

  #isHalted(): boolean {
    return this.role === "halted";
  }

  // Following

  /** Reads the live segment with the highest number, and takes over the batches that continue the log. */
  *#follow(): Steps<void> {
    const newest = yield* this.#newestLive();
    if (newest === undefined) return;
    const { view, log } = newest;
    const hasGrown = this.#hasGrown(view);
    if (hasGrown && view.writer !== this.session) this.#heardAt = this.#world.now();
    if (log === "unreadable") return;
    const standing = this.log === undefined ? "longer" : inspect(this.log.chain, log.chain);
    if (standing === "different" && this.#world.has("compare-with-held")) {
      this.#halt("the log continued differently");
      return;
    }
    if (standing === "shorter" && this.#world.has("compare-with-held")) return; // the log lost its end: T decides
    this.#adopt(view, log);
    this.role = "following";
    if (view.isClosing && !hasGrown) this.#heardAt = Number.NEGATIVE_INFINITY;
  }

  /** True if the writer wrote since the last call. */
  #hasGrown({ segment, written }: SegmentView): boolean {
    const before = this.#seen;
    this.#seen = { segment, written };
    return before.segment !== segment || written > before.written;
  }

  #adopt(view: SegmentView, log: Log): void {
    this.log = log;
    this.#segment = view.segment;
    this.#position = view.length;
    if (view.base !== undefined) this.#baseIdx = view.base.chain.length;
  }

  /** The live segment with the highest number, by listing. */
  *#newestLive(): Steps<Newest | undefined> {
    const segments = yield* this.#list();
    const records = new Map<number, readonly StoredRecord[]>();
    for (const segment of [...segments].reverse()) {
      const stored = yield* this.#read(segment);
      if (stored === undefined) continue;
      records.set(segment, stored);
      const view = viewOf(segment, stored);
      if (!view.isLive) continue;
      for (let before = view; before.base === undefined && before.previous !== undefined; ) {
        const earlier = yield* this.#read(before.previous.segment);
        if (earlier === undefined) break;
        records.set(before.previous.segment, earlier);
        before = viewOf(before.previous.segment, earlier);
      }
      const isWhole = logOf(segment, records) !== "unreadable";
      return { view, log: logOf(segment, records, this.log), isWhole };
    }
    return undefined;
  }

  // Taking the lead: rule 5

  /** @param unsettled batches of an own term with an unknown outcome */
  *#takeTheLead(unsettled: readonly Batch[]): Steps<"leads" | Stop> {
    this.#world.note(`${this.id} takes the lead`);
    const segments = yield* this.#list();
    const passed = yield* this.#passOver(segments);
    if (passed !== undefined) return passed;
    let newest = yield* this.#newestLive();
    const live = newest?.view.segment ?? 0;
    const damagedOnes = this.#world.has("seal-the-unopened") ? segments.filter((each) => each > live) : [];
    for (const damaged of damagedOnes) if (!(yield* this.#seal(damaged))) return "stand-by";
    if (newest !== undefined) {
      if (this.#mayLead(newest.view)) return "stand-by";
      const closed = yield* this.#close(newest.view);
      if (closed !== undefined) return closed;
      if (this.#world.has("seal-before-reading")) newest = yield* this.#newestLive();
      if (newest !== undefined && this.#mayLead(newest.view)) yield* this.#wait(LEADER_TIMEOUT);
    }
    const compared = this.#compare(newest);
    if (compared === "halt") {
      if (yield* this.#someoneHoldsMore()) return "stand-by";
      return this.#halt(
        newest?.log === "unreadable" ? "no segment can be read" : "the log continued differently",
      );
    }
    const { log, needsBase } = compared;
    this.log = log;
    this.#settle(unsettled, log);
    if (this.#world.has("ask-the-others") && (yield* this.#someoneHoldsMore())) return "stand-by";
    const previous = newest?.log === "unreadable" || newest === undefined ? undefined : newest.view.segment;
    return yield* this.#open({ log, previous, needsBase, listed: segments, closed: newest?.view });
  }

  /** Rule 6: a claimed, unopened segment is alive while it grows. Afterwards, the segment is sealed and passed
   *  over; a segment without a record is sealed at once. */
  *#passOver(segments: readonly number[]): Steps<"stand-by" | undefined> {
    for (const segment of [...segments].reverse()) {
      const stored = yield* this.#read(segment);
      if (stored === undefined) continue;
      const view = viewOf(segment, stored);
      if (view.isLive) return undefined;
      if (view.isSealed) continue;
      const before = this.#growth.get(segment);
      const hasGrown = before === undefined || before.written !== view.written;
      if (hasGrown) this.#growth.set(segment, { written: view.written, at: this.#world.now() });
      const since = this.#growth.get(segment)?.at ?? 0;
      const isYoung = view.length > 0 && this.#world.now() - since < LEADER_TIMEOUT;
      if (this.#world.has("growth-is-heartbeat") && isYoung) {
        yield { ask: "time", steps: 10 };
        return "stand-by";
      }
      if (!this.#world.has("seal-the-unopened")) continue;
      if (!(yield* this.#seal(segment))) return "stand-by";
    }
    return undefined;
  }

  /** True if a different writer wrote since the last look, and may still answer by rule 9. */
  #mayLead(view: SegmentView): boolean {
    const hasGrown = this.#hasGrown(view);
    if (!this.#world.has("outwait-the-leader")) return false;
    return hasGrown && view.writer !== this.session && !view.isClosing;
  }

  *#wait(steps: number): Steps<void> {
    yield { ask: "time", steps };
    this.#mindEpoch();
  }

  *#close({ segment, writer, isClosing, length }: SegmentView): Steps<Stop | undefined> {
    if (!this.#world.has("seal-before-reading")) return undefined;
    if (writer === this.session && !isClosing)
      yield* this.#send({
        op: "append",
        segment,
        expected: length,
        record: { kind: "closing", session: this.session },
      });
    return (yield* this.#seal(segment)) ? undefined : "stand-by";
  }

  /** Appends a record that ends the segment, at any position. @returns true if the record is stored */
  *#seal(segment: number): Steps<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const stored = yield* this.#read(segment);
      if (stored === undefined) return false;
      if (viewOf(segment, stored).isSealed) return true;
      const record: StoredRecord = { kind: "seal", session: this.session };
      yield* this.#once({ op: "append", segment, expected: undefined, record });
    }
    return false;
  }

  /** Rule 5d. */
  #compare(newest: Newest | undefined): { readonly log: Log; readonly needsBase: boolean } | "halt" {
    const held = this.log;
    if (newest === undefined) return { log: held ?? { chain: [], terms: [] }, needsBase: held !== undefined };
    const { log, view, isWhole } = newest;
    if (log === "unreadable") return held === undefined ? "halt" : { log: held, needsBase: true };
    if (held === undefined) return { log, needsBase: view.isDamaged };
    if (!this.#world.has("compare-with-held")) return { log, needsBase: false };
    switch (inspect(held.chain, log.chain)) {
      case "same":
      case "longer":
        return { log, needsBase: view.isDamaged || !isWhole };
      case "shorter":
        return { log: held, needsBase: true };
      case "different":
        return "halt";
    }
  }

  /** Rule 10: batches in flight at the seal are committed if the segment's end holds them. */
  #settle(unsettled: readonly Batch[], { chain }: Log): void {
    for (const batch of unsettled) if (chain[batch.idx - 1]?.hash === batch.hash) this.#settled.push(batch);
  }
  #settled: Batch[] = [];

  *#someoneHoldsMore(): Steps<boolean> {
    const reply = yield { ask: "others" };
    if (reply.reply !== "others") throw new Error("the others were asked");
    this.#mindEpoch();
    const own = this.held ?? { term: 0, idx: 0 };
    return reply.held.some(({ term, idx }) => idx > own.idx || (idx === own.idx && term > own.term));
  }

  /** Rules 5f to 5h. */
  *#open(plan: {
    readonly log: Log;
    readonly previous: number | undefined;
    readonly needsBase: boolean;
    /** The segments that rule 5a listed. A rival that claims a number later is met at the number. */
    readonly listed: readonly number[];
    /** The sealed live segment, as it was compared. */
    readonly closed: SegmentView | undefined;
  }): Steps<"leads" | Stop> {
    const segment = Math.max(0, ...plan.listed, this.#world.has("number-once") ? this.#highestSeen : 0) + 1;
    yield* this.#send({ op: "create", segment });
    let position = 1;
    if (!(yield* this.#put(segment, 0, { kind: "claim", segment, session: this.session }))) return "stand-by";
    if (this.#world.has("list-again")) {
      const appeared = (yield* this.#list()).filter(
        (each) => each !== segment && !plan.listed.includes(each),
      );
      if (appeared.length > 0) return "stand-by";
    }
    if (plan.closed !== undefined && this.#world.has("read-the-end-again")) {
      const stored = yield* this.#read(plan.closed.segment);
      if (stored?.length !== plan.closed.length) return "stand-by";
    }
    const needsBase = plan.needsBase || plan.log.chain.length - this.#baseIdx >= COMPACTION_DUE * 2;
    const manifest = needsBase ? `base ${segment} ${lastHash(plan.log.chain)} ${this.session}` : undefined;
    if (manifest !== undefined)
      for (let part = 0; part < BASE_PARTS; part += 1) {
        const record: StoredRecord = { kind: "base", session: this.session, part, log: plan.log, manifest };
        if (!(yield* this.#put(segment, position, record))) return "stand-by";
        position += 1;
      }
    return yield* this.#publish({ ...plan, segment, position, manifest });
  }

  /** Reads the base back, appends `Opened`, and leads the segment. */
  *#publish(plan: {
    readonly log: Log;
    readonly previous: number | undefined;
    readonly segment: number;
    readonly position: number;
    readonly manifest: string | undefined;
  }): Steps<"leads" | Stop> {
    const { log, previous, segment, position, manifest } = plan;
    if (manifest !== undefined && this.#world.has("verify-the-base")) {
      const stored = yield* this.#read(segment);
      if (stored === undefined || stored.length !== position || stored.some(({ kind }) => kind === "lost"))
        return "stand-by";
    }
    const hash = `opened ${segment} ${this.session} ${lastHash(log.chain)}`;
    const end =
      previous === undefined
        ? undefined
        : { segment: previous, idx: log.chain.length, hash: lastHash(log.chain) };
    const record: StoredRecord = {
      kind: "opened",
      segment,
      session: this.session,
      previous: end,
      manifest,
      hash,
    };
    if (!(yield* this.#put(segment, position, record))) return "stand-by";
    this.#segment = segment;
    this.#position = position + 1;
    this.#openedAt = this.#world.now();
    if (manifest !== undefined) this.#baseIdx = log.chain.length;
    this.log = withSegment(log, { ...viewOf(segment, []), opened: hash });
    this.#world.note(`${this.id} leads segment ${segment} from ${log.chain.length + 1} on`);
    return "leads";
  }

  // Leading

  *#leadOn(): Steps<void> {
    this.role = "leading";
    this.#inFlight = [];
    for (const batch of this.#settled.splice(0)) this.#answer(batch);
    for (;;) {
      const outcome = yield* this.#turnUnlessReconnected();
      if (outcome === "goes on") continue;
      if (outcome === "stand-by" || outcome === "halt") return;
      // Rule 7: the stored segment differs from the held log. The leader takes the lead again from the held log.
      this.role = "taking the lead";
      const again = yield* this.#takeTheLead(this.#inFlight);
      if (again !== "leads") return;
      this.role = "leading";
      this.#inFlight = [];
      for (const batch of this.#settled.splice(0)) this.#answer(batch);
    }
  }

  *#turnUnlessReconnected(): Steps<"goes on" | Stop> {
    try {
      return yield* this.#turn();
    } catch (error) {
      if (error instanceof Reconnected) return "goes on"; // the next turn looks first
      throw error;
    }
  }

  *#turn(): Steps<"goes on" | Stop> {
    if (this.#world.epoch() !== this.#epoch) {
      const looked = yield* this.#look();
      if (looked !== "goes on") return looked;
    }
    if (this.#world.hasOrder(this.id, "hand-over")) return yield* this.#handOver();
    if (
      this.#world.hasOrder(this.id, "compact") &&
      (this.log?.chain.length ?? 0) - this.#baseIdx >= COMPACTION_DUE
    ) {
      const compacted = yield* this.#compact();
      if (compacted !== "goes on") return compacted;
    }
    if (this.#world.has("inspect-each-timeout") && this.#world.now() - this.#inspectedAt >= LEADER_TIMEOUT) {
      const looked = yield* this.#look();
      if (looked !== "goes on") return looked;
    }
    if ((yield* this.#deleteOld()) === "again") return "again";
    if (this.#isFresh()) this.#world.asked(this);
    this.#decide();
    return yield* this.#commit();
  }

  /** Rule 8, after a reconnection or a late answer; and every T, for damage that no append meets.
   *  @param sentAt of an acknowledged append that counts once the look finds the batch */
  *#look(sentAt?: number): Steps<"goes on" | Stop> {
    this.#epoch = this.#world.epoch();
    this.#inspectedAt = this.#world.now();
    if (!this.#world.has("look-after-reconnection")) return "goes on";
    const newest = yield* this.#newestLive();
    if (newest === undefined) return "again";
    if (newest.view.segment > this.#segment) return "stand-by";
    // A power loss took the segment, and a rival claimed the number again.
    if (newest.view.segment === this.#segment && newest.view.writer !== this.session) return "stand-by";
    if (
      newest.view.segment < this.#segment ||
      newest.log === "unreadable" ||
      newest.view.isDamaged ||
      !newest.isWhole
    )
      return "again";
    if (this.#world.has("mind-claims") && (yield* this.#isClaimedAbove())) return "again";
    const chain = [...(this.log?.chain ?? [])];
    const standing = inspect(chain, newest.log.chain);
    if (standing === "different") return this.#halt("the log continued differently");
    if (standing === "shorter") return "again";
    return newest.view.length === this.#position ? "goes on" : yield* this.#lookAtPosition(sentAt);
  }

  /** A candidate reads the end of the segment again after its claim, so one of both sees the other. */
  *#isClaimedAbove(): Steps<boolean> {
    for (const segment of yield* this.#list()) {
      if (segment <= this.#segment) continue;
      const view = viewOf(segment, (yield* this.#read(segment)) ?? []);
      if (view.length > 0 && view.writer !== this.session) return true;
    }
    return false;
  }

  /** New batches for waiting tasks; an empty batch as a sign of life. */
  #decide(): void {
    while (this.#inFlight.length < IN_FLIGHT_MAX) {
      const chain = [...(this.log?.chain ?? []), ...this.#inFlight];
      const known = new Set(chain.flatMap(({ tasks }) => tasks));
      const tasks = this.#world
        .nextTasks()
        .filter((task) => !known.has(task))
        .slice(0, 1);
      if (tasks.length === 0 && this.#inFlight.length > 0) return;
      const [term, idx, prev] = [this.#segment, chain.length + 1, lastHash(chain)];
      this.#inFlight.push({
        term,
        idx,
        prev,
        hash: hashOf(`${prev} ${term} ${idx} ${tasks.join()} ${this.session}`),
        tasks,
        session: this.session,
      });
      if (tasks.length === 0) return;
    }
  }

  /** Sends the batches in flight, byte for byte, until committed or impossible. */
  *#commit(): Steps<"goes on" | Stop> {
    for (let tries = 0; tries < TRIES && this.#inFlight.length > 0; tries += 1) {
      if (this.#world.epoch() !== this.#epoch) return "goes on"; // looks first: rule 8
      const sentAt = this.#world.now();
      const operations = this.#inFlight.map((batch, at): Operation => {
        const record: StoredRecord = { kind: "batch", session: this.session, batch };
        return { op: "append", segment: this.#segment, expected: this.#position + at, record };
      });
      const reply = yield { ask: "server", operations };
      if (reply.reply !== "server") throw new Error("the server was asked");
      if (this.#world.epoch() !== this.#epoch && this.#world.has("look-after-reconnection")) return "goes on";
      if (this.#world.has("late-is-unknown") && this.#world.now() - sentAt >= FRESH) {
        const looked = yield* this.#look();
        if (looked !== "goes on") return looked;
        continue;
      }
      const answers = reply.answers;
      if (answers[0]?.kind === "stored" && this.#world.has("look-after-silence") && !this.#isProven(sentAt)) {
        const looked = yield* this.#look(sentAt);
        if (looked !== "goes on") return looked;
        continue;
      }
      let stored = 0;
      for (const answer of this.#world.has("in-order") ? answers : answers.slice(-1)) {
        if (
          answer.kind !== "stored" ||
          answer.position !== this.#position + 1 + (this.#world.has("in-order") ? 0 : answers.length - 1)
        )
          break;
        stored += 1;
        this.#sentAt = Math.max(this.#sentAt, sentAt);
        this.#take(this.#world.has("in-order") ? 1 : answers.length);
      }
      if (stored > 0 && this.#inFlight.length === 0) return "goes on";
      const refused = answers.slice(stored).find(({ kind }) => kind === "refused");
      if (refused?.kind !== "refused") continue; // unknown: the same bytes again
      if (refused.why === "no-stream") return "again";
      const looked = yield* this.#lookAtPosition();
      if (looked !== "goes on") return looked;
    }
    return this.#inFlight.length === 0 ? "goes on" : "again";
  }

  /** True if an acknowledged append precedes the send by less than 0.8·T. Otherwise a seal may have taken the position
   *  of a lost record, or a loss may have taken the seal, and the segment may have a successor. */
  #isProven(sentAt: number): boolean {
    return sentAt - this.#sentAt < FRESH;
  }

  /** The first `count` in flight are committed. */
  #take(count: number): void {
    for (const batch of this.#inFlight.splice(0, count)) {
      if (this.log === undefined) throw new Error("who leads holds a log");
      this.#position += 1;
      this.log = { chain: [...this.log.chain, batch], terms: this.log.terms };
      this.#answer(batch);
    }
  }

  /** Rule 9. */
  #answer(batch: Batch): void {
    if (this.#isFresh()) this.#world.answered(this, batch);
  }

  #isFresh(): boolean {
    return this.#world.now() - this.#sentAt < FRESH || !this.#world.has("fresh-answers");
  }

  /** Rule 7. */
  *#lookAtPosition(sentAt = this.#sentAt): Steps<"goes on" | Stop> {
    const records = yield* this.#read(this.#segment);
    if (records === undefined || records.length < this.#position) return "again";
    for (const record of records.slice(this.#position)) {
      if (record.kind === "lost") return "again";
      if (record.kind === "seal" && this.#world.has("nothing-behind-a-seal")) return "stand-by";
      const [batch] = this.#inFlight;
      if (batch !== undefined && isSame(record, batch, this.session)) {
        this.#sentAt = sentAt;
        this.#take(1);
      } else if (record.session !== this.session) this.#position += 1;
      else return "again";
    }
    return "goes on";
  }

  *#handOver(): Steps<Stop> {
    const record: StoredRecord = { kind: "closing", session: this.session };
    yield* this.#put(this.#segment, this.#position, record);
    yield* this.#seal(this.#segment);
    return "stand-by";
  }

  /** A planned change of segment: base and copies first, then `Closing`, the seal, the rest, `Opened`. */
  *#compact(): Steps<"goes on" | Stop> {
    const held = this.log;
    if (held === undefined) return "goes on";
    const segments = yield* this.#list();
    const segment = Math.max(...segments, this.#highestSeen) + 1;
    yield* this.#send({ op: "create", segment });
    let position = 0;
    if (!(yield* this.#put(segment, position, { kind: "claim", segment, session: this.session })))
      return "goes on";
    position += 1;
    const baseIdx = held.chain.length - 1;
    const base: Log = {
      chain: held.chain.slice(0, baseIdx),
      terms: held.terms.filter(({ firstIdx }) => firstIdx <= baseIdx),
    };
    const terms = held.terms;
    const manifest = `base ${segment} ${lastHash(base.chain)} ${this.session}`;
    for (let part = 0; part < BASE_PARTS; part += 1) {
      const record: StoredRecord = {
        kind: "base",
        session: this.session,
        part,
        log: { chain: base.chain, terms },
        manifest,
      };
      if (!(yield* this.#put(segment, position, record))) return "goes on";
      position += 1;
    }
    if (!this.#world.has("closing-with-nothing-in-flight")) this.#decide();
    else {
      const committed = yield* this.#commit();
      if (committed !== "goes on" || this.#inFlight.length > 0)
        return committed === "goes on" ? "again" : committed;
    }
    const before = this.#segment;
    const closing: StoredRecord = { kind: "closing", session: this.session };
    if (!(yield* this.#put(before, this.#position, closing))) return "again";
    if (!(yield* this.#seal(before))) return "again";
    const stored = yield* this.#read(before);
    if (stored === undefined || stored.some(({ kind }) => kind === "lost")) return "again";
    const own = stored.filter((record) => record.kind === "batch" && record.session === this.session).length;
    const mine = (this.log?.chain ?? []).filter(({ term }) => term === before).length;
    if (own !== mine) return "again";
    for (const batch of (this.log ?? held).chain.slice(baseIdx)) {
      if (!(yield* this.#put(segment, position, { kind: "copy", session: this.session, batch })))
        return "again";
      position += 1;
    }
    const opened = yield* this.#publish({
      log: this.log ?? held,
      previous: before,
      segment,
      position,
      manifest,
    });
    return opened === "leads" ? "goes on" : "again";
  }

  /** Rule 12. */
  *#deleteOld(): Steps<"again" | undefined> {
    const waits = this.#world.has("synced-before-deletion") ? SYNC_INTERVAL : 0;
    if (this.#world.now() - this.#openedAt < waits || this.#openedAt === 0) return undefined;
    this.#openedAt = 0;
    const at = this.#world.now();
    const segments = yield* this.#list();
    const recordsBySegment = new Map<number, readonly StoredRecord[]>();
    for (const segment of segments) {
      const stored = yield* this.#read(segment);
      if (stored !== undefined) recordsBySegment.set(segment, stored);
    }
    const live = segments.map((segment) => viewOf(segment, recordsBySegment.get(segment) ?? []));
    const liveOnes = live.filter(({ isLive }) => isLive);
    const newestBase = liveOnes.findLastIndex(({ base }) => base !== undefined);
    const keptFrom = liveOnes[newestBase - 1]?.segment ?? liveOnes[newestBase]?.segment ?? 0;
    const kept = new Map([...recordsBySegment].filter(([segment]) => segment >= keptFrom));
    if (this.#world.has("whole-before-deletion") && !this.#isHeldIn(restartLog(kept))) return "again";
    for (const segment of segments.filter((each) => each < keptFrom)) {
      this.#world.deletes(this, segment, { at, recordsBySegment });
      yield* this.#send({ op: "delete", segment });
    }
    return undefined;
  }

  #isHeldIn(stored: Log | "unreadable"): boolean {
    const chain = this.log?.chain ?? [];
    return stored !== "unreadable" && stored.chain[chain.length - 1]?.hash === chain.at(-1)?.hash;
  }

  // The server

  *#list(): Steps<readonly number[]> {
    const answer = yield* this.#send({ op: "list" });
    if (answer.kind !== "listed") throw new Error("a list was asked for");
    for (const segment of answer.segments) this.#highestSeen = Math.max(this.#highestSeen, segment);
    return answer.segments;
  }

  *#read(segment: number): Steps<readonly StoredRecord[] | undefined> {
    const answer = yield* this.#send({ op: "read", segment });
    return answer.kind === "read" ? answer.records : undefined;
  }

  /** Appends a record to a segment of this process. Repeats until the position holds this record or a foreign
   *  record.
   *  @returns true if the position holds this record */
  *#put(segment: number, expected: number, record: StoredRecord): Steps<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const answer = yield* this.#once({ op: "append", segment, expected, record });
      if (answer.kind === "stored" && answer.position === expected + 1) return true;
      if (answer.kind === "refused" && answer.why !== "wrong-position") return false;
      if (answer.kind === "unknown") continue;
      const stored = yield* this.#read(segment);
      const there = stored?.[expected];
      if (there === undefined) return false;
      return this.#world.has("one-writer")
        ? JSON.stringify(there) === JSON.stringify(record)
        : there.kind === record.kind;
    }
    return false;
  }

  /** Repeats until an answer comes. */
  *#send(operation: Operation): Steps<Answer> {
    for (;;) {
      const answer = yield* this.#once(operation);
      if (answer.kind !== "unknown") return answer;
    }
  }

  *#once(operation: Operation): Steps<Answer> {
    const reply = yield { ask: "server", operations: [operation] };
    if (reply.reply !== "server") throw new Error("the server was asked");
    this.#mindEpoch();
    return reply.answers[0] ?? { kind: "unknown" };
  }

  /** After a reconnection earlier requests are void: the procedure begins again. */
  #mindEpoch(): void {
    if (!this.#world.has("restart-after-reconnection")) return;
    if (this.#world.epoch() !== this.#epoch) throw new Reconnected();
  }

  #halt(why: string): "halt" {
    this.role = "halted";
    this.haltedBecause = why;
    this.#world.note(`${this.id} halts: ${why}`);
    return "halt";
  }
}

function isSame(record: StoredRecord, batch: Batch, session: string): boolean {
  return record.kind === "batch" && record.session === session && record.batch.hash === batch.hash;
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}
