// The page of one task while its history takes long to read.

import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { ActivityBook } from "../../src/dashboard/activity-book.ts";
import { EventTap } from "../../src/dashboard/event-tap.ts";
import { TaskFollower } from "../../src/dashboard/task-follower.ts";
import { silentLogger, subjects } from "../support/swarm.ts";
import { Fixture } from "./dashboard-fixture.ts";

let page: Fixture;
beforeAll(async () => {
  page = await Fixture.start();
});
afterAll(() => page.stop());

/** A follower whose history comes when `read` is called. */
function followed(task: string) {
  const { swarm, transport } = page;
  let read: () => void = () => undefined;
  const isAsked = new Promise<void>((resolve) => {
    read = resolve;
  });
  const deps = { swarm, transport, subjects, clock: systemClock };
  const tap = new EventTap({
    ...deps,
    logger: silentLogger,
    book: new ActivityBook(),
    onWait: () => undefined,
  });
  const slow = {
    taskStatus: async (...args: Parameters<typeof swarm.taskStatus>) => await swarm.taskStatus(...args),
    story: async (...args: Parameters<typeof swarm.story>) => {
      await isAsked;
      return await swarm.story(...args);
    },
  };
  const verbs = ["revoke", "reschedule"] as const;
  const follower = new TaskFollower(
    { ...deps, swarm: slow, tap, verbs, nowAt: () => 0 },
    { task, project: "default" },
  );
  const changed = new Promise<void>((resolve) => follower.onChange(resolve));
  return { follower, read, changed };
}

it("has the status and the reason of the wait at once, and the history when it was read", async () => {
  await page.swarm.submit({ id: "waits", kind: "paint", payload: "a hive" });
  const { follower, read, changed } = followed("waits");
  const first = await follower.compute();
  expect(first).toMatchObject({ isReading: true, waterfall: [], task: { state: "queued", attempts: 0 } });
  expect(first).not.toHaveProperty("spec");
  expect(first.wait?.sentence).toContain("No agent serves paint");
  expect(first.can).toEqual({ cancel: true, retry: false, revoke: false, reschedule: true });
  expect(first.commands).not.toHaveProperty("retry");
  read();
  await changed;
  expect(await follower.compute()).toMatchObject({
    isReading: false,
    spec: { payloadBytes: 6 },
    waterfall: [{ what: "queued" }],
  });
  follower.close();
});

it("of an unknown task is refused, before any history is read", async () => {
  const { follower } = followed("zz");
  await expect(follower.compute()).rejects.toMatchObject({ code: "WAGGLE_UNKNOWN_TASK" });
  follower.close();
});
