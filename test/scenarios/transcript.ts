// Plays a transcript: a text of steps and of what each is to lead to, told by the journal and by what agents are
// pushed. The swarm is the production coordinator on a clock that the steps move; agents beat by themselves.
//
//   coordinators c1 c2 · agents a1 a2 kinds=count,digest max=2 · submit t1 t2 kind=count timeout=3s deadline=5s
//   resource gpu slots=2 · acquire a1-x gpu disk weight=5 timeout=2s (handle a1-x, by a1) · release a1-x
//   complete t1 · fail t1 · refuse t1 · invalid t1 · confirm t1 · cancel t1 · drain a1 · leave a1 · restart a1
//   silence a1 · deafen a1 · hear a1 · cut c1 · heal c1 · stop c1 · tick 10s

import { describe } from "../../src/audit/describe.ts";
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
  lives: number;
  isSilent: boolean;
  /** Pushes do not reach it. */
  isDeaf: boolean;
  /** By number, until its end was reported. */
  held: Map<number, Assignment>;
  seen: Set<number>;
  /** Whether it has them, by the handles it lists in its heartbeats. */
  slots: Map<string, boolean>;
}

/** Said all the time, and about nothing that a story is about. */
const chatter: ReadonlySet<Event["type"]> = new Set(["TermRenewed", "AssignmentsConfirmed"]);

/** The transcript with what really happened in place of what was expected. */
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
  readonly #actorById = new Map<string, Actor>();
  readonly #news: string[] = [];
  #swarm: TestSwarm | undefined;
  #read = { segment: 0, position: 0 };
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

  /** What happened since the last call. */
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
        return await this.#start(names);
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
        return await this.#swarmOf().coordinator.stop();
      case "resource":
        return this.#ask(subjects.operator("resource"), {
          resource: names[0],
          slots: Number(settings.slots),
        });
      case "acquire":
        return this.#acquire(names, settings);
      case "release":
        return this.#release(names[0] ?? "");
      case "submit":
        return await this.#submit(names, settings);
      case "cancel":
        return this.#ask(subjects.project("default", "cancel"), {
          tasks: names.map((task) => ({ task, round: 1 })),
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
      case "deafen":
      case "hear":
        actor.isDeaf = verb === "deafen";
        return;
      case "leave":
        actor.isSilent = true;
        return this.#ask(subjects.agent("_", name, "leave"), { incarnation: actor.incarnation });
      case "restart":
        return await this.#begin(actor);
      default:
        throw new Error(`nobody knows how to ${verb} ${name}`);
    }
  }

  async #start(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      const journal = new MemoryJournal(this.#store);
      this.#journalById.set(id, journal);
      if (this.#swarm !== undefined) await this.#swarm.startAnother(id, journal);
      else this.#swarm = await this.#startFirst(journal);
    }
  }

  #startFirst(journal: MemoryJournal): Promise<TestSwarm> {
    return startTestSwarm({ clock: this.#clock, store: this.#store, journal, random: noJitter });
  }

  async #enter(id: string, { kinds = "count", max = "4" }: Record<string, string>): Promise<void> {
    const join = { kinds: kinds.split(","), maxConcurrent: Number(max) };
    const life = {
      incarnation: "",
      lives: 0,
      isSilent: false,
      isDeaf: false,
      held: new Map(),
      seen: new Set<number>(),
      slots: new Map<string, boolean>(),
    };
    const actor: Actor = { id, join, ...life };
    this.#actorById.set(id, actor);
    this.#swarmOf().client.listen<AgentPush>(subjects.assign("_", id)).onPush = (push) =>
      this.#hear(actor, push);
    await this.#begin(actor);
    this.#beat(actor);
  }

  async #begin(actor: Actor): Promise<void> {
    actor.lives += 1;
    actor.incarnation = `${actor.id}-${actor.lives}`;
    actor.isSilent = false;
    actor.held = new Map();
    actor.seen = new Set();
    actor.slots = new Map();
    const { incarnation, join } = actor;
    await this.#swarmOf().client.ask(subjects.agent("_", actor.id, "join"), { ...join, incarnation });
  }

  #beat(actor: Actor): void {
    if (this.#isOver) return;
    let seen = 0;
    while (actor.seen.has(seen + 1)) seen += 1;
    const held = [...actor.held.values()].map(({ project, task, attempt }) => ({ project, task, attempt }));
    const { incarnation } = actor;
    const handlesOf = (isHeld: boolean) =>
      [...actor.slots].filter(([, each]) => each === isHeld).map(([handle]) => handle);
    const slots = { held: handlesOf(true), waiting: handlesOf(false) };
    const beat = { incarnation, status: "busy", inFlight: held.length, seen, held, slots };
    if (!actor.isSilent) this.#ask(subjects.agent("_", actor.id, "heartbeat"), beat);
    this.#clock.after(limits.heartbeatMs, () => this.#beat(actor));
  }

  #hear(actor: Actor, push: AgentPush): void {
    if (push.incarnation !== actor.incarnation || actor.isDeaf) return;
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
    this.#news.push(`  ${actor.id} is told: ${[push.type, ...what].join(" ")}`);
  }

  async #submit(ids: readonly string[], { kind = "count", ...more }: Record<string, string>): Promise<void> {
    const task = {
      kind,
      ...(more.timeout === undefined ? {} : { timeoutMs: msOf(more.timeout) }),
      ...(more.stall === undefined ? {} : { stallMs: msOf(more.stall) }),
      ...(more.deadline === undefined ? {} : { deadline: this.#clock.now() + msOf(more.deadline) }),
      ...(more.attempts === undefined ? {} : { maxAttempts: Number(more.attempts) }),
      ...(more.priority === undefined ? {} : { priority: Number(more.priority) }),
    };
    const tasks = ids.map((id) => ({ id, ...task }));
    this.#ask(subjects.project("default", "submit"), { tasks });
  }

  /** A handle is named after its agent: `a1-x` is a1's. */
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

  /** The end of a task's newest attempt, by whoever holds it. */
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
    throw new Error(`nobody can ${verb} ${task}`);
  }

  /** Asks and does not wait: there may be nobody to answer. */
  #ask(
    subject: string,
    message: object,
    // biome-ignore lint/suspicious/noExplicitAny: a stage reads whatever the answer holds
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
      if (number > this.#read.segment) this.#read = { segment: number, position: 0 };
      const { position: end = 0 } = this.#store.end(number) ?? {};
      while (this.#read.position < end) {
        this.#read.position += 1;
        const record = this.#store.read(number, this.#read.position);
        if (record !== undefined) this.#tell(record.bytes);
      }
    }
  }

  #tell(bytes: Uint8Array): void {
    const batch = decodeRecord(bytes);
    if (batch?.kind !== "batch") return;
    const events = batch.events.filter(({ type }) => !chatter.has(type));
    for (const [at, event] of events.entries()) {
      const head = at === 0 ? `${batch.idx}` : "";
      this.#news.push(`${head.padStart(3)} ${describe(event)}`);
    }
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
