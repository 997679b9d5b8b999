// A swarm with something to see on every page, for tests and pictures. Coordinators and dashboard are processes on a
// real nats-server. Agents run, fail and share a resource, and users of several projects keep submitting.

import { setTimeout as pause } from "node:timers/promises";
import { connect } from "../../../src/client/connect.ts";
import type { Swarm } from "../../../src/client/swarm.ts";
import { type RunningWaggle, Workplace } from "../../support/waggle-process.ts";

export interface LivelySwarm {
  readonly workplace: Workplace;
  readonly leader: RunningWaggle;
  readonly standby: RunningWaggle;
  readonly swarm: Swarm;
  /** Address of the dashboard, with the token that signs in. */
  readonly url: string;
  /** Starts one more coordinator, and waits until it leads or stands by. */
  startCoordinator(): Promise<RunningWaggle>;
  /** Ends the process that serves the page. */
  stopDashboard(): Promise<void>;
  stop(): Promise<void>;
}

export interface LivelyOptions {
  /** Path of the server's binary. */
  readonly server: string;
  /** Divides all pauses and durations. Default 1. */
  readonly speed?: number;
  readonly dashboardFlags?: readonly string[];
}

/** Of each agent: the kinds, slots, and the time of an attempt, ms. */
const agents = [
  { id: "scribe-1", kinds: ["summarize", "translate"], maxConcurrent: 4, ms: 420, type: "large" },
  { id: "scribe-2", kinds: ["summarize", "translate"], maxConcurrent: 4, ms: 510, type: "large" },
  { id: "scribe-3", kinds: ["summarize"], maxConcurrent: 2, ms: 900, type: "small" },
  { id: "reader-1", kinds: ["ocr"], maxConcurrent: 6, ms: 700, type: "small" },
  { id: "reader-2", kinds: ["ocr", "embed"], maxConcurrent: 3, ms: 620, type: "small" },
  { id: "embedder-1", kinds: ["embed"], maxConcurrent: 4, ms: 240, type: "small" },
  { id: "reviewer-1", kinds: ["review"], maxConcurrent: 2, ms: 800, type: "large" },
] as const;

/** Of each user: the pause between two bursts, ms, and the size of a burst. */
const users = [
  { project: "acme", user: "ann", kinds: ["summarize", "ocr"], everyMs: 700, burst: 4 },
  { project: "acme", user: "bob", kinds: ["embed"], everyMs: 6_000, burst: 60 },
  { project: "globex", user: "carol", kinds: ["summarize", "embed", "review"], everyMs: 1_000, burst: 3 },
  { project: "globex", user: "dave", kinds: ["translate"], everyMs: 650, burst: 2 },
  { project: "initech", user: "erin", kinds: ["embed", "ocr"], everyMs: 900, burst: 3 },
] as const;

const TOKENS = 820;

export async function startLivelySwarm({
  server,
  speed = 1,
  dashboardFlags = [],
}: LivelyOptions): Promise<LivelySwarm> {
  const workplace = await Workplace.make(server);
  const startCoordinator = async () => {
    const coordinator = workplace.start("up", "--leader-timeout", "1s", "--no-dashboard");
    await coordinator.says(/leading|standing by/);
    return coordinator;
  };
  const leader = await startCoordinator();
  const standby = await startCoordinator();
  const swarm = await connect({ dataFolder: workplace.dataFolder });
  await configure(swarm);
  const dashboard = workplace.start("dashboard", "--port", "0", ...dashboardFlags);
  await dashboard.says(/http:\/\/127\.0\.0\.1:\d+\S*/);
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+\S*/.exec(dashboard.said) ?? [];

  const ended = new AbortController();
  const joined = await Promise.all(agents.map((agent) => joinAgent(swarm, agent, speed)));
  const submitting = users.map((user) => keepSubmitting(swarm, user, { speed, signal: ended.signal }));
  return {
    ...{ workplace, leader, standby, swarm, url, startCoordinator },
    stopDashboard: async () => {
      await dashboard.kill("SIGTERM");
    },
    stop: async () => {
      ended.abort();
      await Promise.all(submitting);
      await Promise.all(joined.map((agent) => agent.stop()));
      await swarm.close();
      await workplace.clear();
    },
  };
}

async function configure(swarm: Swarm): Promise<void> {
  await swarm.setProject("acme", {
    creditWeight: 3,
    budget: { tokens: 20_000_000, windowMs: 3_600_000, mode: "wait" },
  });
  await swarm.setProject("globex", {
    creditWeight: 2,
    budget: { tokens: 4_000_000, windowMs: 3_600_000, mode: "alert" },
  });
  await swarm.setResource("gpt-4o", { slots: 4, autoTune: true, alpha: 0.25 });
  await swarm.setRate("large", { window: "per_minute", tokensMax: 6_000_000 });
}

type AgentOutline = (typeof agents)[number];

async function joinAgent(swarm: Swarm, { id, kinds, maxConcurrent, ms, type }: AgentOutline, speed: number) {
  return await swarm.agent({
    ...{ id, type, maxConcurrent, kinds: [...kinds] },
    labels: { region: id.endsWith("1") ? "eu-west" : "eu-north" },
    handler: async (task, { signal, acquire, reportTokens }) => {
      const takesMs = (ms * (0.6 + (hash(`${task.id}${task.attempt}`) % 80) / 100)) / speed;
      const slot = sharedKinds.has(task.kind) ? await acquire("gpt-4o") : undefined;
      await pause(takesMs, undefined, { signal });
      await slot?.release();
      reportTokens(TOKENS);
      if (id === "reader-2" && task.kind === "ocr" && hash(task.id) % 3 === 0)
        throw new Error("the scan is empty: page 1 has no text");
      return `${task.kind} of ${task.payload}: done`;
    },
  });
}

/** Kinds whose attempts hold a slot of the shared model. */
const sharedKinds = new Set(["summarize", "review"]);

type UserOutline = (typeof users)[number];

interface Pace {
  readonly speed: number;
  readonly signal: AbortSignal;
}

async function keepSubmitting(swarm: Swarm, outline: UserOutline, { speed, signal }: Pace): Promise<void> {
  const { project, user, kinds, everyMs, burst } = outline;
  for (let round = 1; !signal.aborted; round++) {
    const tasks = Array.from({ length: burst }, (_, at) => {
      const kind = kinds[(round + at) % kinds.length] ?? kinds[0];
      return {
        id: `${kind}-${user}-${round}-${at}`,
        kind,
        user,
        project,
        payload: `document ${round}.${at}`,
        maxAttempts: 2,
        tokens: TOKENS,
      };
    });
    // Without a leader a submission waits; a test that ends meanwhile closes the connection.
    await Promise.allSettled(tasks.map((task) => swarm.submit(task)));
    await pause(everyMs / speed, undefined, { signal }).catch(() => undefined);
  }
}

/** The same for the same text. */
function hash(text: string): number {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003;
  return sum;
}
