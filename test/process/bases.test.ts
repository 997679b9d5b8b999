// kill -9 on a coordinator that compacts its journal continuously, on each kind of journal. Each session begins
// at a base, no accepted task is lost, and no task ends twice, even when the newest base is damaged.

import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { AuditTrimmedError } from "../../src/errors.ts";
import { openFileJournalReader, segmentPath } from "../../src/journal/file/reader.ts";
import { liveSegment } from "../../src/journal/live.ts";
import { flipBit } from "../support/flip-bit.ts";
import { findNatsServers } from "../support/nats-server.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

const CYCLES = 8;
const TASKS_PER_CYCLE = 300;
/** About two bases per cycle; no machine loses power here. */
const env = { WAGGLE_BASE_EVENTS: "400", WAGGLE_BASE_SYNC: "100ms" };
/** Long enough for results to be asked for, short enough to be removed in the test. */
const retain = ["--retain", "5s"];

const [natsServer] = findNatsServers();
const brokers: readonly { name: string; binary: string | undefined }[] = [
  { name: "the file journal", binary: undefined },
  ...(natsServer === undefined ? [] : [{ name: `JetStream ${natsServer.version}`, binary: natsServer.path }]),
];

let workplace: Workplace;
let swarm: Swarm | undefined;
afterEach(async () => {
  await swarm?.close();
  swarm = undefined;
  await workplace?.clear();
});

async function startLeading(): Promise<RunningWaggle> {
  const coordinator = workplace.start("up", ...retain);
  await coordinator.says("leading");
  return coordinator;
}

/** How often each task ended, as a follower sees. A follower that lags behind the kept part continues at the
 *  present beginning of the journal. */
function countEndings(of: Swarm, endings = new Map<string, number>()): Map<string, number> {
  const types = ["TaskCompleted", "TaskFailed", "TaskDeadLettered", "TaskCancelled", "TaskExpired"] as const;
  of.events({ from: "start", follow: true, types }).subscribe({
    next: ({ event }) => {
      if ("task" in event && typeof event.task === "string")
        endings.set(event.task, (endings.get(event.task) ?? 0) + 1);
    },
    error: (error: unknown) => {
      if (!(error instanceof AuditTrimmedError)) throw error;
      countEndings(of, endings);
    },
  });
  return endings;
}

async function work(of: Swarm, cycle: number): Promise<string[]> {
  const ids = Array.from({ length: TASKS_PER_CYCLE }, (_, n) => `c${cycle}-t${n}`);
  const handles = await Promise.all(ids.map((id) => of.submit({ id, kind: "echo", payload: id })));
  const results = await Promise.all(handles.map(async (handle) => (await handle.result()).text()));
  expect(results).toEqual(ids);
  return ids;
}

/** Works on until the coordinator changes its segment. A restarted leader counts each earlier batch as one event, so
 *  the tasks of a session may end before a base is due. */
async function workUntilChanged(
  of: Swarm,
  coordinator: RunningWaggle,
  cycle: number,
  change: string | RegExp = "the journal continues in a new segment",
): Promise<string[]> {
  const accepted: string[] = [];
  let isChanged = false;
  const changed = coordinator.says(change).then(() => {
    isChanged = true;
  });
  for (let more = 1; !isChanged; more += 1) accepted.push(...(await work(of, 100 * cycle + more)));
  await changed;
  return accepted;
}

async function startEcho(of: Swarm) {
  return await of.agent({
    id: "a1",
    kinds: ["echo"],
    maxConcurrent: 16,
    handler: async (task) => task.text(),
  });
}

describe.each(brokers)("kill -9 while $name is compacted", ({ binary }) => {
  it(`loses and doubles nothing in ${CYCLES} sessions`, async () => {
    workplace = await Workplace.make(binary, env);
    let coordinator = await startLeading();
    swarm = await connect({ dataFolder: workplace.dataFolder });
    const endings = countEndings(swarm);
    await startEcho(swarm);
    const accepted: string[] = [];
    for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
      const working = work(swarm, cycle);
      await new Promise((resolve) => setTimeout(resolve, 200 + cycle * 100)); // somewhere in the middle
      // A session may be too short for a base, so not every session has a base.
      if (cycle % 2 === 0) accepted.push(...(await workUntilChanged(swarm, coordinator, cycle)));
      await coordinator.kill("SIGKILL");
      coordinator = await startLeading();
      accepted.push(...(await working));
    }
    // A session may also end before segments are removed. The last session runs until the removal is recorded.
    for (let cycle = CYCLES + 1; (await swarm.status()).journal.auditFirstIdx === 1; cycle += 1)
      accepted.push(...(await work(swarm, cycle)));
    expect((await swarm.status()).tasks["completed"]).toBe(accepted.length);
    expect(new Set(accepted)).toEqual(new Set([...accepted, ...endings.keys()]));
    expect([...endings].filter(([, count]) => count > 1)).toEqual([]);
    expect(endings.size).toBeGreaterThan(0);
  });
});

it("goes on from the older base where the newest is damaged", async () => {
  workplace = await Workplace.make(undefined, env);
  const coordinator = await startLeading();
  swarm = await connect({ dataFolder: workplace.dataFolder });
  await startEcho(swarm);
  const twice = /continues in a new segment[\s\S]*continues in a new segment/;
  const accepted = await workUntilChanged(swarm, coordinator, 1, twice);
  await coordinator.kill("SIGKILL");
  const folder = join(workplace.dataFolder, "journals", "default");
  const withBase = await newestWithBase(folder);
  flipBit(segmentPath(folder, withBase), 400); // behind the claim, in the base's first chunk
  await startLeading();
  expect((await swarm.status()).tasks["completed"]).toBe(accepted.length);
  await work(swarm, 2);
});

async function newestWithBase(folder: string): Promise<number> {
  const journal = await openFileJournalReader(folder);
  const liveSegments = await Promise.all(
    (await journal.list()).map((number) => liveSegment(journal.segment(number))),
  );
  return (
    liveSegments.findLast((live) => live?.opened.base !== undefined)?.number ?? expect.fail("there is a base")
  );
}
