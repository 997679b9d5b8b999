// Tests that throughput grows with the number of agents. Exec agents run in separate processes. The measure is the time
// that Node processes without a swarm take for the same commands in the same guard, with one process per agent. The
// start of a guarded command alone takes up to 25 ms on a slow machine.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { markedCommand } from "../../src/agent/exec.ts";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { Workplace } from "../support/waggle-process.ts";

/** Long beside the start of a command, so that eight agents take one processor of two even on a slow machine. */
const TASK_MS = 400;
/** A multiple of the numbers of agents. */
const TASKS = 96;
/** The best round counts: other load of the machine only makes rounds longer, and the first rounds compile. */
const ROUNDS = 8;
/** With one agent of four without work, the ratio would be 1.33. */
const RATIO_MAX = 1.15;
const command = `sleep ${TASK_MS / 1000}`;
/** Runs the command as an exec agent does, as often as the argument says, one run after another, and prints the
 *  milliseconds. */
const bareProgram = `
  const { spawn } = require("node:child_process");
  const [count] = process.argv.slice(1).map(Number);
  const startedAt = performance.now();
  const next = (left) => {
    if (left === 0) return console.log(performance.now() - startedAt);
    const args = ${JSON.stringify(["-c", markedCommand, "sh", command, "mark"])};
    spawn("sh", args, { detached: true, stdio: Array(5).fill("pipe") }).on("close", () => next(left - 1));
  };
  next(count);
`;

let workplace: Workplace;
let swarm: Swarm;

afterEach(async () => {
  await swarm?.close();
  await workplace?.clear();
});

async function startSwarm(): Promise<void> {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
}

async function startAgents(count: number, ...flags: string[]): Promise<void> {
  const agents = Array.from({ length: count }, (_, n) =>
    workplace.start("agent", "--kind", "nap", "--id", `a${n}`, ...flags),
  );
  await Promise.all(agents.map((agent) => agent.says("joined")));
}

async function runTasks(payload: string, prefix: string): Promise<number> {
  const startedAt = performance.now();
  const tasks = Array.from({ length: TASKS }, (_, n) =>
    swarm.submit({ id: `${prefix}${n}`, kind: "nap", payload }),
  );
  await Promise.all(tasks.map(async (task) => await (await task).result()));
  return performance.now() - startedAt;
}

/** @param count number of Node processes that share the tasks, without a swarm. @returns the slowest process's time */
async function measureBareMs(count: number): Promise<number> {
  const args = ["--eval", bareProgram, String(TASKS / count)];
  const runs = Array.from({ length: count }, () => promisify(execFile)(process.execPath, args));
  return Math.max(...(await Promise.all(runs)).map(({ stdout }) => Number(stdout)));
}

describe("exec agents", () => {
  it.each([4, 8])(
    `finish ${TASKS} tasks of ${TASK_MS} ms in at most ${RATIO_MAX} × the time of bare processes: %i`,
    async (count) => {
      const bareTimeMs = await measureBareMs(count);
      await startSwarm();
      await startAgents(count, "--exec", command);
      const ratios: number[] = [];
      for (let round = 0; round < ROUNDS && !ratios.some((ratio) => ratio <= RATIO_MAX); round += 1) {
        const tookMs = await runTasks("", `t${round}.`);
        ratios.push(tookMs / bareTimeMs);
        console.log(`${count} agents: ${Math.round(tookMs)} ms, bare processes ${Math.round(bareTimeMs)} ms`);
      }
      expect(Math.min(...ratios)).toBeLessThanOrEqual(RATIO_MAX);
    },
  );
});
