// Ten thousand messages on every inbound subject: well-formed, mutated and nonsense, from agents and clients that
// remember all pushes and lie about them. The invariants hold, the coordinator lives, and each request is answered.

import { afterEach, expect, it } from "vitest";
import { agentId, instant } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { AgentPush } from "../../src/protocol/schemas.ts";
import { statusOf } from "../../src/views/status.ts";
import { Dice } from "../scheduling/random-swarm.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

const messagesMax = 10_000;
const seed = Number(process.env.WAGGLE_SEED ?? Date.now() % 1_000_000);
let swarm: TestSwarm;
afterEach(() => swarm.stop());

const nonsense: readonly unknown[] = [
  undefined,
  null,
  true,
  -1,
  0,
  0.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  "",
  "x",
  "a b",
  ">",
  "*",
  "_",
  "..",
  "\u0000",
  "\ud800",
  "x".repeat(200),
  "蜂".repeat(2_000),
  "__proto__",
  [],
  {},
  [[]],
  { __proto__: null },
  [null],
];

/** An adversary: knows all assignments, and sends any request. */
class Chaos {
  readonly #dice: Dice;
  readonly #clock: ManualClock;
  /** All assignments ever, as sent. */
  readonly #assigned: {
    agent: string;
    incarnation: string;
    project: string;
    task: string;
    attempt: number;
    token: string;
  }[] = [];
  #handles = 0;
  #agentSessions = 0;
  readonly #sessionByAgent = new Map<string, string>();
  readonly #newestOf: (agent: string) => string | undefined;

  /** @param newestOf the newest session of an agent */
  constructor(dice: Dice, clock: ManualClock, newestOf: (agent: string) => string | undefined) {
    this.#newestOf = newestOf;
    this.#dice = dice;
    this.#clock = clock;
  }

  hear(agent: string, push: AgentPush): void {
    if (push.type !== "assign") return;
    for (const { project, task, attempt, token } of push.assignments)
      this.#assigned.push({ agent, incarnation: push.incarnation, project, task, attempt, token });
    if (this.#assigned.length > 200) this.#assigned.splice(0, 100);
  }

  message(): { readonly subject: string; readonly bytes: Uint8Array } {
    const dice = this.#dice;
    const { subject, body } = this.#wellFormed();
    const chance = dice.next();
    if (chance < 0.55) return { subject, bytes: bytesOf(body) };
    if (chance < 0.9) return { subject, bytes: bytesOf(this.#mutated(body)) };
    if (chance < 0.95) return { subject, bytes: this.#torn(bytesOf(body)) };
    return { subject, bytes: Buffer.from(Array.from({ length: dice.below(64) }, () => dice.below(256))) };
  }

  #wellFormed(): { readonly subject: string; readonly body: object } {
    const dice = this.#dice;
    const agent = this.#pick(["a1", "a2", "a3", "a4", "nobody"]);
    const project = this.#pick(["default", "p2", "_", "no*"]);
    switch (dice.below(19)) {
      case 0:
      case 1:
      case 2:
        return { subject: subjects.project(project, "submit"), body: this.#submission() };
      case 3:
        return {
          subject: subjects.project(project, "cancel"),
          body: { tasks: [{ task: this.#task(), round: 1 }] },
        };
      case 4:
        return {
          subject: subjects.project(project, "await"),
          body: { tasks: [this.#task(), this.#task()], notify: "_INBOX.me" },
        };
      case 5:
        return { subject: subjects.agent("_", agent, "join"), body: this.#join(agent) };
      case 6:
        return { subject: subjects.agent("_", agent, "leave"), body: { incarnation: this.#session(agent) } };
      case 7:
      case 8:
        return { subject: subjects.agent("_", agent, "heartbeat"), body: this.#heartbeat(agent) };
      case 9:
        return {
          subject: subjects.agent("_", agent, "progress"),
          body: { ...this.#attempt(), fraction: dice.next() },
        };
      case 10:
      case 11:
        return this.#result();
      case 12:
        return { subject: subjects.operator(this.#pick(["drain", "undrain"])), body: { agent } };
      case 13:
        return this.#setting();
      case 14:
      case 15:
        return { subject: subjects.agent("_", agent, "acquire"), body: this.#slotLease(agent) };
      case 16:
      case 17:
        return {
          subject: subjects.agent("_", agent, "release"),
          body: { incarnation: this.#session(agent), handle: this.#handle() },
        };
      default:
        return this.#query(project);
    }
  }

  #slotLease(agent: string): object {
    const dice = this.#dice;
    this.#handles += 1;
    return {
      incarnation: this.#session(agent),
      handle: dice.below(5) === 0 ? this.#handle() : `h${this.#handles}`,
      resources: this.#pick([["gpt"], ["gpt"], ["gpt", "disk"], ["gpt", "gpt"], ["nowhere"]]),
      weight: 1 + dice.next() * 9,
      ...(dice.below(3) === 0 ? { holder: this.#pick(["x", "y"]) } : {}),
      ...(dice.below(3) === 0 ? { timeoutMs: dice.below(3_000) } : {}),
    };
  }

  /** A recent item. */
  #handle(): string {
    return `h${Math.max(1, this.#handles - this.#dice.below(12))}`;
  }

  /** lifted more often than imposed, so that the swarm goes on */
  #setting(): { readonly subject: string; readonly body: object } {
    const dice = this.#dice;
    const project = this.#pick(["default", "p2", "_", "p3"]);
    const limit = dice.below(3) === 0 ? 1 + dice.below(6) : null;
    const mode = this.#pick(["wait", "reject", "alert", "downgrade"]);
    const tokens = 1 + dice.below(50_000);
    const budget = dice.below(3) === 0 ? { tokens, windowMs: 1_000 + dice.below(9_000), mode } : null;
    const bodies = {
      policy: {
        rules: this.#pick(["waggle", "budget", "loco", "vapora", "lucio"]),
        topN: limit,
        budget,
        alpha: dice.next() / 2,
        autoTune: dice.below(2) === 0,
        projects: dice.below(6) === 0 ? "declared" : "open",
      },
      project: { project, creditWeight: 0.5 + dice.next(), maxConcurrent: limit, budget },
      kind: {
        kind: this.#pick(["count", "digest"]),
        importance: 1 + dice.below(3),
        cheaper: "outline",
        cheaperType: "small",
      },
      resource: {
        resource: this.#pick(["gpt", "gpt", "disk"]),
        slots: dice.below(5),
        maxWaiters: dice.below(5),
      },
      rate: { type: "claude", window: "per_minute", tokensMax: tokens, sliding: dice.below(2) === 0 },
      pause: dice.below(2) === 0 ? { project } : {},
      resume: dice.below(2) === 0 ? { project } : {},
    };
    const verb = this.#pick([
      "policy",
      "project",
      "kind",
      "resource",
      "rate",
      "pause",
      "resume",
      "resume",
      "resume",
    ] as const);
    return { subject: subjects.operator(verb), body: bodies[verb] };
  }

  #submission(): object {
    const dice = this.#dice;
    const tasks = Array.from({ length: 1 + dice.below(4) }, () => ({
      ...(dice.below(3) === 0 ? {} : { id: this.#task() }),
      kind: this.#pick(["count", "digest", "outline", "cuont"]),
      user: this.#pick(["ann", "bob", "cid"]),
      priority: dice.below(200),
      maxAttempts: 1 + dice.below(3),
      timeoutMs: 100 + dice.below(5_000),
      payload: this.#pick(["", "x", "\u0000\u001f", "ä".repeat(dice.below(300))]),
      ...(dice.below(6) === 0 ? { deadline: this.#clock.now() + dice.below(3_000) - 100 } : {}),
      ...(dice.below(6) === 0 ? { notBefore: this.#clock.now() + dice.below(2_000) } : {}),
      ...(dice.below(6) === 0 ? { stallMs: 100 + dice.below(2_000) } : {}),
      ...(dice.below(8) === 0 ? { role: "r" } : {}),
    }));
    return {
      tasks,
      ...(dice.below(2) === 0 ? { notify: "_INBOX.me" } : {}),
      ...(dice.below(5) === 0 ? { failFast: true } : {}),
    };
  }

  #join(agent: string): object {
    const dice = this.#dice;
    if (dice.below(3) > 0 || !this.#sessionByAgent.has(agent)) {
      this.#agentSessions += 1;
      this.#sessionByAgent.set(agent, `${agent}-${this.#agentSessions}`);
    }
    return {
      // A fenced session does not join again.
      incarnation: this.#sessionByAgent.get(agent),
      after: this.#newestOf(agent),
      kinds: ["count", "digest", "outline"].filter(() => dice.below(3) > 0),
      maxConcurrent: 1 + dice.below(4),
      prefetch: dice.below(3),
      ...(dice.below(2) === 0 ? { role: "r" } : {}),
      labels: { zone: "x" },
      held: this.#held(agent),
      seen: dice.below(20),
    };
  }

  #heartbeat(agent: string): object {
    const held = this.#held(agent);
    const draining = this.#dice.below(20) === 0 ? { draining: true } : {};
    const seen = this.#dice.below(40);
    const handles = () => Array.from({ length: this.#dice.below(3) }, () => this.#handle());
    const slots = this.#dice.below(3) > 0 ? { slots: { held: handles(), waiting: handles() } } : {};
    const more = { ...draining, ...slots };
    return { incarnation: this.#session(agent), status: "busy", inFlight: held.length, held, seen, ...more };
  }

  #result(): { readonly subject: string; readonly body: object } {
    const { agent, incarnation, project, task, attempt, token } = this.#attempt();
    const outcome = this.#pick(["completed", "completed", "failed", "infrastructure", "invalid", "revoked"]);
    const results = [{ project, task, attempt, token, outcome, result: "ok", error: "no" }];
    return { subject: subjects.agent("_", agent, "result"), body: { incarnation, results } };
  }

  #query(project: string): { readonly subject: string; readonly body: object } {
    const what = this.#pick(["status", "task", "settings", "journal", "events"] as const);
    const body = {
      status: {},
      task: { task: this.#task() },
      settings: this.#dice.below(2) === 0 ? { name: "default" } : {},
      journal: { from: 1 + this.#dice.below(2_000) },
      events: { from: 1 + this.#dice.below(2_000) },
    };
    return { subject: subjects.query(project, what), body: body[what] };
  }

  #attempt() {
    return (
      this.#dice.of(this.#assigned.slice(this.#dice.below(4) === 0 ? 0 : -6)) ?? {
        agent: "a1",
        incarnation: "a1-1",
        project: "default",
        task: this.#task(),
        attempt: 1,
        token: "1.1",
      }
    );
  }

  #held(agent: string): object[] {
    const own = this.#assigned.filter(
      (each) => each.agent === agent && each.incarnation === this.#session(agent),
    );
    return own
      .filter(() => this.#dice.below(4) > 0)
      .map(({ project, task, attempt }) => ({ project, task, attempt }));
  }

  #session(agent: string): string {
    return this.#dice.below(15) === 0 ? `${agent}-0` : (this.#sessionByAgent.get(agent) ?? `${agent}-0`);
  }

  #task(): string {
    return `t${this.#dice.below(150)}`;
  }

  /** The same message with one value replaced by nonsense, or removed. */
  #mutated(value: unknown): unknown {
    const dice = this.#dice;
    if (typeof value !== "object" || value === null || dice.below(4) === 0) return dice.of(nonsense);
    const copy = structuredClone(value) as Record<string, unknown>;
    const key = dice.of(Object.keys(copy));
    if (key !== undefined) copy[key] = this.#mutated(copy[key]);
    return copy;
  }

  /** Cut, or with a byte changed. */
  #torn(bytes: Uint8Array): Uint8Array {
    const at = this.#dice.below(bytes.length + 1);
    if (this.#dice.below(2) === 0) return bytes.slice(0, at);
    const copy = Uint8Array.from(bytes);
    copy[at] = this.#dice.below(256);
    return copy;
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#dice.below(items.length)] as Item;
  }
}

function bytesOf(body: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(body) ?? "");
}

it(`ten thousand messages leave the invariants whole and the coordinator alive (WAGGLE_SEED=${seed})`, async () => {
  const clock = new ManualClock();
  const dice = new Dice(seed);
  swarm = await startTestSwarm({
    clock,
    random: { next: () => dice.next(), id: (length) => `r${dice.below(1e9)}`.padEnd(length, "0") },
  });
  const { watched } = swarm;
  const newestOf = (agent: string) => watched.settled().state.agentById.get(agentId(agent))?.incarnation;
  const chaos = new Chaos(dice, clock, newestOf);
  const { transport } = swarm.client;
  transport.subscribe(subjects.assign("_", "*"), ({ subject, data }) =>
    chaos.hear(subject.split(".")[5] ?? "", JSON.parse(Buffer.from(data).toString())),
  );
  let answers = 0;
  transport.subscribe("_INBOX.chaos.*", ({ data }) => {
    JSON.parse(Buffer.from(data).toString());
    answers += 1;
  });
  let asked = 0;
  for (let sent = 0; sent < messagesMax; sent += 1) {
    const { subject, bytes } = chaos.message();
    const isAsked = dice.below(10) > 0;
    transport.publish(subject, bytes, isAsked ? `_INBOX.chaos.${sent}` : undefined);
    // Progress is never answered, nor are heartbeats of agents that get `rejoin` instead.
    if (isAsked && !/\.(progress|heartbeat)$/.test(subject)) asked += 1;
    if (dice.below(8) === 0) await clock.advance(dice.below(30) === 0 ? dice.below(6_000) : dice.below(40));
  }
  await clock.advance(limits.appendRetryMs);
  expect(answers).toBeGreaterThanOrEqual(asked);
  const { state } = swarm.watched.settled();
  expect(state.counts.completed).toBeGreaterThan(10); // 24 to 42 as a rule
  expect(state.counts["dead-lettered"]).toBeGreaterThan(5);
  expect(state.counts.expired).toBeGreaterThan(5);
  expect(state.slotLeases).toBeGreaterThan(50);

  // Replay equals the run: the leader's state is the fold of the journal, agents' charts included.
  const { agents, counters: _, observed: __, standbys: ___, journal, ...rest } = await swarm.client.status();
  const whole = { now: instant(clock.now()), bytesMax: limits.maxPayloadBytesDefault, counters: {} };
  const replayed = statusOf(state, { swarm: "test", journal, ...whole });
  expect({ ...rest, stale: true }).toEqual({
    ...replayed,
    agents: undefined,
    counters: undefined,
    journal: undefined,
  });
  const agentSessions = agents.map(
    ({ silentMs: __, reported: ____, outlivedMs: _____, ...each }: Record<string, unknown>) => each,
  );
  expect(agentSessions).toEqual(replayed.agents);
});
