// kill -9 of a client between its submits: each acknowledged task is done once, and later clients can read the
// outcome.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { RunningWaggle, Workplace } from "../support/waggle-process.ts";

const submitterFile = fileURLToPath(new URL("./submitter.mjs", import.meta.url));
let workplace: Workplace;
let swarm: Swarm;

beforeEach(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
});
afterEach(async () => {
  await swarm.close();
  await workplace.clear();
});

it("a client that is killed leaves its tasks to the swarm", async () => {
  const submitter = new RunningWaggle(spawn(process.execPath, [submitterFile, workplace.dataFolder]));
  await submitter.says("accepted t20\n");
  const { stdout } = await submitter.kill("SIGKILL");
  const accepted = [...stdout.matchAll(/^accepted (t\d+)$/gm)].map(([, id = ""]) => id);
  expect(accepted.length).toBeGreaterThanOrEqual(20);

  const runs: string[] = [];
  await swarm.agent({
    id: "a1",
    kinds: ["nap"],
    maxConcurrent: 4,
    handler: async (task) => {
      runs.push(task.id);
      return task.text();
    },
  });
  const results = await Promise.all(accepted.map(async (id) => (await swarm.task(id).result()).text()));
  expect(results).toEqual(accepted.map((id) => id.slice(1)));
  for (const id of accepted) expect(runs.filter((run) => run === id)).toEqual([id]);
});
