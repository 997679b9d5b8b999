// The warning of `up` if the journal has less storage than `retain`.

import { expect, it } from "vitest";
import { roomWarning } from "../../src/cli/room-warning.ts";
import { defaultRetention, retentionIn } from "../../src/config/retention.ts";
import { keptBytesMax, roomToKeep } from "../../src/coordinator/compacting/kept-room.ts";
import { UnreachableError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";

const GIBIBYTE = 1024 ** 3;

function warningOf(retain: string, bytesMax = limits.journalBytesMax) {
  const journal = { sharable: true, usage: async () => ({ bytes: 0, bytesMax }) };
  const retention = retentionIn(retain) ?? expect.fail("it is one");
  return roomWarning({ journal }, { retention });
}

it("names the kept room, the requested room, and the command to add room", async () => {
  const warning = (await warningOf("30d,100GiB")) ?? expect.fail("it is said");
  expect(warning).toContain(
    "at most 8.4 GiB of the journal is kept, less than the 100.0 GiB of retain: its storage is 10.0 GiB",
  );
  expect(warning).toContain("give JetStream 117.8 GiB");
  const room = roomToKeep(100 * GIBIBYTE);
  expect(keptBytesMax(room)).toBeGreaterThanOrEqual(100 * GIBIBYTE);
  expect(await warningOf("30d,100GiB", room)).toBeUndefined();
});

it("is what is kept however young, where no size was said", async () => {
  expect(await warningOf("30d")).toContain(
    "at most 8.4 GiB of the journal is kept, of any age: retain gives no size, and the journal's storage is 10.0 GiB. For more",
  );
});

it("is nothing where it can be kept, and of the default", async () => {
  expect(await warningOf("8GiB")).toBeUndefined();
  const journal = { sharable: true, usage: async () => ({ bytes: 0, bytesMax: GIBIBYTE }) };
  expect(await roomWarning({ journal }, { retention: defaultRetention })).toBeUndefined();
});

it("is nothing where the journal does not answer now", async () => {
  const usage = () => Promise.reject(new UnreachableError("away"));
  const retention = { ageMs: 1, bytes: 100 * GIBIBYTE };
  const journal = { sharable: true, usage };
  expect(await roomWarning({ journal }, { retention })).toBeUndefined();
});
