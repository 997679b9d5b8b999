// How long a restart takes on real stores: reading a snapshot of so many live tasks, and a tail of so many events, from
// files and from JetStream (the nats-server on the PATH).
//   npm run bench:restart                     all; some minutes; exits 1 when a requirement is not met
//   npm run bench:restart -- --tasks N        snapshots of only so many live tasks
//   npm run bench:restart -- --events N       a tail of only so many events
//   npm run bench:restart -- --store file     only one of file, nats
//
// Not here: what writing and reading a state costs without a store (snapshot.ts).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { systemClock } from "../src/clock.ts";
import { Turn } from "../src/core/step.ts";
import { batchIndex, instant, kind, swarmId, taskId, term, userId } from "../src/ids.ts";
import { encodeBatch, hashOf } from "../src/journal/batch.ts";
import { BatchPlaces } from "../src/journal/batch-places.ts";
import { openFileSnapshots } from "../src/journal/file/snapshots.ts";
import { openFileJournal } from "../src/journal/file.ts";
import type { Journal } from "../src/journal/journal.ts";
import { openNatsJournal, openNatsSnapshots } from "../src/journal/nats.ts";
import { Replay } from "../src/journal/replay.ts";
import { restore, restoreAndRead } from "../src/journal/snapshot/restore.ts";
import { writeSnapshot } from "../src/journal/snapshot/write.ts";
import type { SnapshotStore } from "../src/journal/snapshot-store.ts";
import { limits } from "../src/limits.ts";
import { Planner } from "../src/scheduling/planner.ts";
import type { SwarmState } from "../src/state/state.ts";
import { findNatsServers, startNatsServer } from "../test/support/nats-server.ts";
import { join as joins, submit } from "../test/support/turns.ts";
import { LoadedSwarm } from "./loaded-swarm.ts";

const logger = pino({ level: "error" });
const journalId = "bench";
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
  readonly snapshots: SnapshotStore;
  close(): Promise<void>;
}

async function openFiles(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), "waggle-bench-"));
  const journal = await openFileJournal({ folder });
  const snapshots = await openFileSnapshots(join(folder, "snapshots"));
  const close = async () => {
    await journal.close();
    rmSync(folder, { recursive: true });
  };
  return { name: "files", journal, snapshots, close };
}

async function openStreams(): Promise<Store> {
  const [binary] = findNatsServers();
  if (binary === undefined) throw new Error("there is no nats-server on the PATH");
  const server = await startNatsServer({ binary: binary.path, jetstream: true });
  const options = {
    connection: { urls: [server.url], name: "bench" },
    swarm: swarmId("bench"),
    create: true,
  };
  const journal = await openNatsJournal(options);
  const snapshots = await openNatsSnapshots(options);
  const close = async () => {
    await Promise.all([journal.close(), snapshots.close()]);
    await server.stop();
  };
  return { name: `nats-server ${binary.version}`, journal, snapshots, close };
}

/** Appends batches of real decisions until so many events stand in the journal. */
async function writeHistory(
  journal: Journal,
  eventsWanted: number,
): Promise<{ events: number; bytes: number }> {
  const { state } = new Replay();
  const planner = new Planner(state);
  const agents = Array.from({ length: tasksPerTurn / 8 }, (_, n) => joins(`a${n}`, { maxConcurrent: 8 }));
  let [events, bytes, seq, prev, at] = [0, 0, 0, "", 1_000_000_000];
  while (events < eventsWanted) {
    at += 10;
    const turn = new Turn(state, instant(at), batchIndex(seq + 1), planner);
    if (seq === 0)
      turn.take({ type: "StartTerm", term: term(1), leader: "bench", opened: "o1", timeoutMs: 3_000 });
    for (const agent of seq === 0 ? agents : []) turn.take(agent);
    for (const open of [...state.agentById.values()].flatMap((row) => [...row.open.values()]))
      turn.take({ ...open, type: "ReportResult", outcome: { kind: "completed", result: "done" }, jitter: 0 });
    for (let n = 0; n < tasksPerTurn; n += 1)
      turn.take(
        submit({
          id: taskId(`t${seq}-${n}`),
          kind: kind("k"),
          user: userId(`u${n % 50}`),
          payload: "x".repeat(100),
        }),
      );
    turn.takeDue(() => 0);
    turn.plan();
    const header = { journal: journalId, term: term(1), idx: batchIndex(seq + 1), prev, at: instant(at) };
    const batch = encodeBatch(
      header,
      turn.recorded.map(({ json }) => json),
    );
    const outcome = await journal.append(batch, seq);
    if (outcome.kind !== "stored") throw new Error(`the journal answered ${outcome.kind}`);
    prev = hashOf(batch);
    seq += 1;
    events += turn.recorded.length;
    bytes += batch.length;
  }
  return { events, bytes };
}

async function measureTail({ name, journal, snapshots }: Store, eventsWanted: number): Promise<boolean> {
  const { events, bytes } = await writeHistory(journal, eventsWanted);
  const { since, cpuSince } = began();
  const deps = { journal, snapshots, clock: systemClock, logger };
  const { replay } = await restoreAndRead(deps, (from) => (record) => void from.replay.take(record));
  const seconds = (performance.now() - since) / 1_000;
  const allowed = required.eventSeconds * Math.max(1, events / required.events);
  const isMet = seconds <= allowed;
  console.log(
    `${name}: a tail of ${events} events in ${replay.position.idx} batches, ${mebibytes(bytes)} MiB`,
  );
  console.log(
    `  read in ${seconds.toFixed(2)} s (${cpuSeconds(cpuSince)} of processor time); required ${allowed.toFixed(1)} s: ${isMet ? "met" : "MISSED"}`,
  );
  return isMet;
}

async function measureSnapshot({ name, journal, snapshots }: Store, tasks: number): Promise<boolean> {
  const { lastSeq } = await journal.position();
  const bytes = await writeSnapshotOf(loadedState(tasks), lastSeq, snapshots);
  globalThis.gc?.();
  const { since, cpuSince } = began();
  const { replay } = await restore({ journal, snapshots, clock: systemClock, logger });
  const seconds = (performance.now() - since) / 1_000;
  const residentMiB = process.resourceUsage().maxRSS / 1024;
  const allowed = tasks <= required.smallTasks ? required.smallSeconds : required.seconds;
  const isMet = seconds <= allowed && residentMiB <= required.mebibytes;
  console.log(`${name}: a snapshot of ${replay.state.taskById.size} live tasks, ${mebibytes(bytes)} MiB`);
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
  // It counts events where a journal counts batches; further than the tail in any case.
  swarm.state.idx = batchIndex(100 * required.events + tasks);
  return swarm.state;
}

async function writeSnapshotOf(state: SwarmState, seq: number, store: SnapshotStore): Promise<number> {
  const since = performance.now();
  const position = { idx: state.idx, term: state.term, hash: "bench", journal: journalId, seq };
  const unmarked = { lastEventType: undefined, deadRecords: 0, alienRecords: undefined };
  const folded = { state, position, places: new BatchPlaces(), ...unmarked };
  const { chunks } = await writeSnapshot(folded, { store, clock: systemClock });
  console.log(`  written and read back in ${((performance.now() - since) / 1_000).toFixed(2)} s`);
  return chunks.reduce((sum, [, size]) => sum + size, 0);
}

function began() {
  return { since: performance.now(), cpuSince: process.cpuUsage() };
}

/** With other work beside it, this says more than the clock. */
function cpuSeconds(since: NodeJS.CpuUsage): string {
  const { user, system } = process.cpuUsage(since);
  return `${((user + system) / 1e6).toFixed(2)} s`;
}

function mebibytes(bytes: number): string {
  return (bytes / 1024 ** 2).toFixed(0);
}

const { values } = parseArgs({
  options: { tasks: { type: "string" }, events: { type: "string" }, store: { type: "string" } },
});
const taskCounts = values.tasks === undefined ? [100_000, 1_000_000] : [Number(values.tasks)];
const events = Number(values.events ?? required.events);
const openers = { file: openFiles, nats: openStreams };
const chosen = Object.entries(openers).filter(
  ([name]) => values.store === undefined || values.store === name,
);
console.log(`a slice is ${limits.snapshotSliceMs} ms`);
let isAllMet = true;
for (const [, open] of chosen) {
  const store = await open();
  try {
    isAllMet = (await measureTail(store, events)) && isAllMet;
    for (const tasks of taskCounts) isAllMet = (await measureSnapshot(store, tasks)) && isAllMet;
  } finally {
    await store.close();
  }
}
process.exitCode = isAllMet ? 0 : 1;
