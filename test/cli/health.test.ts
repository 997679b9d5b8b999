// `waggle health` as printed, and its exit codes.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { healthOf } from "../../src/audit/health.ts";
import { healthText } from "../../src/cli/health.ts";
import { Output } from "../../src/cli/output.ts";
import { aKind, anAgent, aStatus } from "../support/statuses.ts";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

const { colors } = new Output(aShell(), { json: false });

it("prints the verdict, the areas with their findings, and what to do next", () => {
  const agents = [anAgent("a1", { unresponsive: true, kinds: [aKind("ocr")] })];
  const status = aStatus({ agents, queues: [{ kind: "count", waiting: 2, oldestMs: 0, agents: 0 }] });
  expect(healthText(healthOf(status), { columns: undefined, colors }).split("\n")).toEqual([
    "health      critical: 2 tasks of kind count wait, and no agent online serves it",
    "flow        critical  2 tasks of kind count wait, and no agent online serves it: `waggle agent --kind count --exec COMMAND`",
    "execution   ok",
    "liveness    attention  1 agent is silent: a1: `waggle status --all`",
    "next        waggle agent --kind count --exec COMMAND",
  ]);
});

describe("on a swarm", () => {
  let workplace: Workplace;
  beforeAll(async () => {
    workplace = await Workplace.make();
  });
  afterAll(() => workplace.clear());
  const health = (...argv: string[]) => runIn(aShell({ cwd: workplace.folder }), "health", ...argv);

  it("follows the swarm from an empty start, over a task without an agent, to the coordinator's end", async () => {
    expect(await health()).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^next +waggle up$/m),
    });

    const up = workplace.start("up");
    await up.says("leading");
    expect(await health()).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^health +ok: the swarm is new: no agent has joined[\s\S]*^next +waggle agent --kind /m,
      ),
    });

    await runIn(aShell({ cwd: workplace.folder }), "submit", "--kind", "count", "--text", "one");
    const { code, stdout } = await health("--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      type: "health",
      level: "critical",
      findings: [{ rule: "nobody-capable", evidence: { kind: "count", waiting: 1, agents: 0 } }],
    });

    await up.kill("SIGKILL");
    const left = await health("--json");
    expect(left.code).toBe(3);
    expect(JSON.parse(left.stdout)).toMatchObject({
      level: "critical",
      areas: { flow: "unknown", execution: "unknown", liveness: "critical" },
      findings: [{ rule: "no-leader" }],
    });
  }, 120_000);
});
