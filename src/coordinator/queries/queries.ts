// Answers `project.<p>.query.*`: status, tasks, a single task with the reason of its wait, settings, pages of the
// journal. A leader's answer leaves with the commit of its contents. A standby waits a moment, to let the leader answer
// first, and marks its answer as stale.

import type { Logger } from "pino";
import { AuditReader } from "../../audit/reading/audit-reader.ts";
import { type JournalReads, ReadBudget } from "../../audit/reading/journal-reads.ts";
import type { AuditStatus } from "../../audit/verifying/audit-check.ts";
import type { Clock } from "../../clock.ts";
import { headOf } from "../../cut-text.ts";
import { BackpressureError, JournalDamagedError } from "../../errors.ts";
import {
  type BatchIndex,
  batchIndex,
  type Instant,
  instant,
  NO_PROJECT,
  type ProjectId,
  projectId,
  type SwarmId,
} from "../../ids.ts";
import type { Journal } from "../../journal/journal.ts";
import type { RecentBatches } from "../../journal/recent-batches.ts";
import type { Replay } from "../../journal/replay.ts";
import { limits } from "../../limits.ts";
import type { ProcessFigures } from "../../process-watch.ts";
import { type Decoded, decode, encode, invalid } from "../../protocol/codec.ts";
import { explainQuerySchema, slotWaitsQuerySchema } from "../../protocol/explain-schemas.ts";
import {
  type CodedError,
  eventsQuerySchema,
  type StatusResponse,
  statusQuerySchema,
  taskQuerySchema,
} from "../../protocol/schemas.ts";
import { settingsQuerySchema } from "../../protocol/settings-schemas.ts";
import { isInbox, type Subjects } from "../../protocol/subjects.ts";
import { tasksQuerySchema } from "../../protocol/task-list-schemas.ts";
import { backpressure, codedError, sendFitting } from "../../requests/answers.ts";
import { InboxOwners } from "../../requests/inbox-owners.ts";
import type { SwarmState } from "../../state/state.ts";
import type { Message, Transport } from "../../transport/transport.ts";
import { settingsOf } from "../../views/settings-view.ts";
import { slotWaitsOf } from "../../views/slot-queries.ts";
import { statusOf } from "../../views/status.ts";
import { explanationOf, taskNamed, taskStatusOf } from "../../views/task-queries.ts";
import { placeIn, type TaskPage, type TaskQuery, TaskScans } from "../../views/task-scan.ts";
import type { JournalRoom } from "../journal-room.ts";
import type { Leader } from "../leader/leader.ts";
import { AgentLogs } from "./agent-logs.ts";
import { JournalRecords } from "./journal-records.ts";
import { observedBy } from "./observed.ts";

export interface QueriesDeps {
  readonly swarm: SwarmId;
  readonly subjects: Subjects;
  readonly transport: Transport;
  readonly journal: Journal;
  readonly room: JournalRoom;
  readonly reads: JournalReads;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Event loop and memory of this process. Absent: nobody watches. */
  readonly processFigures?: () => ProcessFigures;
  /** Undefined on a standby. */
  readonly leader: () => Leader | undefined;
  readonly recentBatches: RecentBatches;
  /** The log, as far as the coordinator has read. */
  readonly log: () => Replay;
  /** Ids of the standbys heard lately. */
  readonly standbys: () => readonly string[];
}

/** An answer, or a promise of an answer from the journal. */
type Answer = Uint8Array | Promise<Uint8Array>;

/** The sources of an answer. */
interface View {
  readonly state: SwarmState;
  readonly isStale: boolean;
  readonly reader: AuditReader;
  /** The first batch readable in the journal. */
  readonly firstIdx: () => BatchIndex;
}

export class Queries {
  readonly #deps: QueriesDeps;
  readonly #logs: AgentLogs;
  readonly #records: JournalRecords;
  /** Held queries: a standby gives the leader time to answer, and a stuck leader gives time to standbys. */
  #waiting = 0;
  #isOver = false;
  readonly #scans: TaskScans;
  /** Bytes of answers, by project: a flood of questions about one project leaves room for the others. */
  readonly #budget: ReadBudget;
  readonly #owners: InboxOwners;

  constructor(deps: QueriesDeps) {
    this.#deps = deps;
    this.#logs = new AgentLogs(deps);
    this.#records = new JournalRecords(deps);
    this.#scans = new TaskScans(deps.clock);
    this.#budget = new ReadBudget(deps.clock, "answers");
    this.#owners = new InboxOwners(() => deps.leader()?.state ?? deps.log().state);
  }

  /** Nothing more is answered. Idempotent. */
  stop(): void {
    this.#isOver = true;
  }

  take(message: Message): void {
    const { reply } = message;
    if (reply === undefined || !isInbox(reply))
      return this.#deps
        .leader()
        ?.router.intake.count(reply === undefined ? "no-reply" : "reply-not-an-inbox");
    const leader = this.#deps.leader();
    if (!this.#owners.mayReply(["project", projectOf(message)], reply))
      return leader?.router.intake.count("reply-not-the-askers");
    if (leader !== undefined && this.#isTooMuch(message, reply, leader)) return;
    if (leader !== undefined && whatOf(message) === "tasks" && leader.full.stuckReason === undefined)
      return this.#listTasks(message, reply, leader);
    if (leader !== undefined) return this.#askLeader(leader, message, reply);
    if (this.#waiting >= limits.standbyQueriesMax) return; // left to the leader
    this.#waiting += 1;
    this.#deps.room.look(); // usually known when the answer is due
    this.#deps.clock.after(limits.standbyAnswerMs, () => {
      this.#waiting -= 1;
      if (this.#deps.leader() !== undefined) return;
      if (whatOf(message) === "tasks") this.#listTasks(message, reply, undefined);
      else this.#send(reply, this.#answer(message, this.#staleView(), this.#deps.log().tail.idx));
    });
  }

  /** Answers a list of tasks. The list is made in slices, and leaves with the commit of its newest batch. */
  #listTasks(message: Message, reply: string, leader: Leader | undefined): void {
    const query = this.#taskQuery(message);
    if (!query.ok) return this.#send(reply, encode(query));
    const stateOf = () => leader?.state ?? this.#deps.log().state;
    const listing = this.#scans.run(stateOf, query.value);
    if (listing === undefined) {
      if (leader?.router.intake.mayRefuse !== false)
        this.#send(reply, encode(backpressure("too-many-lists", limits.retryAfterMs)));
      return;
    }
    const send = (
      page: TaskPage,
      position: { readonly term: number; readonly idx: number },
      stale: object,
    ) => {
      const { term, idx } = position;
      this.#send(reply, encode({ term, idx, at: stateOf().at, ...stale, ...page }));
    };
    listing.then(
      (page) => {
        if (leader === undefined) return send(page, stateOf(), { stale: true });
        leader.enqueue({ commands: [], replies: [], finish: (commit) => send(page, commit, {}) });
      },
      (cause: unknown) => this.#deps.logger.error({ err: cause }, "a list of tasks could not be made"),
    );
  }

  #taskQuery(message: Message): Decoded<TaskQuery> {
    const query = decode(message.data, tasksQuerySchema);
    if (!query.ok) return query;
    const { v: _, sort = "newest", limit = limits.tasksPageDefault, after, ...filter } = query.value;
    if (after !== undefined && placeIn(after, sort) === undefined)
      return invalid(`after: is no place in the order ${sort}; give \`next\` of the page before`, "after");
    const of = projectOf(message);
    const project = of === NO_PROJECT ? undefined : of;
    const bytesMax = this.#deps.transport.maxPayloadBytes / 2;
    return { ok: true, value: { filter, project, sort, limit, after, now: this.#now(), bytesMax } };
  }

  /** Refuses a question about a project that got as many bytes of answers as it may in a while. Pages of the journal
   *  have a budget of their own. */
  #isTooMuch(message: Message, reply: string, leader: Leader): boolean {
    const what = whatOf(message);
    if (readsJournal.has(what)) return false;
    try {
      this.#budget.take(projectOf(message), limits.answerCostMin);
      return false;
    } catch (cause) {
      if (!(cause instanceof BackpressureError)) throw cause;
      if (leader.router.intake.mayRefuse) this.#refuse(reply, cause);
      return true;
    }
  }

  /** A stuck leader refuses with the reason, after a standby had time to answer. */
  #leaveOpen(why: string, reply: string): void {
    if (this.#waiting >= limits.standbyQueriesMax) return;
    this.#waiting += 1;
    this.#deps.clock.after(2 * limits.standbyAnswerMs, () => {
      this.#waiting -= 1;
      this.#send(reply, encode(codedError("WAGGLE_UNREACHABLE", why)));
    });
  }

  #askLeader(leader: Leader, message: Message, reply: string): void {
    const { stuckReason } = leader.full;
    if (stuckReason !== undefined) return this.#leaveOpen(stuckReason, reply);
    let answer: ((last: BatchIndex) => Answer) | undefined;
    const isTaken = leader.enqueue({
      commands: [],
      replies: [],
      look: () => {
        answer = this.#prepare(message, this.#leaderView(leader));
      },
      finish: ({ idx }) => {
        if (answer !== undefined) this.#send(reply, answer(idx));
      },
    });
    if (!isTaken && leader.router.intake.mayRefuse)
      this.#send(reply, encode(backpressure("inbox-full", limits.retryAfterMs)));
  }

  /** Reads the state now. Only the committed index is added later. */
  #prepare(message: Message, view: View): (last: BatchIndex) => Answer {
    const what = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    if (what === "log") return this.#logs.prepare(message, view.state);
    if (what === "journal" || what === "events") return (last) => this.#page(message, view, last);
    if (what === "records") return () => this.#rawRecords(message);
    const answer = this.#answer(message, view, view.state.idx);
    if (answer instanceof Uint8Array)
      this.#budget.settle(projectOf(message), {
        taken: limits.answerCostMin,
        cost: limits.answerCostMin + answer.length,
      });
    return () => answer;
  }

  #answer(message: Message, view: View, last: BatchIndex): Answer {
    const what = message.subject.slice(message.subject.lastIndexOf(".") + 1);
    switch (what) {
      case "status":
        return this.#status(message, view);
      case "task":
        return this.#task(message, view);
      case "explain":
        return this.#explain(message, view);
      case "slots":
        return this.#slots(message, view);
      case "settings":
        return this.#settings(message, view);
      case "log":
        return encode(
          codedError("WAGGLE_NO_LEADER", "no leader answers, and only a leader asks agents for their logs"),
        );
      case "journal":
      case "events":
        return this.#page(message, view, last);
      case "records":
        return this.#rawRecords(message);
      default:
        return encode(invalid(`query: ${headOf(what, 64)} is unknown`));
    }
  }

  #status(message: Message, view: View): Uint8Array {
    const query = decode(message.data, statusQuerySchema);
    if (!query.ok) return encode(query);
    const leader = view.isStale ? undefined : this.#deps.leader();
    const project = projectOf(message);
    return encode(
      statusOf(view.state, {
        swarm: this.#deps.swarm,
        now: this.#now(),
        bytesMax: this.#deps.transport.maxPayloadBytes,
        ...(query.value.rows === undefined ? {} : { page: query.value.rows }),
        ...(project === NO_PROJECT ? {} : { project }),
        ...(leader === undefined ? {} : this.#seenBy(leader, project)),
        journal: this.#journalStatus(leader),
        counters: leader?.router.intake.counters ?? {},
      }),
    );
  }

  #seenBy({ presences, monitor, timings }: Leader, project: ProjectId) {
    const seen = { presences, standbys: this.#deps.standbys() };
    if (project !== NO_PROJECT) return seen;
    return { ...seen, observed: observedBy({ monitor, timings, process: this.#deps.processFigures?.() }) };
  }

  /** Journal time. A standby uses its wall clock. */
  #now(): Instant {
    return this.#deps.leader()?.now ?? instant(Math.floor(this.#deps.clock.now()));
  }

  #journalStatus(leader: Leader | undefined): StatusResponse["journal"] {
    const { durability } = this.#deps.journal;
    const { usage } = this.#deps.room;
    const log = this.#deps.log();
    const { newest, failure } = leader?.compaction ?? {};
    const audit = leader?.audit;
    return {
      id: leader?.commits.journalId ?? log.tail.journal,
      durability: durability.class,
      sentence: durability.sentence,
      bytes: usage.bytes,
      ...(usage.bytesMax === undefined ? {} : { bytesMax: usage.bytesMax }),
      ...(log.foreign === undefined ? {} : { foreignRecords: log.foreign }),
      auditFirstIdx: log.state.auditFirstIdx,
      ...(newest === undefined ? {} : { base: { idx: newest.idx, at: newest.at, bytes: newest.bytes } }),
      ...(failure === undefined ? {} : { baseFailure: failure }),
      ...(audit === undefined ? {} : { verified: verifiedOf(audit) }),
    };
  }

  #task(message: Message, view: View): Uint8Array {
    const query = decode(message.data, taskQuerySchema);
    if (!query.ok) return encode(query);
    const named = taskNamed(view.state, projectOf(message), query.value.task);
    return encode(named.ok ? taskStatusOf(view.state, named.value, view.isStale) : named);
  }

  #explain(message: Message, { state, isStale }: View): Uint8Array {
    const query = decode(message.data, explainQuerySchema);
    if (!query.ok) return encode(query);
    const project = projectOf(message);
    const named = taskNamed(state, project, query.value.task);
    if (!named.ok) return encode(named);
    const within = project === NO_PROJECT ? undefined : project;
    const now = this.#now();
    const bytesMax = this.#deps.transport.maxPayloadBytes;
    const { tightUsage: tightJournal } = this.#deps.room;
    return encode(explanationOf(state, named.value, { now, isStale, within, bytesMax, tightJournal }));
  }

  #slots(message: Message, { state, isStale }: View): Uint8Array {
    const query = decode(message.data, slotWaitsQuerySchema);
    if (!query.ok) return encode(query);
    if (projectOf(message) !== NO_PROJECT)
      return encode(
        invalid("project: resources belong to the whole swarm: ask without a project", "project"),
      );
    const bytesMax = this.#deps.transport.maxPayloadBytes;
    return encode(slotWaitsOf(state, query.value, { now: this.#now(), isStale, bytesMax }));
  }

  #settings(message: Message, { state, isStale }: View): Uint8Array {
    const query = decode(message.data, settingsQuerySchema);
    if (!query.ok) return encode(query);
    const bytesMax = this.#deps.transport.maxPayloadBytes;
    const project = projectOf(message);
    const scope = project === NO_PROJECT ? {} : { project };
    return encode(settingsOf(state, { ...scope, name: query.value.name, bytesMax, isStale }));
  }

  async #page(message: Message, { reader, firstIdx }: View, last: BatchIndex): Promise<Uint8Array> {
    const query = decode(message.data, eventsQuerySchema);
    if (!query.ok) return encode(query);
    const project = projectOf(message);
    if ((whatOf(message) === "journal") !== (project === NO_PROJECT)) return encode(wrongScope());
    const { from, since, withContent = false } = query.value;
    const first = firstIdx();
    if (from !== undefined && from < first) return encode(trimmed(first));
    try {
      const start =
        since === undefined ? (from ?? first) : await reader.firstSince(since, { project, first, last });
      return await reader.page({ project, from: batchIndex(start), last, withContent });
    } catch (cause) {
      const isRefused = cause instanceof BackpressureError && this.#deps.leader() !== undefined;
      if (isRefused) this.#deps.reads.refused(project);
      // The batches were removed during the read: the journal is not damaged.
      const firstNow = firstIdx();
      if (cause instanceof JournalDamagedError && firstNow > first) return encode(trimmed(firstNow));
      throw cause;
    }
  }

  #rawRecords(message: Message): Answer {
    return projectOf(message) === NO_PROJECT ? this.#records.answer(message.data) : encode(wrongScope());
  }

  #leaderView(leader: Leader): View {
    const { state, reader } = leader;
    return { state, isStale: false, reader, firstIdx: () => leader.auditFirstIdx };
  }

  #staleView(): View {
    const { state } = this.#deps.log();
    const reader = new AuditReader(this.#deps);
    return { state, isStale: true, reader, firstIdx: () => state.auditFirstIdx };
  }

  /** A standby leaves the query to the leader: the leader may have more budget to read. */
  #refuse(reply: string, { message, retryAfterMs }: BackpressureError): void {
    const leader = this.#deps.leader();
    if (leader === undefined) return;
    leader.router.intake.count("refused");
    this.#deps.transport.publish(reply, encode(codedError("WAGGLE_BACKPRESSURE", message, { retryAfterMs })));
  }

  #send(reply: string, answer: Answer): void {
    const { transport, logger } = this.#deps;
    Promise.resolve(answer).then(
      (bytes) => {
        if (!this.#isOver) sendFitting(transport, reply, bytes);
      },
      (cause: unknown) => {
        if (this.#isOver) return;
        if (cause instanceof BackpressureError) return this.#refuse(reply, cause);
        logger.warn({ err: cause }, "a query could not be answered");
        transport.publish(reply, encode(unreadable(cause)));
      },
    );
  }
}

/** Queries with the budget of reads. */
const readsJournal: ReadonlySet<string> = new Set(["journal", "events", "records"]);

/** The project of `project.<p>.query.<what>`, charged for reads. */
function projectOf({ subject }: Message): ProjectId {
  return projectId(subject.split(".").at(-3) ?? "");
}

function whatOf({ subject }: Message): string {
  return subject.slice(subject.lastIndexOf(".") + 1);
}

function wrongScope(): CodedError {
  return invalid(
    "project: query.events is of one project; query.journal and query.records have the whole journal",
    "project",
  );
}

function unreadable(cause: unknown): CodedError {
  if (!(cause instanceof JournalDamagedError))
    return codedError("WAGGLE_UNREACHABLE", "the journal cannot be read just now: try again");
  const sentence = `this part of the journal cannot be read: ${cause.message}. See to its storage (\`waggle doctor\`); whole parts behind it can be read from a later batch on`;
  return codedError("WAGGLE_JOURNAL_DAMAGED", sentence);
}

function trimmed(firstIdx: BatchIndex): CodedError {
  const sentence = `batches before ${firstIdx} are no longer kept: read from ${firstIdx} on, or from the start`;
  return codedError("WAGGLE_AUDIT_TRIMMED", sentence, { firstIdx });
}

function verifiedOf({
  idx,
  endedAt,
  fault,
}: AuditStatus): NonNullable<StatusResponse["journal"]["verified"]> {
  return {
    idx,
    ...(endedAt === undefined ? {} : { at: endedAt }),
    ...(fault === undefined ? {} : { fault }),
  };
}
