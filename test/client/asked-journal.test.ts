// The journal as a coordinator answers it, against the journal itself: the same bytes, also of records that fit no
// answer, and the same faults.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Aborts } from "../../src/abort.ts";
import { verifyJournal } from "../../src/audit/verifying/verify.ts";
import { AskedJournal } from "../../src/client/asked-journal.ts";
import { Asker } from "../../src/client/asker.ts";
import { systemClock, systemRandom } from "../../src/clock.ts";
import { JournalDamagedError } from "../../src/errors.ts";
import type { SegmentReader, SegmentRecord } from "../../src/journal/journal.ts";
import { MemoryJournal } from "../../src/journal/memory.ts";
import { limits } from "../../src/limits.ts";
import { Horizon } from "../../src/protocol/horizon.ts";
import { startTestSwarm, subjects, type TestSwarm } from "../support/swarm.ts";

let swarm: TestSwarm;
let stored: MemoryJournal;
let asked: AskedJournal;

beforeEach(async () => {
  swarm = await startTestSwarm({ clock: systemClock });
  stored = new MemoryJournal(swarm.store);
  const asker = new Asker({
    ...{ transport: swarm.client.transport, clock: systemClock, random: systemRandom },
    ...{ horizon: new Horizon(systemClock), aborts: new Aborts() },
  });
  asked = new AskedJournal({ asker, subjects, onClose: async () => undefined });
});
afterEach(() => swarm.stop());

/** Texts are cheaper to compare than bytes. */
const textOf = ({ position, bytes }: SegmentRecord) => ({ position, text: Buffer.from(bytes).toString() });

async function recordsOf(segment: SegmentReader, from = 1, until?: number) {
  const all: ReturnType<typeof textOf>[] = [];
  for await (const record of segment.replay(from, until === undefined ? {} : { until }))
    all.push(textOf(record));
  return all;
}

/** A batch above the size of a page. */
async function submitMuch(): Promise<void> {
  const payload = "x".repeat(limits.payloadBytesMax / 2);
  await swarm.client.submit([1, 2, 3].map((each) => ({ kind: "k", payload: `${each}${payload}` })));
}

describe("the journal as coordinators answer it", () => {
  it("has the same segments, ends and records, byte by byte", async () => {
    await swarm.submit("t1", "t2");
    await submitMuch();
    await swarm.submit("t3");
    expect(await asked.list()).toEqual(await stored.list());
    const [number = 0] = await stored.list();
    const [one, other] = [asked.segment(number), stored.segment(number)];
    const end = await other.end();
    expect(await one.end()).toEqual(end);
    expect(await one.opened()).toEqual(await other.opened());
    const all = await recordsOf(other);
    expect(Math.max(...all.map(({ text }) => text.length))).toBeGreaterThan(limits.queryPageBytesMax);
    expect(await recordsOf(one)).toEqual(all);
    expect(await recordsOf(one, 3, 5)).toEqual(all.slice(2, 5));
    for (const record of all) {
      const read = await one.read(record.position);
      expect(read && textOf(read)).toEqual(record);
    }
  });

  it("has no segment and no record that the journal lacks", async () => {
    const [number = 0] = await stored.list();
    const { position = 0 } = (await stored.segment(number).end()) ?? {};
    expect(await asked.segment(number).read(position + 1)).toBeUndefined();
    expect(await recordsOf(asked.segment(number), position + 1)).toEqual([]);
    expect(await asked.segment(77).end()).toBeUndefined();
    await expect(recordsOf(asked.segment(77))).rejects.toBeInstanceOf(JournalDamagedError);
    await expect(recordsOf(asked.segment(number), 1, position + 5)).rejects.toBeInstanceOf(
      JournalDamagedError,
    );
  });

  it("is verified as the journal itself, and has the same faults", async () => {
    await swarm.submit("t1", "t2");
    await swarm.submit("t3");
    const whole = await verifyJournal({ journal: asked, clock: systemClock });
    expect(whole).toMatchObject({ fault: undefined });
    expect(whole).toEqual(await verifyJournal({ journal: stored, clock: systemClock }));
    const [number = 0] = await stored.list();
    const records = await recordsOf(stored.segment(number));
    const { position = 0 } = records.find(({ text }) => text.includes('"t1"')) ?? {};
    swarm.store.loseRecords(number, position);
    const [found, wanted] = [
      await verifyJournal({ journal: asked, clock: systemClock }),
      await verifyJournal({ journal: stored, clock: systemClock }),
    ];
    expect(wanted?.fault).toMatchObject({
      segment: number,
      kind: expect.stringMatching(/missing|unreadable/),
    });
    expect({ ...found?.fault, text: "" }).toEqual({ ...wanted?.fault, text: "" });
  });
});
