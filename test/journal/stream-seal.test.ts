// Seals of a segment in a faulty store. After a flipped bit in a stream's newest block, nats-server 2.9.10 acknowledges
// seals and never returns them. A seal may also take the position of a lost record.

import { describe, expect, it } from "vitest";
import { limits } from "../../src/limits.ts";
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

it("a segment without end and seal is known as short at once on a single server", async () => {
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
  const late = bytesOf("late");

  /** The store acknowledged `last` records of a writer and lost the newest one. A rival sealed the rest. */
  async function sealedAfterLoss(last: number) {
    const world = new StreamWorld();
    const writer = world.open();
    await writer.create(1);
    await fill(writer.segment(1), last);
    world.stream.loseTail(1);
    expect(await world.open().segment(1).seal()).toBe(true);
    expect(world.stream.lastSeq).toBe(last);
    return { world, segment: writer.segment(1) };
  }

  it("ends the segment before the writer's next append, though that was stored at the expected position", async () => {
    const { world, segment } = await sealedAfterLoss(3);
    expect(await segment.append(late, 3)).toEqual({ kind: "stored" });
    expect(world.stream.lastSeq).toBe(4); // the record was stored behind the seal
    expect(await segment.end()).toMatchObject({ position: 2, isSealed: true });
    expect(await segment.append(late, 4)).toEqual({ kind: "sealed" });
  });

  it("is met at once by the record that opens the segment", async () => {
    const { segment } = await sealedAfterLoss(1);
    expect(await segment.append(late, 1, { isOpened: true })).toEqual({ kind: "sealed" });
  });
});
