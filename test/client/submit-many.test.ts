// Bulk submission: order, bounds, slow sources, endings.

import { describe, expect, it } from "vitest";
import type { Backpressure } from "../../src/client/backpressure.ts";
import type { SubmitOutcome } from "../../src/client/submit-many.ts";
import type { TaskRequest } from "../../src/client/task-request.ts";
import { InvalidMessageError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { aClient, aTask, watch } from "./client-fixture.ts";
import { settled } from "./manual-clock.ts";

async function collect(outcomes: AsyncIterable<SubmitOutcome>): Promise<SubmitOutcome[]> {
  const all: SubmitOutcome[] = [];
  for await (const outcome of outcomes) all.push(outcome);
  return all;
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => aTask({ id: `t${at}` }));

describe("submitMany", () => {
  it("gives one outcome for each task, in order, in full messages", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const tasks = numbered(3_000);
    const outcomes = await collect(swarm.submitMany(tasks));
    expect(outcomes.map((outcome) => outcome.task.id)).toEqual(tasks.map(({ id }) => id));
    expect(outcomes.every((outcome) => outcome.ok && outcome.handle.id === outcome.task.id)).toBe(true);
    const sizes = leader.of("submit").map(({ body }) => body.tasks.length);
    expect(sizes).toEqual([
      limits.itemsPerMessageMax,
      limits.itemsPerMessageMax,
      3_000 - 2 * limits.itemsPerMessageMax,
    ]);
  });

  it("continues after a refused task, and identifies it", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const tasks = [
      aTask({ id: "t0" }),
      aTask({ project: "no good" }),
      aTask({ id: "t0", payload: "other" }),
      aTask(),
    ];
    const outcomes = await collect(swarm.submitMany(tasks));
    expect(outcomes).toMatchObject([
      { ok: true },
      {
        ok: false,
        error: { code: "WAGGLE_INVALID_MESSAGE", field: "project" },
        task: { project: "no good" },
      },
      { ok: false, error: { code: "WAGGLE_CONFLICT" }, task: { id: "t0", payload: "other" } },
      { ok: true },
    ]);
    expect(outcomes[1]).toMatchObject({ error: expect.any(InvalidMessageError) });
  });

  it("gives each task an id with its outcome, so that a task with an unknown outcome can be repeated", async () => {
    const { swarm, clock, leader } = await aClient();
    leader.start();
    leader.script = () => "silence";
    const collected = watch(collect(swarm.submitMany([aTask()], { timeoutMs: 500 })));
    await clock.advance(2_000);
    const [outcome] = collected.value ?? [];
    expect(outcome).toMatchObject({ ok: false, error: { code: "WAGGLE_OUTCOME_UNKNOWN" } });
    expect(outcome?.task.id).toMatch(/.+/);
  });

  it("reads ahead only so far", async () => {
    const { swarm, leader, clock } = await aClient();
    let read = 0;
    function* endless(): Generator<TaskRequest> {
      for (;;) {
        read += 1;
        yield aTask();
      }
    }
    const outcomes = swarm.submitMany(endless())[Symbol.asyncIterator]();
    const first = outcomes.next();
    await clock.advance(1_000);
    expect(read).toBe(limits.submitWindowTasksMax);
    leader.start();
    await clock.advance(limits.askBackoffMsMax);
    expect(await first).toMatchObject({ value: { ok: true } });
    await outcomes.next();
    await settled();
    expect(read).toBeLessThanOrEqual(limits.submitWindowTasksMax + 2);
    await outcomes.return?.();
    const readAtEnd = read;
    await settled();
    expect(read).toBe(readAtEnd);
  });

  it("reads ahead only so many bytes", async () => {
    const { swarm } = await aClient();
    const payload = "x".repeat(200_000);
    let read = 0;
    function* large(): Generator<TaskRequest> {
      for (;;) {
        read += 1;
        yield aTask({ payload });
      }
    }
    const outcomes = swarm.submitMany(large())[Symbol.asyncIterator]();
    const first = watch(outcomes.next());
    await settled();
    expect(read).toBeLessThanOrEqual(Math.ceil(limits.submitWindowBytesMax / payload.length) + 1);
    expect(first.state).toBe("pending");
    await swarm.close();
  });

  it("gives an outcome back while a slow source has nothing more yet", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    let release: () => void = () => undefined;
    async function* slow(): AsyncGenerator<TaskRequest> {
      yield aTask({ id: "t0" });
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      yield aTask({ id: "t1" });
    }
    const outcomes = swarm.submitMany(slow())[Symbol.asyncIterator]();
    expect(await outcomes.next()).toMatchObject({ value: { ok: true, task: { id: "t0" } } });
    release();
    expect(await outcomes.next()).toMatchObject({ value: { ok: true, task: { id: "t1" } } });
    expect(await outcomes.next()).toMatchObject({ done: true });
  });

  it("waits under backpressure, instead of failing", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => ({ ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 200 });
    const collected = watch(collect(swarm.submitMany(numbered(5))));
    await clock.advance(1_000);
    expect(collected.state).toBe("pending");
    leader.script = () => undefined;
    await clock.advance(1_000);
    expect(collected.value?.map(({ ok }) => ok)).toEqual([true, true, true, true, true]);
  });

  it("reports how many tasks are held back, since when, and when they are submitted again", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    leader.script = () => ({ ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 200 });
    const startedAt = clock.now();
    const reports: Backpressure[] = [];
    const onBackpressure = (backpressure: Backpressure) => reports.push(backpressure);
    const collected = watch(collect(swarm.submitMany(numbered(1_500), { onBackpressure })));
    await clock.advance(1_000);
    const since = new Date(startedAt);
    expect(reports.at(-1)).toEqual({ tasks: 1_500, since, retryAfterMs: 200, reason: "full" });
    expect(reports.length).toBeLessThan(30);
    leader.script = () => undefined;
    await clock.advance(1_000);
    expect(collected.value).toHaveLength(1_500);
    expect(reports.at(-1)).toMatchObject({ tasks: 0, since });
  });

  it("goes on when the listener of backpressure throws", async () => {
    const { swarm, leader, clock } = await aClient();
    leader.start();
    const noRoom = { ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 200 } as const;
    leader.script = () => noRoom;
    const onBackpressure = () => {
      throw new Error("a bug of the caller");
    };
    const collected = watch(collect(swarm.submitMany(numbered(2), { onBackpressure })));
    await clock.advance(500);
    leader.script = () => undefined;
    await clock.advance(1_000);
    expect(collected.value?.map(({ ok }) => ok)).toEqual([true, true]);
  });

  it("reports nothing for a task refused under backpressure at once", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    leader.script = () => ({ ok: false, code: "WAGGLE_BACKPRESSURE", message: "full", retryAfterMs: 200 });
    const reports: Backpressure[] = [];
    const onBackpressure = (backpressure: Backpressure) => reports.push(backpressure);
    await collect(swarm.submitMany(numbered(2), { retry: false, onBackpressure }));
    await settled();
    expect(reports).toEqual([]);
  });

  it("ends with the reason of its signal, even while its source is silent", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const given = new AbortController();
    const reason = new Error("enough");
    async function* silent(): AsyncGenerator<TaskRequest> {
      yield aTask();
      await new Promise(() => undefined);
    }
    const collected = watch(collect(swarm.submitMany(silent(), { signal: given.signal })));
    await settled();
    expect(collected.state).toBe("pending");
    given.abort(reason);
    await settled();
    expect(collected.error).toBe(reason);
  });

  it("passes on errors of its source, after the outcomes of earlier tasks", async () => {
    const { swarm, leader } = await aClient();
    leader.start();
    const reason = new Error("line 2 is no JSON");
    function* broken(): Generator<TaskRequest> {
      yield aTask({ id: "t0" });
      throw reason;
    }
    const seen: SubmitOutcome[] = [];
    const reading = async () => {
      for await (const outcome of swarm.submitMany(broken())) seen.push(outcome);
    };
    await expect(reading()).rejects.toBe(reason);
    expect(seen).toMatchObject([{ ok: true, task: { id: "t0" } }]);
  });
});
