// Seals a segment while the server acknowledges seals and never returns them. Nats-server 2.9.10 does so after a
// flipped bit in a stream's newest block.

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
