// A short true history for the checkers' tests: a production coordinator, a client and an agent with recorded
// connections. It holds every kind of request and answer.

import { swarmId } from "../../../src/ids.ts";
import { decodeRecord, hashOf } from "../../../src/journal/records.ts";
import { Replay } from "../../../src/journal/replay.ts";
import { doneSubject } from "../../../src/protocol/subjects.ts";
import { stateFingerprint } from "../../../src/sim/history/check-readings.ts";
import { CommittedLog, type LogRecord } from "../../../src/sim/history/committed-log.ts";
import type { Observation, Reading } from "../../../src/sim/history/observation.ts";
import { RecordingTransport } from "../../../src/sim/history/recording-transport.ts";
import type { MemoryHub } from "../../../src/transport/memory.ts";
import { startTestSwarm, subjects, WireAgent, WireNode } from "../../support/swarm.ts";

export interface Recorded {
  readonly observations: readonly Observation[];
  readonly readings: readonly Reading[];
  readonly journal: readonly LogRecord[];
}

export async function recordHistory(): Promise<Recorded> {
  const swarm = await startTestSwarm();
  const observations: Observation[] = [];
  await live((node) => recording(swarm.hub, node, observations));
  await swarm.stop();
  const journal: LogRecord[] = [];
  for (let position = 1; ; position += 1) {
    const record = swarm.store.read(1, position);
    if (record === undefined) break;
    if (decodeRecord(record.bytes)?.kind === "batch") journal.push(record);
  }
  return { observations, readings: readingsOf(journal), journal };
}

function recording(hub: MemoryHub, node: string, observations: Observation[]): RecordingTransport {
  return new RecordingTransport(hub.connect(), {
    node,
    swarm: swarmId("test"),
    now: () => performance.now(),
    record: (observed) => observations.push(observed),
  });
}

/** `done` completes, `failed` fails for good, `dropped` is cancelled while running and completes in
 *  the second round, `waiting` stays queued. */
async function live(connect: (node: string) => RecordingTransport): Promise<void> {
  const client = new WireNode(connect("client"));
  const agent = new WireAgent(connect("agent"), "a1", { maxConcurrent: 1 });
  await agent.join();
  client.listen(doneSubject("_INBOX.inbox"));
  const submit = (id: string, kind = "count", more: object = {}) =>
    client.submit([{ id, kind, payload: `of ${id}`, ...more }], { notify: "_INBOX.inbox" });

  await submit("done");
  await submit("done");
  await submit("done", "count", { payload: "another" });
  await client.submit([{ id: "refused", kind: "nobody" }], { failFast: true });
  await submit("waiting", "nobody");
  await awaitEnd(client, ["done", "waiting", "unknown"]);
  await query(client, "waiting");
  await query(client, "unknown");
  const first = await agent.assignment();
  await agent.report(first, "completed", { result: "it is done" });
  await agent.report(first, "completed", { result: "it is done" });
  await awaitEnd(client, ["done"]);
  await cancel(client, ["done", "unknown"]);

  await submit("failed");
  const second = await agent.assignment();
  await agent.report({ ...second, token: "1.999" }, "completed", { result: "not mine" });
  await agent.report({ ...second, attempt: 7 }, "completed", { result: "never was" });
  await agent.report(second, "invalid", { error: "no such thing" });
  await submit("dropped");
  const third = await agent.assignment();
  await cancel(client, ["dropped"]);
  await agent.report(third, "completed", { result: "too late" });
  await retry(client, ["dropped", "dropped", "done", "unknown"]);
  const fourth = await agent.assignment();
  await agent.report(third, "completed", { result: "much too late" });
  await cancel(client, ["dropped"]);
  await query(client, "dropped");
  await agent.report(fourth, "completed", { result: "in the second round" });
  await awaitEnd(client, ["dropped"]);
  await query(client, "done");
}

function awaitEnd(client: WireNode, tasks: readonly string[]): Promise<unknown> {
  return client.ask(subjects.project("default", "await"), { tasks, notify: "_INBOX.inbox" });
}

function query(client: WireNode, task: string): Promise<unknown> {
  return client.ask(subjects.query("default", "task"), { task });
}

/** Cancels round 1 of tasks. */
function cancel(client: WireNode, tasks: readonly string[]): Promise<unknown> {
  return client.ask(subjects.project("default", "cancel"), {
    tasks: tasks.map((task) => ({ task, round: 1 })),
  });
}

function retry(client: WireNode, tasks: readonly string[]): Promise<unknown> {
  return client.ask(subjects.project("default", "retry"), {
    tasks: tasks.map((task) => ({ task, round: 2 })),
  });
}

/** The readings of a standby that followed the journal: a hash and a state per batch. */
function readingsOf(journal: readonly LogRecord[]): Reading[] {
  const replay = new Replay();
  return journal.map(({ bytes }) => {
    const batch = decodeRecord(bytes);
    if (batch?.kind === "batch") replay.takeCommitted(batch, hashOf(bytes));
    const { idx, hash } = replay.tail;
    return { reader: "standby", idx, hash, state: stateFingerprint(replay.state) };
  });
}

/** The log of the history, for tests that change its order. */
export function logOf({ journal }: Recorded): CommittedLog {
  return new CommittedLog(journal);
}
