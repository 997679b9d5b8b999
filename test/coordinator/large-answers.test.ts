// Answers above the server's limit: no query brings the leader down, and the answer arrives all the same.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { encode } from "../../src/protocol/codec.ts";
import type { DonePush } from "../../src/protocol/schemas.ts";
import { doneSubject } from "../../src/protocol/subjects.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let clock: ManualClock;
let swarm: TestSwarm;

beforeEach(async () => {
  clock = new ManualClock();
  swarm = await startTestSwarm({ clock });
});
afterEach(() => swarm.stop());

/** A name of the greatest length, with four bytes per character. */
const longName = (n: number) => `${n}`.padStart(6, "0") + "🐝".repeat(122);
/** Unknown held attempts, as many as fit a message of the server's limit. */
function manyHeld(
  rest: object,
): { readonly project: string; readonly task: string; readonly attempt: number }[] {
  const held = [{ project: "default", task: longName(0), attempt: 1 }];
  const room = () => limits.maxPayloadBytesDefault - encode({ ...rest, held }).length;
  const entryBytes = Buffer.byteLength(JSON.stringify(held[0])) + 1;
  for (let left = room(); left >= entryBytes; left -= entryBytes)
    held.push({ project: "default", task: longName(held.length), attempt: 1 });
  // Longer numbers fill the rest.
  for (const entry of held) {
    const digits = Math.min(14, room());
    if (digits <= 0) break;
    entry.attempt = 10 ** digits;
  }
  return held;
}

describe("answers arrive, even if larger than a message", () => {
  it("outcomes of tasks with results larger than a message", async () => {
    const agent = await swarm.agent("a1", { maxConcurrent: 10 });
    const ids = Array.from({ length: 10 }, (_, n) => `t${n}`);
    await swarm.submit(...ids);
    const large = "r".repeat(limits.payloadBytesMax);
    for (const id of ids) await agent.complete(await agent.assignment(), `${id}${large.slice(10)}`);

    const done = swarm.client.listen<DonePush>(doneSubject("_INBOX.me"));
    const { answers } = await swarm.client.ask(subjects.project("default", "await"), {
      tasks: ids,
      notify: "_INBOX.me",
    });
    expect(answers).toHaveLength(10);
    const results = new Map<string, string>();
    for (const { outcome } of answers) if (outcome !== undefined) results.set(outcome.task, outcome.result);
    while (results.size < 10)
      for (const { task, result } of (await done.next()).ended) results.set(task, result ?? "");
    for (const id of ids) expect(results.get(id)?.startsWith(id)).toBe(true);
  });

  it("the status of many users, with the number of users left out", async () => {
    for (let from = 0; from < 8_000; from += 1_000)
      await swarm.client.submit(
        Array.from({ length: 1_000 }, (_, n) => ({ kind: "count", user: `user-${from + n}` })),
      );
    const { tasks, projects, omitted } = await swarm.client.status();
    expect(tasks).toMatchObject({ queued: 8_000 });
    expect(projects).toMatchObject([{ project: "default", tasks: { queued: 8_000 } }]);
    expect(projects[0].users.length).toBeGreaterThan(1_000);
    expect(projects[0].users.length + omitted.users).toBe(8_000);
  });

  it("the users that wait longest of too many, and all others page by page", async () => {
    const users = Array.from({ length: 8_000 }, (_, n) => ({
      kind: "count",
      user: `user-${n}`,
      project: `p${n % 3}`,
    }));
    for (const project of ["p0", "p1", "p2"])
      for (let from = 0; from < users.length; from += 1_000) {
        await clock.advance(10);
        const tasks = users.slice(from, from + 1_000).filter((task) => task.project === project);
        await swarm.client.ask(subjects.project(project, "submit"), {
          tasks: tasks.map(({ project: _, ...task }) => task),
        });
      }
    const { projects, omitted } = await swarm.client.status();
    expect(omitted.users).toBeGreaterThan(0);
    const namesOf = (rows: { users: { user: string }[] }[]) =>
      rows.flatMap((row) => row.users.map(({ user }) => user));
    expect(namesOf(projects)).toContain("user-0");
    expect(namesOf(projects)).not.toContain("user-7999");

    const paged = new Set<string>();
    for (let isLast = false; !isLast; ) {
      const page = await swarm.client.ask(subjects.query("_", "status"), {
        rows: { table: "users", from: paged.size },
      });
      for (const user of namesOf(page.projects)) paged.add(user);
      isLast = page.omitted === undefined;
      expect(page.agents).toEqual([]);
    }
    expect(paged.size).toBe(8_000);
  });

  it("the status of agents that serve many kinds, and of many queues", async () => {
    const kinds = Array.from({ length: limits.kindsPerAgentMax }, (_, n) => longName(n));
    for (let n = 0; n < 6; n += 1) await swarm.agent(`a${n}`, { kinds });
    await swarm.client.submit(Array.from({ length: 1_000 }, (_, n) => ({ kind: longName(1_000 + n) })));
    const { agents, queues, omitted } = await swarm.client.status();
    expect([agents.length + omitted.agents, queues.length + omitted.queues]).toEqual([6, 1_000]);
    expect(agents.length).toBeGreaterThan(0);
    expect(queues.length).toBeGreaterThan(0);
  });

  it("the status of many rates, with the number of rates left out", async () => {
    for (let n = 0; n < limits.ratesMax; n += 1) {
      const rate = { type: longName(n), window: "per_day", tokensMax: 5 };
      expect(await swarm.client.ask(subjects.operator("rate"), rate)).toMatchObject({ ok: true });
    }
    const { rates, omitted } = await swarm.client.status();
    expect(rates.length).toBeGreaterThan(50);
    expect(omitted).toEqual({
      agents: 0,
      queues: 0,
      projects: 0,
      users: 0,
      resources: 0,
      rates: limits.ratesMax - rates.length,
    });
    expect(omitted.rates).toBeGreaterThan(0);
  });

  it("a small status leaves nothing out", async () => {
    await swarm.agent("a1");
    expect(await swarm.client.status()).not.toHaveProperty("omitted");
  });
});

describe("an agent that lists many foreign attempts", () => {
  it("is told in several messages which attempts to stop", async () => {
    const agent = await swarm.agent("a1");
    const rest = { incarnation: "a1-1", status: "busy", inFlight: 2_000, seen: 0 };
    const held = manyHeld(rest);
    await agent.heartbeat(held, 0);
    let revoked = 0;
    while (revoked < held.length) revoked += (await agent.push("revoke")).attempts.length;
    expect(revoked).toBe(held.length);
  });

  it("may join, and hears of the rest with its heartbeat", async () => {
    const agent = await swarm.agent("a1");
    Object.assign(agent.joinMessage, { incarnation: "a1-2", after: "a1-1" });
    Object.assign(agent.joinMessage, { held: manyHeld(agent.joinMessage) });
    expect(await agent.join()).toMatchObject({ ok: true, resumed: false });
  });
});

describe("a submitter with long mistyped names in one message", () => {
  it("is answered, if not with every suggestion", async () => {
    const kinds = [1, 2, 3].map((n) => `${longName(0).slice(0, -2)}${n}`);
    await swarm.agent("a1", { kinds });
    const tasks = Array.from({ length: 1_024 }, (_, n) => ({
      kind: `${longName(0).slice(0, -2)}x`,
      id: `t${n}`,
    }));
    const answer = await swarm.client.submit(tasks);
    // Unknown at first, found at the second try.
    if (answer.ok === false) expect(answer.code).toBe("WAGGLE_OUTCOME_UNKNOWN");
    expect((await swarm.client.submit(tasks)).answers).toHaveLength(1_024);
    expect((await swarm.client.status()).tasks).toMatchObject({ queued: 1_024 });
  });
});

describe("clients awaiting the same task", () => {
  it("are limited; one more is told to try again, and never that the task is unknown", async () => {
    await swarm.client.submit([{ id: "t1", kind: "count" }]);
    const ask = (notify: string) =>
      swarm.client.ask(subjects.project("default", "await"), { tasks: ["t1"], notify });
    for (let n = 0; n < limits.awaitersPerTaskMax; n += 1)
      expect((await ask(`_INBOX.inbox${n}`)).answers).toEqual([{ ok: true, live: true }]);
    expect((await ask("_INBOX.one-more")).answers).toMatchObject([
      { ok: false, code: "WAGGLE_BACKPRESSURE", retryAfterMs: limits.retryAfterMs },
    ]);
    expect((await ask("_INBOX.inbox0")).answers).toEqual([{ ok: true, live: true }]);
  });
});
