// The format of records: each kind is decoded unchanged, and incomplete bytes are foreign.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchIndex, instant, term } from "../../src/ids.ts";
import {
  decodeBatchHeader,
  decodeRecord,
  encodeBatch,
  encodeRecord,
  hashOf,
  type LogRecord,
} from "../../src/journal/records.ts";

const tail = { journal: "j", term: term(2), idx: batchIndex(7), hash: "h7" };
const header = {
  journal: "j",
  session: "l",
  term: term(2),
  idx: batchIndex(8),
  prev: "h7",
  at: instant(1_000),
};
const records: Exclude<LogRecord, { readonly kind: "batch" }>[] = [
  { kind: "claim", segment: 3, session: "l", attempt: "a" },
  { kind: "chunk", session: "l", bytes: Buffer.from([0, 10, 255, 10]) },
  { kind: "manifest", session: "l", version: 1, at: instant(5), tail, chunks: [[2, 4, "c"]] },
  {
    kind: "opened",
    segment: 3,
    session: "l",
    journal: "j",
    term: term(3),
    leader: "c1",
    tail,
    previous: { segment: 2, idx: batchIndex(7), hash: "h7" },
    base: { position: 3, hash: "m", idx: batchIndex(7) },
    recent: ["h6", "h7"],
  },
  { kind: "closing", segment: 3, session: "l", reason: "handing-over", to: "c2" },
];

describe("a record", () => {
  it.each(records.map((record) => [record.kind, record] as const))("%s comes back as it was", (_, record) => {
    const decoded = decodeRecord(encodeRecord(record));
    if (decoded?.kind === "chunk" && record.kind === "chunk")
      expect([decoded.session, [...decoded.bytes]]).toEqual([record.session, [...record.bytes]]);
    else expect(decoded).toEqual(record);
  });

  it("of a batch is decoded with the events, and the header without the events", () => {
    const events = ['{"type":"TermRenewed"}', '{"type":"X","text":"\\",\\"events\\":[蜂"}'];
    const bytes = encodeBatch(header, events);
    expect(decodeRecord(bytes)).toEqual({
      kind: "batch",
      ...header,
      events: events.map((event) => JSON.parse(event)),
    });
    expect(decodeBatchHeader(bytes)).toMatchObject(header);
    for (const record of records) expect(decodeBatchHeader(encodeRecord(record))).toBeUndefined();
  });

  it("without a required field, or of an unknown version, is foreign", () => {
    for (const record of records) {
      if (record.kind === "chunk") continue;
      const fields = JSON.parse(Buffer.from(encodeRecord(record)).toString());
      expect(decodeRecord(Buffer.from(JSON.stringify({ ...fields, v: 1 })))).toBeUndefined();
      for (const field of Object.keys(fields)) {
        if (["to", "previous", "base"].includes(field)) continue; // may be absent
        const { [field]: _, ...rest } = fields;
        expect(
          decodeRecord(Buffer.from(JSON.stringify(rest))),
          `${record.kind} without ${field}`,
        ).toBeUndefined();
        for (const wrong of [null, {}, -1, 1.5])
          if (field !== "at" || wrong === null)
            expect(
              decodeRecord(Buffer.from(JSON.stringify({ ...fields, [field]: wrong }))),
              `${record.kind} with ${field} ${JSON.stringify(wrong)}`,
            ).toBeUndefined();
      }
    }
  });

  it("of any bytes is read without a throw", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(decodeRecord(bytes)).toBeUndefined();
        expect(decodeBatchHeader(bytes)).toBeUndefined();
      }),
    );
  });

  it("is foreign if cut off at any byte", () => {
    const whole = [...records.map(encodeRecord), encodeBatch(header, ['{"type":"TermRenewed"}'])];
    for (const bytes of whole)
      for (let cut = 0; cut < bytes.length; cut += 1) {
        const decoded = decodeRecord(bytes.subarray(0, cut));
        expect(decoded === undefined || decoded.kind === "chunk").toBe(true); // its manifest has a chunk's hash
      }
  });
});

it("a hash is SHA-256 in base64url", () => {
  expect(hashOf(Buffer.from(""))).toBe("47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
});
