// Several agents on one connection: heartbeats and results in one message, assignments in one push.

import { beforeEach, expect, it } from "vitest";
import { startTestSwarm, subjects, type TestSwarm, type WireAgent } from "../support/swarm.ts";

let swarm: TestSwarm;
let agents: WireAgent[];

beforeEach(async () => {
  swarm = await startTestSwarm();
  agents = [];
  for (const id of ["a1", "a2", "a3"]) agents.push(await swarm.agent(id, { maxConcurrent: 1 }));
  return () => swarm.stop();
});

const heartbeat = (agent: string, more: object = {}) => ({
  agent,
  incarnation: `${agent}-1`,
  status: "ready",
  inFlight: 0,
  held: [],
  seen: 0,
  ...more,
});
const speak = (verb: "heartbeat" | "result", message: object) =>
  swarm.client.ask(subjects.agent("_", "conn", verb), message);

it("a heartbeat for several agents renews each that is known, and tells of the others", async () => {
  const others = [heartbeat("a2"), heartbeat("a3", { incarnation: "a3-0" }), heartbeat("nobody")];
  expect(await speak("heartbeat", { ...heartbeat("a1"), others })).toEqual({
    term: 1,
    renewed: true,
    others: [{ renewed: true }, {}, {}],
  });
  expect(await agents[2]?.push("fenced")).toMatchObject({ incarnation: "a3-0" });
  expect(await speak("heartbeat", { ...heartbeat("nobody"), others: [heartbeat("a1")] })).toEqual({
    term: 1,
    others: [{ renewed: true }],
  });
});

it("a heartbeat with a request for term starts gets the starts, for each asking agent", async () => {
  const asking = { asksTermStarts: true };
  const termStarts = [{ term: 1, idx: 1, opened: expect.any(String) }];
  expect(await speak("heartbeat", { ...heartbeat("a1"), others: [heartbeat("a2", asking)] })).toEqual({
    term: 1,
    renewed: true,
    others: [{ renewed: true, termStarts }],
  });
  expect(await speak("heartbeat", { ...heartbeat("a1"), ...asking })).toEqual({
    term: 1,
    renewed: true,
    termStarts,
  });
});

it("an agent of another group is neither renewed nor answered through the connection", async () => {
  await swarm.agent("w1", { group: "west" });
  const answer = await speak("heartbeat", { ...heartbeat("a1"), others: [heartbeat("w1")] });
  expect(answer).toEqual({ term: 1, renewed: true, others: [{}] });
  const result = { project: "default", task: "t1", attempt: 1, token: "x", outcome: "completed" };
  const of = (agent: string) => ({ agent, incarnation: `${agent}-1`, results: [result] });
  expect(await speak("result", { ...of("w1"), others: [of("a1")] })).toMatchObject({
    ok: false,
    code: "WAGGLE_CONFLICT",
    others: [{ answers: [{}] }],
  });
});

it("agents on one subject get assignments in one push, and send results in one message", async () => {
  await speak("heartbeat", { ...heartbeat("a1"), others: [heartbeat("a2"), heartbeat("a3")] });
  const pushes = swarm.client.listen<{
    agent: string;
    incarnation: string;
    assignments: object[];
    others: never[];
  }>(subjects.assign("_", "conn"));
  await swarm.submit("t1", "t2", "t3");
  const parts: { agent: string; incarnation: string; assignments: { task: string; token: string }[] }[] = [];
  let messages = 0;
  while (parts.length < 3) {
    const { others = [], ...first } = (await pushes.next()) as never as {
      others?: typeof parts;
    } & (typeof parts)[0];
    parts.push(first, ...others);
    messages += 1;
  }
  expect(messages).toBe(1);
  expect(parts.map(({ agent }) => agent).sort()).toEqual(["a1", "a2", "a3"]);
  const reports = parts.map(({ agent, incarnation, assignments }) => ({
    agent,
    incarnation,
    results: assignments.map(({ task, token }, at) => ({
      project: "default",
      task,
      attempt: 1,
      token: agent === "a2" ? "wrong" : token,
      outcome: at === 0 ? "completed" : "failed",
    })),
  }));
  const [first, ...others] = reports;
  const answer = await speak("result", { ...first, others });
  const answers = [answer, ...(answer as { others: object[] }).others] as { answers: { ok: boolean }[] }[];
  expect(answers.map((each) => each.answers.map(({ ok }) => ok))).toEqual(
    reports.map(({ agent }) => [agent !== "a2"]),
  );
});

it("after a separate heartbeat, an agent gets assignments on its own subject again", async () => {
  await speak("heartbeat", { ...heartbeat("a1"), others: [heartbeat("a2")] });
  for (const agent of agents.slice(0, 2)) await agent.heartbeat([], 0);
  await swarm.submit("t1");
  await swarm.submit("t2");
  await swarm.submit("t3");
  for (const agent of agents) expect(await agent.assignment()).toMatchObject({ attempt: 1 });
});

it("one wrong result is refused alone, and a wrong heartbeat refuses the message", async () => {
  const others = [{ agent: "a2", incarnation: "a2-1", results: [{ task: "t1" }] }];
  const ok = { project: "default", task: "t9", attempt: 1, token: "x", outcome: "completed" };
  const answer = await speak("result", { agent: "a1", incarnation: "a1-1", results: [ok], others });
  expect(answer).toMatchObject({
    answers: [{}],
    others: [{ answers: [{ ok: false, code: "WAGGLE_INVALID_MESSAGE" }] }],
  });
  expect(
    await speak("heartbeat", { ...heartbeat("a1"), others: [heartbeat("a2", { seen: -1 })] }),
  ).toMatchObject({
    ok: false,
    field: "others[0].seen",
  });
});
