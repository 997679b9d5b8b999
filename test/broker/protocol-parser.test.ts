// The parser for arbitrary input. The result does not depend on the cuts between chunks. No bytes make the
// parser throw, hang or continue after a violation.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolParser, type ProtocolSink } from "../../src/broker/protocol-parser.ts";
import { limits } from "../../src/limits.ts";

const MAX_PAYLOAD_BYTES = 300;

/** The parser's output as comparable text. */
class Transcript implements ProtocolSink {
  readonly events: string[] = [];
  readonly parser = new ProtocolParser(this, MAX_PAYLOAD_BYTES);

  constructor({ isAuthorized = true } = {}) {
    this.parser.isAuthorized = isAuthorized;
  }

  feed(bytes: Uint8Array, cuts: readonly number[] = []): this {
    let at = 0;
    for (const cut of [...cuts].sort((a, b) => a - b).concat(bytes.length)) {
      // A copy: the broker never reuses a chunk, and held data must not depend on neighbouring bytes.
      this.parser.feed(Buffer.from(bytes.subarray(at, cut)));
      at = cut;
    }
    return this;
  }

  connect(json: string) {
    this.events.push(`connect ${json}`);
  }
  publish({ buffer, ...frame }: Parameters<ProtocolSink["publish"]>[0]) {
    const { hasHeaders, subjectStart, subjectEnd, replyStart, replyEnd, headerBytes, payloadStart, end } =
      frame;
    const text = (start: number, stop: number) => buffer.toString("latin1", start, stop);
    const reply = replyStart < 0 ? "-" : text(replyStart, replyEnd);
    // The rest after the subject is passed on unchanged, so it must be in the usual form.
    const size = end - 2 - payloadStart;
    const sizes = hasHeaders ? `${headerBytes} ${size}` : `${size}`;
    const isUsual = text(subjectEnd, payloadStart) === ` ${replyStart < 0 ? "" : `${reply} `}${sizes}\r\n`;
    this.events.push(
      `publish ${text(subjectStart, subjectEnd)} ${reply} ${headerBytes} ${JSON.stringify(text(payloadStart, end))} ${isUsual}`,
    );
  }
  subscribe({ subject, queue, sid }: Parameters<ProtocolSink["subscribe"]>[0]) {
    this.events.push(`subscribe ${subject} ${queue} ${sid}`);
  }
  unsubscribe(sid: string, max: number) {
    this.events.push(`unsubscribe ${sid} ${max}`);
  }
  ping() {
    this.events.push("ping");
  }
  pong() {
    this.events.push("pong");
  }
  violation(violation: string) {
    this.events.push(`violation ${violation}`);
  }
}

interface Operation {
  readonly bytes: Buffer;
  readonly event: string;
}

const word = fc.stringMatching(/^[A-Za-z0-9_.*>$-]{1,12}$/);
const gap = fc.constantFrom(" ", "  ", "\t", " \t ");
const lineBreak = fc.constantFrom("\r\n", "\r\n", "\n");
const spelled = (name: string) => fc.constantFrom(name, name, name.toLowerCase());
/** Arbitrary bytes, with line breaks and words of the protocol. */
const payload = fc.oneof(
  fc.uint8Array({ maxLength: MAX_PAYLOAD_BYTES }),
  fc.constantFrom("\r\n", "PING\r\n", "PUB a 1\r\nx\r\n").map((text) => Buffer.from(text)),
);

const line = (name: string, words: readonly string[], event: string) =>
  fc.tuple(spelled(name), gap, lineBreak).map(([operation, space, end]) => ({
    bytes: Buffer.from(`${[operation, ...words].join(space)}${end}`),
    event,
  }));

const publish = fc
  .tuple(fc.boolean(), word, fc.option(word), payload, fc.nat(), gap, gap, lineBreak)
  .chain(([hasHeaders, subject, reply, data, split, space, otherSpace, end]) => {
    const headerBytes = hasHeaders ? split % (data.length + 1) : 0;
    const words = [subject, reply, hasHeaders ? headerBytes : null, data.length].filter(
      (part) => part !== null,
    );
    const text = JSON.stringify(Buffer.concat([data, Buffer.from("\r\n")]).toString("latin1"));
    return spelled(hasHeaders ? "HPUB" : "PUB").map(
      (operation): Operation => ({
        bytes: Buffer.concat([
          Buffer.from(`${operation}${space}${words.join(otherSpace)}${end}`),
          data,
          Buffer.from("\r\n"),
        ]),
        event: `publish ${subject} ${reply ?? "-"} ${headerBytes} ${text} true`,
      }),
    );
  });

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { arbitrary: publish, weight: 4 },
  { arbitrary: line("PING", [], "ping"), weight: 1 },
  { arbitrary: line("PONG", [], "pong"), weight: 1 },
  {
    arbitrary: fc.tuple(word, fc.option(word), word).chain(([subject, queue, sid]) => {
      const words = [subject, queue, sid].filter((part) => part !== null);
      return line("SUB", words, `subscribe ${subject} ${queue ?? undefined} ${sid}`);
    }),
    weight: 1,
  },
  {
    arbitrary: fc.tuple(word, fc.option(fc.nat(999))).chain(([sid, max]) => {
      return line("UNSUB", [sid, ...(max === null ? [] : [String(max)])], `unsubscribe ${sid} ${max ?? 0}`);
    }),
    weight: 1,
  },
  { arbitrary: line("CONNECT", ['{"lang":"a b"}'], 'connect {"lang":"a b"}'), weight: 1 },
);

describe("the protocol parser", () => {
  it("reads the same operations however the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 12 }),
        fc.array(fc.nat(4_000), { maxLength: 20 }),
        (operations, cuts) => {
          const bytes = Buffer.concat(operations.map((one) => one.bytes));
          const within = cuts.filter((cut) => cut < bytes.length);
          expect(new Transcript().feed(bytes, within).events).toEqual(operations.map(({ event }) => event));
        },
      ),
      { numRuns: 500 },
    );
  });

  it("reads the same operations byte by byte", () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 5 }), (operations) => {
        const bytes = Buffer.concat(operations.map((one) => one.bytes));
        const everywhere = Array.from({ length: bytes.length }, (_, at) => at);
        expect(new Transcript().feed(bytes, everywhere).events).toEqual(operations.map(({ event }) => event));
      }),
      { numRuns: 100 },
    );
  });

  it("accepts any bytes: continues, or reports one violation and nothing after it", () => {
    const garbage = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc
        .string({ maxLength: 50, unit: fc.constantFrom(..."PUBHSNCOIT 019\r\n\t{}.>*\0") })
        .map((text) => Buffer.from(text)),
      operation.map(({ bytes }) => bytes),
    );
    fc.assert(
      fc.property(
        fc.array(garbage, { maxLength: 8 }),
        fc.array(fc.nat(1_000), { maxLength: 10 }),
        fc.boolean(),
        (pieces, cuts, isAuthorized) => {
          const bytes = Buffer.concat(pieces);
          const within = cuts.filter((cut) => cut < bytes.length);
          const { events } = new Transcript({ isAuthorized }).feed(bytes, within);
          const violations = events.filter((event) => event.startsWith("violation"));
          expect(violations.length).toBeLessThanOrEqual(1);
          if (violations.length === 1) expect(events.at(-1)).toBe(violations[0]);
          if (!isAuthorized)
            expect(events.filter((event) => !/^(connect|violation)/.test(event))).toEqual([]);
          // The cut may only decide how early an endless line is refused.
          const whole = new Transcript({ isAuthorized }).feed(bytes).events;
          const said = events.filter((event) => !event.startsWith("violation"));
          expect(whole.filter((event) => !event.startsWith("violation"))).toEqual(said);
        },
      ),
      { numRuns: 1_000, examples: [[[Buffer.from("\r"), Buffer.from("PING\r\n")], [1], true]] },
    );
  });

  it("takes a control line of the longest size, whole and in pieces, and none longer", () => {
    const longest = Buffer.from(`${"PUB ".padEnd(limits.controlLineBytesMax - 3, "a")} 0\r\n\r\n`);
    expect(longest.indexOf("\n")).toBe(limits.controlLineBytesMax);
    for (const cuts of [[], [1], [longest.length - 3]]) {
      expect(new Transcript().feed(longest, cuts).events.length).toBe(1);
      expect(new Transcript().feed(longest, cuts).events[0]).toMatch(/^publish/);
      const longer = Buffer.concat([Buffer.from("PUB a"), longest.subarray(4)]);
      expect(new Transcript().feed(longer, cuts).events).toEqual(["violation Maximum Control Line Exceeded"]);
    }
  });

  it("awaits no payload of an unauthorized client, and no oversized payload", () => {
    expect(new Transcript({ isAuthorized: false }).feed(Buffer.from("PUB a 5\r\n")).events).toEqual([
      "violation Authorization Violation",
    ]);
    expect(new Transcript().feed(Buffer.from(`PUB a ${MAX_PAYLOAD_BYTES + 1}\r\n`)).events).toEqual([
      "violation Maximum Payload Violation",
    ]);
  });
});
