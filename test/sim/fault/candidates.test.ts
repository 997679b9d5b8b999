// Which elections are worth counting: two for one place of the journal, and one that goes on for long.

import { beforeEach, expect, it } from "vitest";
import { encodeBatch } from "../../../src/journal/batch.ts";
import { Candidates } from "../../../src/sim/fault/candidates.ts";
import { Occurrences } from "../../../src/sim/fault/occurrences.ts";

const timeoutMs = 1_000;
let occurrences: Occurrences;
let candidates: Candidates;

beforeEach(() => {
  occurrences = new Occurrences();
  candidates = new Candidates(occurrences);
});

const electionOf = (leader: string, campaign = leader) => {
  const header = { journal: "j", term: 2, idx: 2, prev: "", at: 1 } as never;
  return encodeBatch(header, [JSON.stringify({ type: "TermStarted", term: 2, leader, campaign, timeoutMs })]);
};
const send = (id: string, bytes: Uint8Array, expectedSeq = 7, nowMs = 0) =>
  candidates.sent(id, bytes, { expectedSeq, nowMs });

it("two stand for one place", () => {
  send("c1", electionOf("c1"));
  send("c2", electionOf("c2"), 8);
  expect(occurrences.counts()).toEqual({});
  send("c3", electionOf("c3"), 8);
  expect(occurrences.counts()).toEqual({ "standbys-racing": 1 });
});

it("it is no race where a journal begins, nor where one puts back what another wrote", () => {
  for (const id of ["c1", "c2"]) send(id, electionOf(id), 0);
  send("c2", electionOf("c1"));
  send("c1", electionOf("c1", "later"));
  expect(occurrences.counts()).toEqual({});
});

it("an election is sent for longer than T", () => {
  for (const nowMs of [0, timeoutMs]) send("c1", electionOf("c1"), 7, nowMs);
  expect(occurrences.counts()).toEqual({});
  send("c1", electionOf("c1"), 7, timeoutMs + 1);
  expect(occurrences.counts()).toEqual({ "election-sent-for-long": 1 });
});
