// Duration of a restart on real stores: reading a base with N live tasks, and a segment with N events. The stores are
// files and JetStream (the nats-server on the PATH).
//     npm run bench:restart                     all; some minutes; exits 1 if a requirement is not met
//     npm run bench:restart -- --tasks N        bases of only N live tasks
//     npm run bench:restart -- --events N       a segment of only N events
//     npm run bench:restart -- --store file     only file, or only nats
//
// Not here: the cost of writing and reading a state without a store (snapshot.ts).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../src/clock.ts";
import { Turn } from "../src/core/step.ts";
import { batchIndex, instant, kind, swarmId, taskId, term, userId } from "../src/ids.ts";
import { writeBase } from "../src/journal/base.ts";
import { openFileJournal } from "../src/journal/file.ts";
import type { Journal } from "../src/journal/journal.ts";
import { findLive } from "../src/journal/live.ts";
import { restore } from "../src/journal/log.ts";
import { openNatsJournal } from "../src/journal/nats.ts";
import { type ChainTail, encodeBatch, encodeRecord, hashOf, type Opened } from "../src/journal/records.ts";
import { emptyTail, Replay } from "../src/journal/replay.ts";
import { SegmentWriter } from "../src/journal/segment-writer.ts";
import { limits } from "../src/limits.ts";
import { Planner } from "../src/scheduling/planner.ts";
import type { SwarmState } from "../src/state/state.ts";
import { findNatsServers, startNatsServer } from "../test/support/nats-server.ts";
import { readFlags } from "../test/support/script-flags.ts";
import { join as joins, submit } from "../test/support/turns.ts";
import { LoadedSwarm } from "./loaded-swarm.ts";

const SESSION = "bench";
const required = {
  eventSeconds: 10,
  events: 1_000_000,
  smallTasks: 100_000,
  smallSeconds: 3,
  seconds: 20,
  mebibytes: 4_096,
};
const tasksPerTurn = 64;

interface Store {
  readonly name: string;
  readonly journal: Journal;
  close(): Promise<void>;
}

async function openFiles(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), "waggle-bench-"));
  const journal = await openFileJournal({ folder });
  const close = async () => {
    await journal.close();
    rmSync(folder, { recursive: true });
  };
  return { name: "files", journal, close };
}

async function openStreams(): Promise<Store> {
  const [binary] = findNatsServers();
  if (binary === undefined) throw new Error("there is no nats-server on the PATH");
  const server = await startNatsServer({ binary: binary.path, jetstream: true });
  const connection = { urls: [server.url], name: "bench" };
  const journal = await openNatsJournal({ connection, swarm: swarmId("bench") });
  const close = async () => {
    await journal.close();
    await server.stop();
  };
  return { name: `nats-server ${binary.version}`, journal, close };
}

/** Opens the next segment: with a base, or continuing nothing. */
async function openSegment(journal: Journal, held: { state: SwarmState; tail: ChainTail } | undefined) {
  const number = Math.max(0, ...(await journal.list())) + 1;
  const { signal } = new AbortController();
  const writer = new SegmentWriter({
    segment: journal.segment(number),
    session: SESSION,
    clock: systemClock,
    signal,
  });
  await journal.create(number);
  await writer.put(encodeRecord({ kind: "claim", segment: number, session: SESSION, attempt: "attempt-1" }));
  const put = (bytes: Uint8Array) => writer.put(bytes);
  const base = held && (await writeBase(held, { session: SESSION, clock: systemClock, put }));
  const opened: Opened = {
    ...{
      kind: "opened",
      segment: number,
      session: SESSION,
      journal: "bench",
      term: term(number),
      leader: "bench",
    },
    ...{ tail: held?.tail ?? emptyTail, previous: undefined, base, recent: [] },
  };
  await writer.put(encodeRecord(opened), { isOpened: true });
  return { number, writer };
}

async function restoreNewest(journal: Journal): Promise<Replay> {
  const { live } = await findLive(journal);
  if (live === undefined) throw new Error("the journal has no segment");
  return await restore(live, { journal, clock: systemClock });
}

/** Appends batches of real decisions to a segment, up to the given number of events. */
async function writeHistory(
  journal: Journal,
  eventsWanted: number,
): Promise<{ events: number; bytes: number }> {
  const { number, writer } = await openSegment(journal, undefined);
  const { state } = new Replay();
  const planner = new Planner(state);
  const agents = Array.from({ length: tasksPerTurn / 8 }, (_, n) => joins(`a${n}`, { maxConcurrent: 8 }));
  let [events, bytes, idx, prev, at] = [0, 0, 0, "", 1_000_000_000];
  while (events < eventsWanted) {
    at += 10;
    idx += 1;
    const turn = new Turn(state, instant(at), batchIndex(idx), planner);
    if (idx === 1)
      turn.take({
        type: "StartTerm",
        term: term(number),
        leader: "bench",
        opened: "bench",
        timeoutMs: 3_000,
      });
    for (const agent of idx === 1 ? agents : []) turn.take(agent);
    for (const open of [...state.agentById.values()].flatMap((row) => [...row.open.values()]))
      turn.take({ ...open, type: "ReportResult", outcome: { kind: "completed", result: "done" }, jitter: 0 });
    for (let n = 0; n < tasksPerTurn; n += 1)
      turn.take(
        submit({
          id: taskId(`t${idx}-${n}`),
          kind: kind("k"),
          user: userId(`u${n % 50}`),
          payload: "x".repeat(100),
        }),
      );
    turn.takeDue(() => 0);
    turn.plan();
    const place = { idx: batchIndex(idx), prev, at: instant(at) };
    const batch = encodeBatch(
      { journal: "bench", session: SESSION, term: term(number), ...place },
      turn.eventsJson,
    );
    await writer.put(batch);
    prev = hashOf(batch);
    events += turn.recorded.length;
    bytes += batch.length;
  }
  return { events, bytes };
}

async function measureEvents({ name, journal }: Store, eventsWanted: number): Promise<boolean> {
  const { events, bytes } = await writeHistory(journal, eventsWanted);
  const { since, cpuSince } = began();
  const { tail } = await restoreNewest(journal);
  const seconds = (performance.now() - since) / 1_000;
  const allowed = required.eventSeconds * Math.max(1, events / required.events);
  const isMet = seconds <= allowed;
  console.log(`${name}: a segment of ${events} events in ${tail.idx} batches, ${mebibytes(bytes)} MiB`);
  console.log(
    `  read in ${seconds.toFixed(2)} s (${cpuSeconds(cpuSince)} of processor time); required ${allowed.toFixed(1)} s: ${isMet ? "met" : "MISSED"}`,
  );
  return isMet;
}

async function measureBase({ name, journal }: Store, tasks: number): Promise<boolean> {
  const bytes = await writeBaseOf(loadedState(tasks), journal);
  globalThis.gc?.();
  const { since, cpuSince } = began();
  const { state } = await restoreNewest(journal);
  const seconds = (performance.now() - since) / 1_000;
  const residentMiB = process.resourceUsage().maxRSS / 1024;
  const allowed = tasks <= required.smallTasks ? required.smallSeconds : required.seconds;
  const isMet = seconds <= allowed && residentMiB <= required.mebibytes;
  console.log(`${name}: a base of ${state.taskById.size} live tasks, ${mebibytes(bytes)} MiB`);
  console.log(
    `  read in ${seconds.toFixed(2)} s (${cpuSeconds(cpuSince)} of processor time); resident at most ${residentMiB.toFixed(0)} MiB, the writer included`,
  );
  console.log(`  required: ${allowed} s and ${required.mebibytes} MiB: ${isMet ? "met" : "MISSED"}`);
  return isMet;
}

function loadedState(tasks: number): SwarmState {
  const swarm = new LoadedSwarm({ agents: 1_000, users: 10_000, projects: 100, queued: tasks });
  swarm.fill();
  swarm.start();
  // Counts events, while a journal counts batches; in any case beyond the tail.
  swarm.state.idx = batchIndex(100 * required.events + tasks);
  return swarm.state;
}

/** @returns bytes of the segment */
async function writeBaseOf(state: SwarmState, journal: Journal): Promise<number> {
  const since = performance.now();
  const tail = { journal: "bench", term: state.term, idx: state.idx, hash: "bench" };
  const { number } = await openSegment(journal, { state, tail });
  console.log(`  written in ${((performance.now() - since) / 1_000).toFixed(2)} s`);
  return (await journal.segment(number).end())?.bytes ?? 0;
}

function began() {
  return { since: performance.now(), cpuSince: process.cpuUsage() };
}

/** More reliable than the clock while other work runs. */
function cpuSeconds(since: NodeJS.CpuUsage): string {
  const { user, system } = process.cpuUsage(since);
  return `${((user + system) / 1e6).toFixed(2)} s`;
}

function mebibytes(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(0);
}

const USAGE = `npm run bench:restart -- [--tasks N] [--events N] [--store file|nats]

  --tasks   live tasks in the base (default: 100,000 and then 1,000,000)
  --events  events in the segment (default ${required.events})
  --store   only this store (default: both)

Exits 1 if a requirement is not met.`;

const { values } = readFlags(USAGE, () =>
  parseArgs({
    options: {
      tasks: { type: "string" },
      events: { type: "string" },
      store: { type: "string" },
      help: { type: "boolean", default: false },
    },
  }),
);
const taskCounts = values.tasks === undefined ? [100_000, 1_000_000] : [Number(values.tasks)];
const events = Number(values.events ?? required.events);
const openers = { file: openFiles, nats: openStreams };
const chosen = Object.entries(openers).filter(
  ([name]) => values.store === undefined || values.store === name,
);
console.log(`a slice is ${limits.baseSliceMs} ms`);
let isAllMet = true;
for (const [, open] of chosen) {
  const store = await open();
  try {
    isAllMet = (await measureEvents(store, events)) && isAllMet;
    for (const tasks of taskCounts) isAllMet = (await measureBase(store, tasks)) && isAllMet;
  } finally {
    await store.close();
  }
}
process.exitCode = isAllMet ? 0 : 1;
