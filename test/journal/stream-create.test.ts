// Creates a segment while the server does not answer, or refuses for a moment. A cluster without one of its servers
// answers only after the new stream has elected a leader.

import { expect, it } from "vitest";
import { UnreachableError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import type { QuestionFate } from "../../src/sim/fault/jetstream.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { StreamWorld } from "./stream-world.ts";

function creations(...fates: readonly QuestionFate[]) {
  return fates.map((fate) => ({ verb: "STREAM.CREATE", fate }));
}

it("a creation without an answer is repeated until the server answers", async () => {
  const clock = new ManualClock();
  const world = new StreamWorld(clock);
  const journal = world.open();
  world.questionFates = creations("drop", "unheard", "drop");
  const created = journal.create(1);
  await clock.advance(limits.journalOpenMs);
  await created;
  expect(await journal.list()).toEqual([1]);
});

it("a creation fails once the server has not answered for a while", async () => {
  const clock = new ManualClock();
  const world = new StreamWorld(clock);
  const journal = world.open();
  world.questionFates = creations(...Array<"drop">(20).fill("drop"));
  const failed = expect(journal.create(1)).rejects.toThrow(UnreachableError);
  await clock.advance(limits.journalOpenMs * 2);
  await failed;
  expect(world.questionFates.length).toBeGreaterThan(10);
});

it("a creation is repeated while the server cannot make the stream's files", async () => {
  const world = new StreamWorld();
  const journal = world.open();
  world.questionFates = creations("no-files", "no-files");
  await journal.create(1);
  expect(await journal.list()).toEqual([1]);
});

it("a creation fails once the server could not make the stream's files for a while", async () => {
  const world = new StreamWorld();
  const journal = world.open();
  world.questionFates = creations(...Array<"no-files">(40).fill("no-files"));
  await expect(journal.create(1)).rejects.toThrow(/error creating store for stream/);
  expect(await journal.list()).toEqual([]);
});
