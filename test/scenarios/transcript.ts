// Plays a transcript: a text of steps, each followed by the outcome as seen in the journal, at agents and coordinators.
// The swarm is the production coordinator on a clock moved by the steps; agents send heartbeats by themselves.
//
//   coordinators c1 c2 compactEvery=20
//   agents a1 a2 kinds=count,digest max=2
//   submit t1 acme/ann/t2 kind=count timeout=3s deadline=5s attempts=2 priority=1 weight=2 tokens=50
//   retry t1 · cancel t1 · revoke t1 (attempt 1) · reschedule t1 in=5s
//   complete t1 · fail t1 · refuse t1 · invalid t1 · confirm t1 (the agent that holds the task reports)
//   resource gpu slots=2 · acquire a1-x gpu disk weight=5 timeout=2s (handle a1-x, by a1) · release a1-x
//   project acme creditWeight=2 budget.tokens=500 budget.windowMs=60000 · policy rules=loco · kind count importance=2
//   pause acme · resume acme · drain a1 · undrain a1 · transfer c2
//   leave a1 · restart a1 · silence a1 · isolate a1 · hear a1
//   cut c1 · heal c1 (from the journal) · stop c1 · lose tail=2 | record=5 | segment=1 (of the journal) · room 0 | all
//   tick 10s

import { describe } from "../../src/audit/describe.ts";
import type { Coordinator } from "../../src/coordinator/coordinator.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { MemoryJournalStore } from "../../src/journal/memory-store.ts";
import { decodeRecord } from "../../src/journal/records.ts";
import { limits } from "../../src/limits.ts";
import type { AgentPush, Assignment } from "../../src/protocol/schemas.ts";
import type { Event } from "../../src/state/event.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noJitter, startTestSwarm, stopped, subjects, type TestSwarm } from "../support/swarm.ts";
import { WatchedJournal } from "../support/watched-journal.ts";

interface Actor {
  readonly id: string;
  readonly join: object;
  incarnation: string;
  sessions: number;
  isSilent: boolean;
  /** Pushes do not reach the agent. */
  isIsolated: boolean;
  /** By number, until the end is reported. */
  held: Map<number, Assignment>;
  seen: Set<number>;
  /** By handle listed in heartbeats: true if the slots are granted. */
  slots: Map<string, boolean>;
}

/** Frequent events without interest for a story. */
const chatter: ReadonlySet<Event["type"]> = new Set(["TermRenewed", "AssignmentsConfirmed"]);

/** The transcript with the real outcomes in place of the expected outcomes. */
export async function play(text: string): Promise<string> {
  const stage = new Stage();
  const played: string[] = [];
  try {
    for (const block of text.trimEnd().split("\n\n")) {
      const [steps = ""] = block.split("\n----");
      if (steps.split("\n").every((line) => line.startsWith("#"))) {
        played.push(block);
        continue;
      }
      for (const line of steps.split("\n")) if (!line.startsWith("#")) await stage.step(line);
      played.push([steps, "----", ...stage.news()].join("\n"));
    }
  } finally {
    await stage.end();
  }
  return `${played.join("\n\n")}\n`;
}

class Stage {
  readonly #clock = new ManualClock();
  readonly #store = new MemoryJournalStore({ clock: this.#clock });
  readonly #watched = new WatchedJournal(this.#store);
  readonly #journalById = new Map<string, MemoryJournal>();
  readonly #coordinatorById = new Map<string, Coordinator>();
  readonly #actorById = new Map<string, Actor>();
  readonly #news: string[] = [];
  #swarm: TestSwarm | undefined;
  #read = { segment: 0, position: 0, idx: 0 };
  #isOver = false;

  async step(line: string): Promise<void> {
    const [verb = "", ...words] = line.split(" ");
    const names = words.filter((word) => !word.includes("="));
    const settings = Object.fromEntries(
      words.filter((word) => word.includes("=")).map((word) => word.split("=")),
    );
    await this.#do(verb, names, settings);
    await this.#clock.settle();
    this.#readJournal();
  }

  /** All events since the last call. */
  news(): string[] {
    return this.#news.splice(0);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    for (const journal of this.#journalById.values()) journal.setOffline(false);
    if (this.#swarm !== undefined) await stopped(this.#swarm, this.#clock);
    this.#watched.settled();
  }

  async #do(verb: string, names: readonly string[], settings: Record<string, string>): Promise<void> {
    switch (verb) {
      case "coordinators":
        return await this.#start(names, settings);
      case "agents":
        for (const id of names) await this.#enter(id, settings);
        return;
      case "tick":
        return await this.#clock.advance(msOf(names[0]));
      case "cut":
      case "heal":
        for (const id of names) this.#journalById.get(id)?.setOffline(verb === "cut");
        return;
      case "stop":
        for (const id of names) await this.#coordinatorOf(id).stop();
        return;
      case "lose":
        return this.#lose(settings);
      case "room":
        this.#store.bytesMax = names[0] === "all" ? undefined : this.#store.usage.bytes + Number(names[0]);
        return;
      case "resource":
      case "project":
      case "kind":
        return this.#ask(subjects.operator(verb), { [verb]: names[0], ...patchOf(settings) });
      case "policy":
        return this.#ask(subjects.operator("policy"), patchOf(settings));
      case "pause":
      case "resume":
        return this.#ask(subjects.operator(verb), names[0] === undefined ? {} : { project: names[0] });
      case "transfer": {
        const { term } = this.#watched.settled().tail;
        return this.#ask(subjects.operator("transfer"), { of: term, to: names[0] });
      }
      case "acquire":
        return this.#acquire(names, settings);
      case "release":
        return this.#release(names[0] ?? "");
      case "submit":
        return this.#submit(names, settings);
      case "cancel":
        return this.#ask(subjects.project("default", "cancel"), {
          tasks: names.map((task) => ({ task, round: 1 })),
        });
      case "retry":
        return this.#ask(subjects.project("default", "retry"), {
          tasks: names.map((task) => ({ task, round: 2 })),
        });
      case "revoke":
        return this.#ask(subjects.project("default", "revoke"), {
          tasks: names.map((task) => ({ task, attempt: 1 })),
        });
      case "reschedule":
        return this.#ask(subjects.project("default", "reschedule"), {
          tasks: names.map((task) => ({ task, round: 1 })),
          notBefore: this.#clock.now() + msOf(settings["in"]),
        });
      case "drain":
      case "undrain":
        return this.#ask(subjects.operator(verb), { agent: names[0] });
      default:
        for (const name of names) await this.#act(verb, name);
    }
  }

  async #act(verb: string, name: string): Promise<void> {
    const actor = this.#actorById.get(name);
    if (actor === undefined) return this.#report(verb, name);
    switch (verb) {
      case "silence":
        actor.isSilent = true;
        return;
      case "isolate":
      case "hear":
        actor.isIsolated = verb === "isolate";
        return;
      case "leave":
        actor.isSilent = true;
        return this.#ask(subjects.agent("_", name, "leave"), { incarnation: actor.incarnation });
      case "restart":
        return await this.#begin(actor);
      default:
        throw new Error(`no step ${verb} for ${name}`);
    }
  }

  async #start(ids: readonly string[], { compactEvery }: Record<string, string>): Promise<void> {
    for (const id of ids) {
      const journal = new MemoryJournal(this.#store);
      this.#journalById.set(id, journal);
      if (this.#swarm === undefined) {
        this.#swarm = await this.#startFirst(journal, compactEvery);
        this.#watch(id, this.#swarm.coordinator);
      } else this.#watch(id, await this.#swarm.startAnother(id, journal));
    }
  }

  #startFirst(journal: MemoryJournal, compactEvery?: string): Promise<TestSwarm> {
    const all = { ageMs: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
    const compaction = { everyEvents: Number(compactEvery), retention: all, baseSyncMs: 0 };
    return startTestSwarm({
      ...{ clock: this.#clock, store: this.#store, journal, random: noJitter },
      ...(compactEvery === undefined ? {} : { compaction }),
    });
  }

  /** Tells each change of a coordinator's role. */
  #watch(id: string, coordinator: Coordinator): void {
    this.#coordinatorById.set(id, coordinator);
    let before: string | undefined;
    coordinator.role$.subscribe((role) => {
      const isNews = before !== undefined && before !== role && !this.#isOver;
      before = role;
      if (!isNews) return;
      this.#readJournal();
      this.#news.push(`  ${id} is ${role}`);
    });
  }

  /** A fault of the storage; without `segment`, in the newest segment. */
  #lose({ tail, record, segment }: Record<string, string>): void {
    const newest = this.#store.list().at(-1) ?? 0;
    if (tail !== undefined) this.#store.loseTail(newest, Number(tail));
    if (record !== undefined) this.#store.loseRecords(newest, Number(record));
    if (segment !== undefined) this.#store.loseSegment(Number(segment));
  }

  async #enter(id: string, { kinds = "count", max = "4" }: Record<string, string>): Promise<void> {
    const join = { kinds: kinds.split(","), maxConcurrent: Number(max) };
    const counters = {
      incarnation: "",
      sessions: 0,
      isSilent: false,
      isIsolated: false,
      held: new Map(),
      seen: new Set<number>(),
      slots: new Map<string, boolean>(),
    };
    const actor: Actor = { id, join, ...counters };
    this.#actorById.set(id, actor);
    this.#swarmOf().client.listen<AgentPush>(subjects.assign("_", id)).onPush = (push) =>
      this.#hear(actor, push);
    await this.#begin(actor);
    this.#heartbeat(actor);
  }

  async #begin(actor: Actor): Promise<void> {
    actor.sessions += 1;
    actor.incarnation = `${actor.id}-${actor.sessions}`;
    actor.isSilent = false;
    actor.held = new Map();
    actor.seen = new Set();
    actor.slots = new Map();
    const { incarnation, join } = actor;
    const after = actor.sessions === 1 ? {} : { after: `${actor.id}-${actor.sessions - 1}` };
    const message = { ...join, incarnation, ...after };
    await this.#swarmOf().client.ask(subjects.agent("_", actor.id, "join"), message);
  }

  #heartbeat(actor: Actor): void {
    if (this.#isOver) return;
    let seen = 0;
    while (actor.seen.has(seen + 1)) seen += 1;
    const held = [...actor.held.values()].map(({ project, task, attempt }) => ({ project, task, attempt }));
    const { incarnation } = actor;
    const handlesOf = (isHeld: boolean) =>
      [...actor.slots].filter(([, each]) => each === isHeld).map(([handle]) => handle);
    const slots = { held: handlesOf(true), waiting: handlesOf(false) };
    const heartbeat = { incarnation, status: "busy", inFlight: held.length, seen, held, slots };
    if (!actor.isSilent) this.#ask(subjects.agent("_", actor.id, "heartbeat"), heartbeat);
    this.#clock.after(limits.heartbeatMs, () => this.#heartbeat(actor));
  }

  #hear(actor: Actor, push: AgentPush): void {
    if (push.incarnation !== actor.incarnation || actor.isIsolated) return;
    if (push.type === "assign") {
      for (const assignment of push.assignments) {
        if (actor.seen.has(assignment.number)) continue;
        actor.seen.add(assignment.number);
        actor.held.set(assignment.number, assignment);
      }
    }
    if (push.type === "slots-granted") for (const handle of push.handles) actor.slots.set(handle, true);
    if (push.type === "slots-revoked") for (const handle of push.handles) actor.slots.delete(handle);
    if (push.type === "slot-waits-ended") for (const { handle } of push.waits) actor.slots.delete(handle);
    const what =
      "handles" in push
        ? push.handles
        : "waits" in push
          ? push.waits.map(({ handle, reason }) => `${handle} (${reason})`)
          : push.type === "assign"
            ? push.assignments.map(({ task, attempt }) => `${task}#${attempt}`)
            : push.type === "revoke"
              ? [...push.attempts.map(({ task, attempt }) => `${task}#${attempt}`), `(${push.reason})`]
              : [];
    this.#readJournal();
    this.#news.push(`  ${actor.id} is sent: ${[push.type, ...what].join(" ")}`);
  }

  /** A task is named `t1`, or `acme/ann/t1` with project and user. */
  #submit(names: readonly string[], { kind = "count", ...more }: Record<string, string>): void {
    const task = {
      kind,
      ...(more.timeout === undefined ? {} : { timeoutMs: msOf(more.timeout) }),
      ...(more.stall === undefined ? {} : { stallMs: msOf(more.stall) }),
      ...(more.deadline === undefined ? {} : { deadline: this.#clock.now() + msOf(more.deadline) }),
      ...(more.attempts === undefined ? {} : { maxAttempts: Number(more.attempts) }),
      ...(more.priority === undefined ? {} : { priority: Number(more.priority) }),
      ...(more.weight === undefined ? {} : { weight: Number(more.weight) }),
      ...(more.tokens === undefined ? {} : { tokens: Number(more.tokens) }),
    };
    const byProject = new Map<string, object[]>();
    for (const name of names) {
      const [id, user, project = "default"] = name.split("/").reverse();
      const tasks = byProject.get(project) ?? [];
      byProject.set(project, tasks);
      tasks.push({ id, ...(user === undefined ? {} : { user }), ...task });
    }
    for (const [project, tasks] of byProject) this.#ask(subjects.project(project, "submit"), { tasks });
  }

  /** A handle is named after the agent: `a1-x` is a1's. */
  #acquire(
    [handle = "", ...resources]: readonly string[],
    { weight, timeout }: Record<string, string>,
  ): void {
    const actor = this.#actorOf(handle);
    actor.slots.set(handle, false);
    const message = {
      incarnation: actor.incarnation,
      handle,
      resources,
      ...(weight === undefined ? {} : { weight: Number(weight) }),
      ...(timeout === undefined ? {} : { timeoutMs: msOf(timeout) }),
    };
    this.#ask(subjects.agent("_", actor.id, "acquire"), message, ({ answer }) => {
      if (answer?.state === "granted") actor.slots.set(handle, true);
      if (answer?.ok === false) actor.slots.delete(handle);
    });
  }

  #release(handle: string): void {
    const actor = this.#actorOf(handle);
    const { incarnation } = actor;
    this.#ask(subjects.agent("_", actor.id, "release"), { incarnation, handle }, () =>
      actor.slots.delete(handle),
    );
  }

  #actorOf(handle: string): Actor {
    const actor = this.#actorById.get(handle.split("-")[0] ?? "");
    if (actor === undefined) throw new Error(`${handle} is of no agent`);
    return actor;
  }

  /** The end of a task's newest attempt, reported by the holding agent. */
  #report(verb: string, task: string): void {
    const outcomes: Record<string, string> = {
      complete: "completed",
      fail: "failed",
      refuse: "infrastructure",
      invalid: "invalid",
      confirm: "revoked",
    };
    const outcome = outcomes[verb];
    for (const actor of this.#actorById.values()) {
      const assignment = [...actor.held.values()].find((each) => each.task === task);
      if (assignment === undefined || outcome === undefined) continue;
      actor.held.delete(assignment.number);
      const { project, attempt, token } = assignment;
      const { incarnation } = actor;
      const results = [
        { project, task, attempt, token, outcome, error: outcome === "completed" ? undefined : "no luck" },
      ];
      return this.#ask(subjects.agent("_", actor.id, "result"), { incarnation, results });
    }
    throw new Error(`no agent holds ${task} to ${verb}`);
  }

  /** Asks without waiting: the swarm may have no leader. */
  #ask(
    subject: string,
    message: object,
    // biome-ignore lint/suspicious/noExplicitAny: a story reads any answer
    onAnswer: (answer: any) => void = () => undefined,
  ): void {
    void this.#swarmOf()
      .client.transport.request(subject, Buffer.from(JSON.stringify(message)), {
        timeoutMs: limits.requestTimeoutMs,
      })
      .then((outcome) => {
        if (outcome.kind !== "answered" || this.#isOver) return;
        const heard = JSON.parse(Buffer.from(outcome.data).toString());
        onAnswer(heard);
        const { answers = [], answer = {}, ok, code } = heard;
        const refused = [...answers, answer, { ok, code }].filter(
          (answer: { ok?: boolean }) => answer.ok === false,
        );
        const stale = answers.filter((answer: { status?: string }) => answer.status === "stale");
        this.#readJournal();
        for (const answer of refused) this.#news.push(`  answered: ${answer.code}`);
        for (const _ of stale) this.#news.push("  answered: stale");
      });
  }

  #readJournal(): void {
    for (const number of this.#store.list()) {
      if (number < this.#read.segment) continue;
      if (number > this.#read.segment) this.#read = { ...this.#read, segment: number, position: 0 };
      const { position: end = 0 } = this.#store.end(number) ?? {};
      while (this.#read.position < end) {
        this.#read.position += 1;
        const record = this.#store.read(number, this.#read.position);
        if (record !== undefined) this.#print(number, record.bytes);
      }
    }
  }

  #print(segment: number, bytes: Uint8Array): void {
    const record = decodeRecord(bytes);
    if (record?.kind === "opened") {
      const base = record.base === undefined ? "" : `, with a base of batch ${record.base.idx}`;
      this.#news.push(`  segment ${segment} opened by ${record.leader}${base}`);
    }
    if (record?.kind === "closing") this.#news.push(`  segment ${segment} closed: ${record.reason}`);
    if (record?.kind !== "batch" || record.idx <= this.#read.idx) return;
    this.#read.idx = record.idx;
    const events = record.events.filter(({ type }) => !chatter.has(type));
    for (const [at, event] of events.entries()) {
      const head = at === 0 ? `${record.idx}` : "";
      this.#news.push(`${head.padStart(3)} ${describe(event)}`);
    }
  }

  #coordinatorOf(id: string): Coordinator {
    const coordinator = this.#coordinatorById.get(id);
    if (coordinator === undefined) throw new Error(`${id} is no coordinator`);
    return coordinator;
  }

  #swarmOf(): TestSwarm {
    if (this.#swarm === undefined) throw new Error("a transcript begins with its coordinators");
    return this.#swarm;
  }
}

/** `10s`, `500ms`. */
function msOf(text = ""): number {
  return text.endsWith("ms") ? Number(text.slice(0, -2)) : Number(text.slice(0, -1)) * 1_000;
}

/** `budget.tokens=5` is `{ budget: { tokens: 5 } }`; `null` and numbers are values of JSON. */
function patchOf(settings: Record<string, string>): object {
  const patch: Record<string, unknown> = {};
  for (const [path, text] of Object.entries(settings)) {
    const [name = "", inner] = path.split(".");
    const value = /^(null|true|false|[\d.]+)$/.test(text) ? JSON.parse(text) : text;
    patch[name] = inner === undefined ? value : { ...(patch[name] as object | undefined), [inner]: value };
  }
  return patch;
}
