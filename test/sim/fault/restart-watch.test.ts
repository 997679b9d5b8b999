// That a purge or a removal is found behind which nobody who starts could begin, and a fault's doing is not.

import { beforeEach, expect, it } from "vitest";
import { hashOf } from "../../../src/journal/batch.ts";
import { encodeManifest } from "../../../src/journal/snapshot/manifest.ts";
import { subjectsOf } from "../../../src/protocol/subjects.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { JournalTruth } from "../../../src/sim/fault/journal-truth.ts";
import { RestartWatch } from "../../../src/sim/fault/restart-watch.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const RECORDS = 10;

let habitat: Habitat;
let truth: JournalTruth;
let watch: RestartWatch;

beforeEach(() => {
  habitat = new Habitat(new SeededRandom("restart-watch"));
  truth = new JournalTruth(habitat);
  watch = new RestartWatch(habitat, truth);
  for (let seq = 1; seq <= RECORDS; seq += 1) habitat.stream.intrude(Buffer.from(`record ${seq}`));
});

/** A snapshot stands that reaches a record. Returns where its only part lies. */
function saved(seq: number): number {
  const { snapshotStream, swarm } = habitat;
  const { snapshotChunk, snapshotManifest } = subjectsOf(swarm);
  const bytes = Buffer.from(`all up to record ${seq}`);
  snapshotStream.publish({ subject: snapshotChunk, bytes, expectedSeq: undefined });
  const place = snapshotStream.lastSeq;
  const manifest = encodeManifest({
    position: { journal: "j", term: 1, idx: seq, hash: "h", seq } as never,
    at: 1 as never,
    lastEventType: undefined,
    runs: [],
    deadRecords: 0,
    alienRecords: undefined,
    chunks: [[place, bytes.length, hashOf(bytes)]],
  });
  snapshotStream.publish({ subject: snapshotManifest, bytes: manifest, expectedSeq: undefined });
  return place;
}

const checks = () => habitat.findings.map(({ check }) => check);

it("a purge up to where a snapshot leads is none, one beyond is found, once", () => {
  saved(4);
  habitat.stream.purge(5);
  expect({ found: checks(), isPossible: watch.isPossible }).toEqual({ found: [], isPossible: true });
  habitat.stream.purge(6);
  habitat.stream.purge(7);
  expect({ found: checks(), isPossible: watch.isPossible }).toEqual({
    found: ["a-restart-is-possible"],
    isPossible: false,
  });
});

it("no snapshot of before leads on where the journal lost an end for good", () => {
  saved(4);
  truth.readOn();
  habitat.stream.loseTail(2);
  truth.lostEnd(RECORDS - 2);
  expect(watch.isPossible).toBe(true); // nothing that was lost is a batch
  Object.defineProperty(truth, "savedIdx", { value: 5 });
  expect(watch.isPossible).toBe(false);
  saved(5);
  expect(watch.isPossible).toBe(true);
});

it("a snapshot that is removed while it alone stands for what was purged is found", () => {
  const place = saved(4);
  habitat.stream.purge(5);
  habitat.snapshotStream.purge(place + 1);
  expect(checks()).toEqual(["a-restart-is-possible"]);
});

it("it is found again, once another snapshot stood", () => {
  habitat.stream.purge(5);
  saved(4);
  habitat.stream.purge(6);
  expect(checks()).toEqual(["a-restart-is-possible", "a-restart-is-possible"]);
});

/** The newest snapshot's part, once nobody can read it any more. */
function rot(place: number): void {
  const [newest] = watch.wholeSnapshots();
  habitat.snapshotStream.rot(place);
  watch.rotted(newest ?? expect.fail("one is whole"));
}

it("a purge by a snapshot that rotted meanwhile is none; once another stands, one beyond that is", () => {
  rot(saved(4));
  habitat.stream.purge(5);
  expect(checks()).toEqual([]);
  saved(5);
  habitat.stream.purge(8);
  expect(checks()).toEqual(["a-restart-is-possible"]);
});

it.each([
  [1_000, []],
  [60_000, ["a-restart-is-possible"]],
])(
  "what goes by a snapshot %i ms after it rotted is judged by how lately it was whole",
  async (ms, found) => {
    const { engine, snapshotStream, swarm, stream } = habitat;
    saved(4);
    const place = saved(5);
    stream.purge(5);
    rot(place);
    engine.after(ms, "time passes", () => undefined);
    await engine.run(ms, () => false);
    const subject = subjectsOf(swarm).snapshotChunk; // of the next one
    snapshotStream.publish({ subject, bytes: Buffer.from("a part"), expectedSeq: undefined });
    snapshotStream.purge(place);
    expect(checks()).toEqual(found);
  },
);

it.each([
  ["its end", () => truth.lostTail(RECORDS - 2)],
  ["records within", () => truth.lostMiddle(RECORDS)],
])("nothing is found while the journal has lost %s", (_, isLost) => {
  isLost();
  habitat.stream.purge(5);
  expect(checks()).toEqual([]);
});
