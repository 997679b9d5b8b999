// Attempt tokens with a key: an agent reports with its assignment's token, and nobody else can make one. The token
// stands in no event, query or page of the journal. A new leader with the key derives the same tokens.

import { expect, it } from "vitest";
import { token } from "../../src/ids.ts";
import { AttemptTokens } from "../../src/requests/attempt-tokens.ts";
import { startTestSwarm, subjects } from "../support/swarm.ts";
import { WireTap } from "../support/wire-tap.ts";

const key = new TextEncoder().encode("0123456789abcdef0123456789abcdef");
const attempt = { project: "p", task: "t1", attempt: 1, token: token("2.7") };

it("a token opens to the journal's name for its own attempt alone", () => {
  const tokens = new AttemptTokens(key);
  const sealed = tokens.sealed(attempt);
  expect(sealed).toMatch(/^2\.7\.[\w-]{32}$/);
  expect(tokens.opened({ ...attempt, token: sealed })).toBe("2.7");
  const others = [
    { ...attempt, token: "2.7" },
    { ...attempt, token: sealed, task: "t2" },
    { ...attempt, token: sealed, project: "q" },
    { ...attempt, token: sealed, attempt: 2 },
    { ...attempt, token: sealed.replace("2.7", "2.8") },
    { ...attempt, token: `${sealed}x` },
    { ...attempt, token: "" },
  ];
  for (const other of others) expect(tokens.opened(other)).toBe("");
  expect(
    new AttemptTokens(new TextEncoder().encode("f".repeat(32))).opened({ ...attempt, token: sealed }),
  ).toBe("");
  expect(new AttemptTokens(undefined).sealed(attempt)).toBe("2.7");
  const largest = { ...attempt, token: `${9_007_199_254_740}.${9_007_199_254_740}` };
  expect(tokens.sealed(largest).length).toBeLessThanOrEqual(64);
});

it("an agent reports with its token, also to the next leader, and a token read from the journal is stale", async () => {
  const swarm = await startTestSwarm({ tokenKey: key });
  try {
    const tap = new WireTap(swarm.hub);
    const agent = await swarm.agent("a1", { maxConcurrent: 2 });
    await swarm.submit("t1");
    const first = await agent.assignment();
    const secret = String(first.token).split(".").at(-1) ?? "";
    expect(secret).toHaveLength(32);
    const forged = await agent.complete({ ...first, token: "1.1" } as never);
    expect(forged).toMatchObject({ answers: [{ ok: false, code: "WAGGLE_STALE_TOKEN" }] });

    const status = JSON.stringify(await swarm.client.status());
    const explained = JSON.stringify(await swarm.client.task("t1"));
    const other = await swarm.startAnother("c2");
    await swarm.coordinator.stop();
    await other.whenLeading();
    expect(await agent.complete(first as never)).toMatchObject({ answers: [{ ok: true, status: "ok" }] });

    for (const text of [status, explained]) expect(text).not.toContain(secret);
    const bearing = tap.all.filter(({ text }) => text.includes(secret));
    const allowed = [subjects.assign("_", "a1"), subjects.agent("_", "a1", "result")];
    expect(bearing.length).toBeGreaterThan(1);
    expect(bearing.map(({ subject }) => subject).filter((subject) => !allowed.includes(subject))).toEqual([]);
  } finally {
    await swarm.stop();
  }
});
