// Seals of a segment in a faulty store. After a flipped bit in a stream's newest block, nats-server 2.9.10 acknowledges
// seals and never returns them. A seal may also take the position of a lost record.

import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bytesOf, fill, filled, linesOf } from "./records.ts";
import { StreamWorld } from "./stream-world.ts";

function forgotten(seals: number): "forget"[] {
  return Array.from({ length: seals }, () => "forget");
}

describe("a seal that the server acknowledges and never returns", () => {
  it("ends the segment for the handle, at the first acknowledged position", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 3);
    world.publishFates = forgotten(limits.sealsUnshownMax);
    expect(await segment.seal()).toBe(true);
    expect(await segment.end()).toMatchObject({ position: 3, isSealed: true });
    expect(await segment.append(bytesOf("late"), 3)).toEqual({ kind: "sealed" });
    expect(await linesOf(segment.replay(1))).toEqual(filled(1, 3));
    expect(await segment.seal()).toBe(true);
    expect(world.stream.lastSeq).toBe(3 + limits.sealsUnshownMax);
  });

  it("counts earlier records that were acknowledged and never returned", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 3);
    world.publishFates = forgotten(1 + limits.sealsUnshownMax);
    expect(await segment.append(bytesOf("record 4"), 3)).toEqual({ kind: "stored" });
    expect(await segment.seal()).toBe(true);
    expect(await segment.end()).toMatchObject({ position: 4, isSealed: true });
  });

  it("is repeated until the server returns it, if fewer than the limit are missing", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 3);
    const missing = limits.sealsUnshownMax - 1;
    world.publishFates = forgotten(missing);
    expect(await segment.seal()).toBe(true);
    expect(await segment.end()).toMatchObject({ position: 3 + missing, isSealed: true, missing });
  });

  it("does not count without acknowledgement", async () => {
    const { world, journal } = await StreamWorld.withSegment();
    const segment = journal.segment(1);
    await fill(segment, 3);
    const unproven = ["drop", "off", "nobody", "false-duplicate", "nobody", "nobody"] as const;
    world.publishFates = [...unproven];
    expect(await segment.seal()).toBe(true);
    expect(await segment.end()).toMatchObject({ position: 3, isSealed: true, missing: 0 });
  });
});

it("a segment that lost its end and its seal is known as short at once where one server keeps it", async () => {
  const { world, journal } = await StreamWorld.withSegment();
  const segment = journal.segment(1);
  await fill(segment, 5);
  expect(await segment.seal()).toBe(true);
  world.stream.loseTail(3);
  const startedMs = performance.now();
  expect(await segment.end()).toMatchObject({ position: 3, isSealed: true });
  expect(performance.now() - startedMs).toBeLessThan(limits.journalGapMs);
});

describe("a seal in the position of a lost record", () => {
  const unsealedMs = 2_400;
  const late = bytesOf("late");

  /** The store acknowledged `last` records of a writer and lost the newest ones. A rival sealed the rest. */
  async function sealedAfterLoss({ last, lost }: { readonly last: number; readonly lost: number }) {
    const clock = new ManualClock();
    const world = new StreamWorld(clock);
    const writer = world.open();
    await writer.create(1);
    await fill(writer.segment(1), last);
    world.stream.loseTail(lost);
    expect(await world.open().segment(1).seal()).toBe(true);
    expect(world.stream.lastSeq).toBe(last - lost + 1);
    return { clock, world, segment: writer.segment(1) };
  }

  it("is met by the writer's next append, though its expected position is the seal's", async () => {
    const { clock, world, segment } = await sealedAfterLoss({ last: 3, lost: 1 });
    clock.stall(unsealedMs);
    expect(await segment.append(late, 3, { unsealedMs })).toEqual({ kind: "sealed" });
    expect(world.stream.lastSeq).toBe(4); // the record was stored behind the seal
  });

  it("is met at once by an append at a position that was acknowledged before", async () => {
    const { segment } = await sealedAfterLoss({ last: 3, lost: 2 });
    expect(await segment.append(late, 2, { unsealedMs })).toEqual({ kind: "sealed" });
  });

  it("is met at once by the record that opens the segment", async () => {
    const { segment } = await sealedAfterLoss({ last: 1, lost: 1 });
    expect(await segment.append(late, 1, { isOpened: true })).toEqual({ kind: "sealed" });
  });

  it("costs a writer no question within the time that no other coordinator seals", async () => {
    const clock = new ManualClock();
    const world = new StreamWorld(clock);
    const journal = world.open();
    await journal.create(1);
    await fill(journal.segment(1), 3);
    const known = world.asked.length;
    const append = (expected: number) => journal.segment(1).append(late, expected, { unsealedMs });
    for (const expected of [3, 4]) {
      clock.stall(unsealedMs - 1);
      expect(await append(expected)).toEqual({ kind: "stored" });
    }
    expect(world.asked.slice(known)).toEqual([]);
    clock.stall(unsealedMs);
    expect(await append(5)).toEqual({ kind: "stored" });
    expect(world.asked.slice(known)).toContain("STREAM.MSG.GET");
  });
});
