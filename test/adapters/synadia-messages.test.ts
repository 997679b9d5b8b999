// The messages of the Synadia Agent Protocol, held to the examples of its text (core-protocol.md 0.3, appendix B).

import { describe, expect, it } from "vitest";
import { agentIdFor } from "../../src/adapters/synadia/agent-id.ts";
import {
  promptOf,
  readChunk,
  readDescription,
  readHeartbeat,
  readPrompt,
  readRefusal,
  writeAck,
  writeHeartbeat,
  writeRefusal,
  writeResponse,
} from "../../src/adapters/synadia/messages.ts";
import { tokenFor } from "../../src/adapters/synadia/served-agent.ts";

const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const valueFrom = <Value>(read: { ok: true; value: Value } | { ok: false; message: string }): Value => {
  if (!read.ok) throw new Error(read.message);
  return read.value;
};

/** B.12 */
const info = {
  name: "agents",
  id: "VMKS6MHK71PCPWGY38A7N5",
  version: "0.3.0",
  description: "Claude Code — synadia-com-2",
  metadata: {
    agent: "claude-code",
    owner: "aconnolly",
    session: "synadia-com-2",
    protocol_version: "0.3",
  },
  endpoints: [
    {
      name: "prompt",
      subject: "agents.prompt.claude-code.aconnolly.synadia-com-2",
      queue_group: "agents",
      metadata: { max_payload: "1MB", attachments_ok: true },
    },
    {
      name: "status",
      subject: "agents.status.claude-code.aconnolly.synadia-com-2",
      queue_group: "agents",
    },
  ],
};
const [prompt, status] = info.endpoints;
const withPrompt = (changed: object) => ({ ...info, endpoints: [{ ...prompt, ...changed }, status] });
const withMetadata = (changed: object) => ({ ...info, metadata: { ...info.metadata, ...changed } });

describe("an INFO", () => {
  it("is read as in the example of the text", () => {
    expect(valueFrom(readDescription(bytes(info)))).toEqual({
      instance: "VMKS6MHK71PCPWGY38A7N5",
      agent: "claude-code",
      owner: "aconnolly",
      session: "synadia-com-2",
      promptSubject: "agents.prompt.claude-code.aconnolly.synadia-com-2",
      maxPayloadBytes: 1024 ** 2,
      takesAttachments: true,
      swarm: undefined,
    });
  });

  it("may lack a session, terms of the prompt, and use its own subject", () => {
    const { session: _, ...metadata } = info.metadata;
    const plain = { ...withPrompt({ subject: "my.agent.x", metadata: null }), metadata };
    expect(valueFrom(readDescription(bytes(plain)))).toMatchObject({
      session: "x",
      promptSubject: "my.agent.x",
      maxPayloadBytes: Number.POSITIVE_INFINITY,
      takesAttachments: false,
    });
    expect(valueFrom(readDescription(bytes(withMetadata({ protocol_version: "0.3.1" }))))).toBeDefined();
  });

  it.each([
    ["another service", { ...info, name: "echo" }, /^name: /],
    ["no id", { ...info, id: "a.b" }, /^id: must be a token/],
    ["no metadata", { ...info, metadata: null }, /^metadata: /],
    ["a name with spaces", withMetadata({ agent: "claude code" }), /^metadata.agent: /],
    ["another version", withMetadata({ protocol_version: "0.2" }), /speaks 0\.3/],
    ["no prompt", { ...info, endpoints: [status] }, /no endpoint prompt/],
    ["a wildcard", withPrompt({ subject: "agents.prompt.>" }), /cannot be prompted/],
    ["a subject of a swarm", withPrompt({ subject: "waggle.v1.default.journal.1" }), /cannot be prompted/],
    ["a subject of the server", withPrompt({ subject: "$JS.API.INFO" }), /cannot be prompted/],
    ["signed prompts", withPrompt({ metadata: { min_sender_trust: "signed" } }), /does not sign/],
    ["no JSON", "{", /is not JSON/],
  ])("is refused with %s", (_what, given, expected) => {
    expect(readDescription(bytes(given))).toMatchObject({
      ok: false,
      message: expect.stringMatching(expected),
    });
  });
});

describe("a heartbeat", () => {
  const example =
    '{"agent":"claude-code","owner":"aconnolly","session":"synadia-com-2",' +
    '"instance_id":"VMKS6MHK71PCPWGY38A7N5","ts":"2026-04-28T14:23:01Z","interval_s":30}';

  it("is read and written as in the example of the text", () => {
    expect(valueFrom(readHeartbeat(bytes(example)))).toEqual({
      instance: "VMKS6MHK71PCPWGY38A7N5",
      intervalMs: 30_000,
    });
    const written = writeHeartbeat({
      ...{ agent: "claude-code", owner: "aconnolly", session: "synadia-com-2" },
      ...{
        instance: "VMKS6MHK71PCPWGY38A7N5",
        at: Date.UTC(2026, 3, 28, 14, 23, 1, 500),
        intervalMs: 30_000,
      },
    });
    expect(Buffer.from(written).toString()).toBe(example);
  });

  it.each([
    ["an interval of 0", '{"instance_id":"a","interval_s":0}'],
    ["no instance", '{"interval_s":30}'],
    ["an instance that is no token", '{"instance_id":"a.>","interval_s":30}'],
    ["no JSON", "beep"],
  ])("is refused with %s", (_what, given) => {
    expect(readHeartbeat(bytes(given))).toMatchObject({ ok: false });
  });

  it("never is more than a day apart", () => {
    expect(valueFrom(readHeartbeat(bytes('{"instance_id":"a","interval_s":1e300}'))).intervalMs).toBe(
      86_400_000,
    );
  });
});

describe("a prompt", () => {
  it("is text or an envelope, as in the examples of the text", () => {
    expect(valueFrom(readPrompt(bytes("summarize the attached report")))).toEqual({
      prompt: "summarize the attached report",
    });
    expect(valueFrom(readPrompt(bytes('{"prompt":"summarize the attached report"}')))).toEqual({
      prompt: "summarize the attached report",
    });
    const attached = {
      prompt: "summarize",
      attachments: [{ filename: "report.pdf", content: "JVBERi0xLjQKJQ==", of: "a later version" }],
      later: true,
    };
    expect(valueFrom(readPrompt(bytes(` \n${JSON.stringify(attached)}`)))).toEqual(attached);
  });

  it.each([
    ["nothing", "", /empty/],
    ["broken JSON", '{"prompt":', /is not JSON/],
    ["no prompt", '{"text":"x"}', /prompt: /],
    ["an empty prompt", '{"prompt":""}', /must not be empty/],
    ["base64 for URLs", '{"prompt":"x","attachments":[{"filename":"a","content":"_-8="}]}', /padded base64/],
    [
      "base64 with white space",
      '{"prompt":"x","attachments":[{"filename":"a","content":"YW\\nJj"}]}',
      /base64/,
    ],
    ["no padding", '{"prompt":"x","attachments":[{"filename":"a","content":"YQ"}]}', /padded base64/],
    ["no file name", '{"prompt":"x","attachments":[{"content":"YQ=="}]}', /filename/],
  ])("is refused with %s", (_what, given, expected) => {
    expect(readPrompt(bytes(given))).toMatchObject({ ok: false, message: expect.stringMatching(expected) });
  });

  it("is refused unless it is UTF-8", () => {
    expect(readPrompt(Uint8Array.of(0xff, 0xfe))).toMatchObject({ ok: false });
  });

  it("from a task's payload keeps envelopes, and wraps only text that would be read as JSON", () => {
    const sent = (payload: string) => Buffer.from(valueFrom(promptOf(payload)).data).toString();
    expect(sent("how many words")).toBe("how many words");
    expect(sent('{"prompt":"x","later":1}')).toBe('{"prompt":"x","later":1}');
    expect(sent("{see above} go on")).toBe('{"prompt":"{see above} go on"}');
    expect(sent('{"query":"bees"}')).toBe('{"prompt":"{\\"query\\":\\"bees\\"}"}');
    expect(promptOf("")).toMatchObject({ ok: false });
    expect(promptOf('{"prompt":""}')).toMatchObject({ ok: false });
  });
});

describe("a chunk", () => {
  it.each([
    [
      '{"type":"response","data":"Hello, world."}',
      { type: "response", text: "Hello, world.", attachments: [] },
    ],
    [
      '{"type":"response","data":{"text":"Hello, world."}}',
      { type: "response", text: "Hello, world.", attachments: [] },
    ],
    ['{"type":"status","data":"ack"}', { type: "ack" }],
    [
      '{"type":"query","data":{"id":"a8f1c2e4-9b63-4d7e-aaaa-112233445566","reply_subject":"_INBOX.Xj7k9Q2pA","prompt":"Confirm? (yes/no)"}}',
      {
        type: "query",
        query: {
          id: "a8f1c2e4-9b63-4d7e-aaaa-112233445566",
          replySubject: "_INBOX.Xj7k9Q2pA",
          prompt: "Confirm? (yes/no)",
        },
      },
    ],
    ['{"type":"status","data":"thinking"}', { type: "other" }],
    ['{"type":"cost","data":{"usd":3}}', { type: "other" }],
  ])("%s is read", (given, expected) => {
    expect(valueFrom(readChunk(bytes(given)))).toEqual(expected);
  });

  it.each([
    "plain text",
    "[]",
    '{"data":"x"}',
    '{"type":"response"}',
    '{"type":"response","data":{"attachments":[]}}',
    '{"type":"query","data":{"id":"1","prompt":"Now?"}}',
    '{"type":"query","data":{"id":"1","prompt":"Now?","reply_subject":"waggle.v1.default.journal.1"}}',
  ])("%s is refused", (given) => {
    expect(readChunk(bytes(given))).toMatchObject({ ok: false, code: "WAGGLE_INVALID_MESSAGE" });
  });

  it("is written as in the examples of the text", () => {
    const text = (data: Uint8Array) => Buffer.from(data).toString();
    expect(text(writeAck())).toBe('{"type":"status","data":"ack"}');
    expect(text(writeResponse("Hello, world."))).toBe('{"type":"response","data":"Hello, world."}');
  });
});

describe("an error", () => {
  const header = "rate limited";
  const body = '{"error":"rate_limited","message":"Too many concurrent requests","retry_after_s":30}';

  it("is read from headers and body, as in the example of the text", () => {
    expect(readRefusal("429", { error: header, data: bytes(body) })).toEqual({
      code: 429,
      description: "Too many concurrent requests",
      retryAfterMs: 30_000,
    });
  });

  it.each([
    ["an empty body", "", "rate limited"],
    ["a body that is no JSON", "<html>", "rate limited"],
    ["a body without a message", '{"error":"rate_limited"}', "rate limited"],
    ["a wrong time", '{"error":"rate_limited","retry_after_s":-1}', "rate limited"],
  ])("with %s has the words of the header", (_what, data, description) => {
    expect(readRefusal("429", { error: header, data: bytes(data) })).toEqual({
      ...{ code: 429, description, retryAfterMs: undefined },
    });
  });

  it("with an unreadable code counts as 500", () => {
    expect(readRefusal("often", { error: undefined, data: bytes("") }).code).toBe(500);
  });

  it("is written with seconds", () => {
    expect(JSON.parse(Buffer.from(writeRefusal("busy", "wait", 1_500)).toString())).toEqual({
      ...{ error: "busy", message: "wait", retry_after_s: 2 },
    });
  });
});

describe("names", () => {
  const agent = { agent: "pi", owner: "mario", session: "w-1", promptSubject: "agents.prompt.pi.mario.w-1" };

  it("of agents in the swarm are tokens, and each its own", () => {
    expect(agentIdFor(agent, new Set())).toBe("synadia-pi-mario-w-1");
    const other = agentIdFor(agent, new Set(["synadia-pi-mario-w-1"]));
    expect(other).toMatch(/^synadia-pi-mario-w-1-[0-9a-f]{8}$/);
    expect(agentIdFor({ ...agent, session: "a.b/c" }, new Set())).toMatch(
      /^synadia-pi-mario-a_b_c-[0-9a-f]{8}$/,
    );
    const long = agentIdFor({ ...agent, session: "s".repeat(63) }, new Set());
    expect(long).toHaveLength(64);
  });

  it("of kinds become tokens of a subject", () => {
    expect(tokenFor("Review.Code")).toBe("review-code");
    expect(tokenFor("x".repeat(100))).toHaveLength(63);
  });
});
