// A grant that becomes narrower, and the policy that agents must be declared, with real processes. Agents that no
// longer conform end and say what to do. Their commands end too, and other agents run their tasks.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { type RunningWaggle, Workplace } from "../support/waggle-process.ts";

/** Of the command line. */
const REJECTED = 5;

let workplace: Workplace;
let swarm: Swarm;
beforeEach(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
});
afterEach(async () => {
  await swarm?.close();
  await workplace?.clear();
});

/** An agent whose command writes its process id, and sleeps longer than the test lasts. */
async function sleeper(id: string, ...flags: readonly string[]): Promise<RunningWaggle> {
  const exec = `echo $$ > ${id}.pid; exec sleep 300`;
  const agent = workplace.start("agent", "--kind", "nap", "--id", id, "--exec", exec, ...flags);
  await agent.says("joined the swarm");
  return agent;
}

async function begun(id: string): Promise<number> {
  const file = join(workplace.folder, `${id}.pid`);
  await expect
    .poll(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"), { timeout: 20_000 })
    .toBe(true);
  return Number(readFileSync(file, "utf8"));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it("a narrower grant ends the agent beyond it at once, with the field and what to do", async () => {
  const narrowed = await sleeper("a1", "--group", "gpu", "--max-concurrent", "2");
  const handle = await swarm.submit({ id: "t1", kind: "nap" });
  const command = await begun("a1");
  const sdk = await swarm.agent({ id: "a2", kinds: ["nap"], handler: () => "rested" });
  const narrowedAt = performance.now();
  await workplace.runVerb("grant", "set", "gpu", "--max-concurrent", "1");
  const { code, stderr } = await narrowed.finished;
  console.log(`the agent ended after ${Math.round(performance.now() - narrowedAt)} ms`);
  expect(code).toBe(REJECTED);
  expect(stderr).toContain(
    "error WAGGLE_FORBIDDEN: --max-concurrent: the grant of group gpu does not permit 2. An operator changes it with",
  );
  expect(stderr).toContain("waggle.js grant set gpu --max-concurrent …`");
  await expect.poll(() => isAlive(command), { timeout: 10_000 }).toBe(false);
  expect((await handle.result()).text()).toBe("rested");
  const again = await workplace.run(
    "agent",
    "--kind",
    "nap",
    "--group",
    "gpu",
    "--max-concurrent",
    "2",
    "--exec",
    "true",
  );
  expect(again).toMatchObject({
    code: REJECTED,
    stderr: expect.stringContaining("--max-concurrent: the grant"),
  });
  await sleeper("a3", "--group", "gpu");
  await sdk.drain();
});

it("a grant narrowed by projects takes their attempts, and the agent goes on with the rest", async () => {
  await sleeper("a1", "--group", "gpu");
  await swarm.submit({ id: "t1", kind: "nap", project: "blue" });
  const command = await begun("a1");
  await workplace.runVerb("grant", "set", "gpu", "--project", "acme");
  await expect.poll(() => isAlive(command), { timeout: 10_000 }).toBe(false);
  await swarm.submit({ id: "t2", kind: "nap", project: "acme" });
  const stateOf = async (task: string, project: string) => (await swarm.taskStatus(task, { project })).state;
  await expect.poll(() => stateOf("t2", "acme"), { timeout: 10_000 }).toMatch(/assigned|running/);
  expect(await stateOf("t1", "blue")).toBe("queued");
});

it("a policy that agents must be declared ends agents of groups without a grant alone", async () => {
  await workplace.runVerb("grant", "set", "gpu");
  const undeclared = await sleeper("a1");
  const grouped = await sleeper("a2", "--group", "cpu");
  const declared = await sleeper("a3", "--group", "gpu");
  await workplace.runVerb("policy", "set", "--agents", "declared");
  for (const [agent, group, name] of [
    [undeclared, "_", "an agent without a group"],
    [grouped, "cpu", "group cpu"],
  ] as const) {
    const { code, stderr } = await agent.finished;
    expect(code).toBe(REJECTED);
    expect(stderr).toContain(
      `--group: ${name} has no grant, and agents must be declared: an operator grants it with`,
    );
    expect(stderr).toContain(`grant set ${group}\``);
  }
  const handle = await swarm.submit({ id: "t1", kind: "nap" });
  await begun("a3");
  expect(await swarm.taskStatus(handle.id)).toMatchObject({ agent: "a3" });
  expect(declared.child.exitCode).toBeNull();
});
