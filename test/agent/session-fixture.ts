// A session with a scripted leader, a manual clock, and a record of its notices.

import type {
  AgentProfile,
  AttemptEnd,
  AttemptOrder,
  SessionLog,
  SessionNotice,
} from "../../src/agent/link.ts";
import { AgentSession } from "../../src/agent/session.ts";
import { systemRandom } from "../../src/clock.ts";
import { swarmId } from "../../src/ids.ts";
import { MemoryHub } from "../../src/transport/memory.ts";
import { ManualClock, settled } from "../client/manual-clock.ts";
import { FakeLeader } from "./fake-leader.ts";

export interface SessionFixtureOptions {
  readonly profile?: Partial<AgentProfile>;
  /** Default true: a leader is present from the start. */
  readonly hasLeader?: boolean;
  readonly leader?: (leader: FakeLeader) => void;
  readonly maxPayloadBytes?: number;
}

export class SessionFixture {
  readonly clock = new ManualClock();
  readonly hub: MemoryHub;
  readonly transport;
  readonly leader: FakeLeader;
  readonly session: AgentSession;
  readonly notices: SessionNotice[] = [];
  /** Log lines of the session, at `info` and above. */
  readonly lines: string[] = [];

  constructor({ profile = {}, hasLeader = true, leader, maxPayloadBytes }: SessionFixtureOptions = {}) {
    this.hub = new MemoryHub({
      clock: this.clock,
      ...(maxPayloadBytes === undefined ? {} : { maxPayloadBytes }),
    });
    this.transport = this.hub.connect();
    this.leader = new FakeLeader(this.hub);
    if (!hasLeader) this.leader.vanish();
    leader?.(this.leader);
    this.session = new AgentSession({
      swarm: swarmId("test"),
      profile: { id: "a1", kinds: ["count"], maxConcurrent: 2, ...profile },
      transport: this.transport,
      clock: this.clock,
      random: systemRandom,
      log: this.#log(),
      notify: (notice) => this.notices.push(notice),
    });
    this.session.start();
  }

  /** Starts a session and waits until joined. */
  static async joined(options: SessionFixtureOptions = {}): Promise<SessionFixture> {
    const fixture = new SessionFixture(options);
    await settled();
    return fixture;
  }

  noticesOf<Type extends SessionNotice["type"]>(type: Type): Extract<SessionNotice, { type: Type }>[] {
    return this.notices.filter((notice) => notice.type === type) as never;
  }

  /** Started tasks, in order. */
  get started(): AttemptOrder[] {
    return this.noticesOf("run").flatMap(({ attempts }) => attempts);
  }

  /** Tasks whose handlers were aborted, with the reason. */
  get aborted(): string[] {
    const taskByKey = new Map(this.started.map(({ key, task }) => [key, task]));
    return this.noticesOf("abort").flatMap(({ keys, reason }) =>
      keys.map((key) => `${taskByKey.get(key)} ${reason}`),
    );
  }

  #log(): SessionLog {
    const keep = (_fields: object, text: string) => void this.lines.push(text);
    return { debug: () => undefined, info: keep, warn: keep, error: keep };
  }

  get closed(): Extract<SessionNotice, { type: "closed" }> | undefined {
    return this.noticesOf("closed")[0];
  }

  /** Ends the handler of a task. */
  async end(task: string, end: Partial<AttemptEnd> = {}): Promise<void> {
    const order = this.started.findLast((each) => each.task === task);
    if (order === undefined) throw new Error(`${task} was not started`);
    this.session.send({
      type: "ended",
      ends: [{ key: order.key, outcome: "completed", latencyMs: 5, ...end }],
    });
    await settled();
  }

  /** Pushes assignments and waits for their arrival. */
  async assign(count = 1): Promise<string[]> {
    const assignments = Array.from({ length: count }, () => this.leader.assignment());
    this.leader.assign(...assignments);
    await settled();
    return assignments.map(({ task }) => task);
  }

  heldNames(): string[] {
    return this.leader.last("heartbeat").held.map(({ task, attempt }) => `${task}#${attempt}`);
  }
}

export { settled };
