// Repeated kill -9 on the coordinator under load, on each kind of journal: every accepted task ends, exactly
// once in the journal.

import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import type { TaskHandle } from "../../src/client/task-handle.ts";
import { findNatsServers } from "../support/nats-server.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

const CYCLES = 10;
const TASKS_PER_CYCLE = 200;
const terminalEvents = new Set([
  "TaskCompleted",
  "TaskFailed",
  "TaskDeadLettered",
  "TaskCancelled",
  "TaskExpired",
]);

const natsServers = findNatsServers();
const brokers: readonly { name: string; binary: string | undefined }[] = [
  { name: "the file journal", binary: undefined },
  ...natsServers.slice(0, 1).map(({ path, version }) => ({ name: `JetStream ${version}`, binary: path })),
];

it("has a nats-server to run on, in CI", () => {
  expect(natsServers.length > 0 || process.env["CI"] === undefined).toBe(true);
});

describe.each(brokers)("kill -9 of the coordinator on $name", ({ binary }) => {
  let workplace: Workplace;
  let swarm: Swarm;
  afterEach(async () => {
    await swarm?.close();
    await workplace?.clear();
  });

  it(`loses and doubles nothing in ${CYCLES} cycles`, async () => {
    workplace = await Workplace.make(binary);
    let coordinator = await startLeading(workplace);
    swarm = await connect({ dataFolder: workplace.dataFolder });
    const ended = countdown();
    const agents = await Promise.all(
      ["a1", "a2"].map((id) =>
        swarm.agent({
          id,
          kinds: ["echo"],
          maxConcurrent: 8,
          handler: async (task) => {
            await new Promise((resolve) => setTimeout(resolve, 5));
            ended.count();
            return task.text();
          },
        }),
      ),
    );
    const accepted = new Set<string>();
    for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
      const handles: TaskHandle[] = [];
      const inMidLoad = ended.reaches(TASKS_PER_CYCLE / 2);
      const submitting = submitAll(swarm, cycle, handles);
      await inMidLoad;
      await coordinator.kill("SIGKILL");
      coordinator = await startLeading(workplace);
      await submitting;
      const results = await Promise.all(handles.map(async (handle) => (await handle.result()).text()));
      expect(results).toEqual(handles.map(({ id }) => id));
      for (const { id } of handles) accepted.add(id);
    }
    await Promise.all(agents.map((agent) => agent.drain()));
    expect(await endingsByTask(swarm)).toEqual(new Map([...accepted].map((id) => [id, 1])));
  });
});

async function startLeading(workplace: Workplace): Promise<RunningWaggle> {
  const coordinator = workplace.start("up");
  await coordinator.says("leading");
  return coordinator;
}

async function submitAll(swarm: Swarm, cycle: number, handles: TaskHandle[]): Promise<void> {
  const ids = Array.from({ length: TASKS_PER_CYCLE }, (_, n) => `c${cycle}-t${n}`);
  await Promise.all(
    ids.map(async (id) => handles.push(await swarm.submit({ id, kind: "echo", payload: id }))),
  );
}

async function endingsByTask(swarm: Swarm): Promise<Map<string, number>> {
  const endings = new Map<string, number>();
  for await (const { event } of swarm.events({ from: "start", follow: false })) {
    if (!terminalEvents.has(event.type) || !("task" in event) || typeof event.task !== "string") continue;
    endings.set(event.task, (endings.get(event.task) ?? 0) + 1);
  }
  return endings;
}

/** Counts events, and resolves after a number of them. */
function countdown() {
  let happened = 0;
  const waiting: { at: number; resolve: () => void }[] = [];
  return {
    count(): void {
      happened += 1;
      for (const { at, resolve } of waiting) if (happened >= at) resolve();
    },
    reaches(more: number): Promise<void> {
      return new Promise((resolve) => waiting.push({ at: happened + more, resolve }));
    },
  };
}
