// The attempts of an exec agent whose process is killed run elsewhere.

import { afterEach, expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import type { Swarm } from "../../src/client/swarm.ts";
import { limits } from "../../src/limits.ts";
import { Workplace } from "../support/waggle-process.ts";

let workplace: Workplace;
let swarm: Swarm;

afterEach(async () => {
  await swarm?.close();
  await workplace?.clear();
});

it("a killed agent loses nothing: its attempts run elsewhere once it is lost", async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  swarm = await connect({ dataFolder: workplace.dataFolder });
  const agents = ["a0", "a1"].map((id) =>
    workplace.start("agent", "--kind", "nap", "--id", id, "--exec", "sleep 0.1", "--max-concurrent", "4"),
  );
  await Promise.all(agents.map((agent) => agent.says("joined")));
  const handles = await Promise.all(
    Array.from({ length: 40 }, (_, n) => swarm.submit({ id: `t${n}`, kind: "nap" })),
  );
  await handles[0]?.result();
  const killedAt = performance.now();
  await agents[0]?.kill("SIGKILL");
  const outcomes = await Promise.all(handles.map((handle) => handle.outcome()));
  expect(outcomes.every(({ state }) => state === "completed")).toBe(true);
  expect(outcomes.some(({ attempts }) => attempts === 2)).toBe(true);
  expect(performance.now() - killedAt).toBeLessThan(limits.agentLostMs + 4_000);
});
