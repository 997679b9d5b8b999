// One prompt to a foreign agent, message by message, on a clock that the test moves: when a call ends, and when a call
// waits on. test/adapters/synadia.test.ts has the same over real servers.

import { beforeEach, describe, expect, it } from "vitest";
import type { Answer } from "../../src/adapters/nats-service/nats.ts";
import type { Query } from "../../src/adapters/synadia/messages.ts";
import { askAgent, type PromptEnd } from "../../src/adapters/synadia/prompt-call.ts";
import { UnreachableError } from "../../src/errors.ts";
import { limits } from "../../src/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";

const IDLE_MS = 60_000;

let clock: ManualClock;
let agent: Agent;
let aborting: AbortController;
let texts: string[];
let queries: Query[];
let decide: (query: Query) => Promise<string>;

beforeEach(() => {
  clock = new ManualClock();
  agent = new Agent();
  aborting = new AbortController();
  texts = [];
  queries = [];
  decide = async () => "no";
});

/** The other end of the wire. */
class Agent {
  readonly published: { readonly subject: string; readonly text: string }[] = [];
  isListening = false;
  #handler: (answer: Answer) => void = () => undefined;

  ask(_subject: string, _data: Uint8Array, handler: (answer: Answer) => void) {
    this.isListening = true;
    this.#handler = handler;
    return {
      unsubscribe: () => {
        this.isListening = false;
      },
    };
  }

  publish(subject: string, data: Uint8Array): void {
    this.published.push({ subject, text: Buffer.from(data).toString() });
  }

  says(type: string, data: unknown): void {
    this.raw(JSON.stringify({ type, data }));
  }

  raw(text: string, headers: Record<string, string> = {}, isNoResponders = false): void {
    const hasHeaders = Object.keys(headers).length > 0 || isNoResponders;
    this.#handler({ data: Buffer.from(text), hasHeaders, header: (name) => headers[name], isNoResponders });
  }

  asks(id: string): void {
    this.says("query", { id, reply_subject: `_INBOX.${id}`, prompt: "Now?" });
  }
}

function call(wire: Pick<Agent, "ask" | "publish"> = agent): { readonly ended: Promise<PromptEnd> } {
  const ended = askAgent(
    { subject: "agents.prompt.a.b.c", data: Buffer.from("hello") },
    {
      ...{ wire, clock, idleMs: IDLE_MS, signal: aborting.signal },
      onText: (text) => void texts.push(text),
      decide: (query) => {
        queries.push(query);
        return decide(query);
      },
    },
  );
  return { ended };
}

describe("a prompt ends", () => {
  it("with the whole text at the terminator, and hears nothing after", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    agent.says("response", "one ");
    agent.says("response", { text: "two", attachments: [{ filename: "a", content: "YQ==" }] });
    agent.raw("");
    expect(await ended).toEqual({
      ...{ kind: "answered", text: "one two", attachments: [{ filename: "a", content: "YQ==" }] },
    });
    expect([texts, agent.isListening]).toEqual([["one ", "two"], false]);
    agent.says("response", "three");
    expect(texts).toHaveLength(2);
  });

  it("with the error at once, in any phase", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    agent.says("response", "half");
    agent.raw('{"error":"busy","retry_after_s":2}', {
      ...{ "Nats-Service-Error-Code": "429", "Nats-Service-Error": "busy" },
    });
    expect(await ended).toEqual({
      kind: "refused",
      refusal: { code: 429, description: "busy", retryAfterMs: 2_000 },
      hasBegun: true,
    });
  });

  it.each([
    ["nothing", false, () => undefined],
    ["a question", true, () => agent.asks("q")],
    ["a part", true, () => agent.says("response", "half")],
  ])("with the error after %s, and whether the work had begun", async (_, hasBegun, begin) => {
    const { ended } = call();
    begin();
    agent.raw("", { "Nats-Service-Error-Code": "409" });
    expect(await ended).toMatchObject({ kind: "refused", hasBegun });
  });

  it("as broken when an agent at work says that nobody listens", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    agent.raw("", {}, true);
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "broken" });
  });

  it("when nobody listens", async () => {
    const { ended } = call();
    agent.raw("", {}, true);
    expect(await ended).toEqual({ kind: "no-responders" });
  });

  it.each([
    [false, () => undefined],
    [true, () => agent.says("status", "ack")],
  ])("after a silence of the idle limit (acknowledged: %s)", async (isAcknowledged, begin) => {
    const { ended } = call();
    begin();
    await clock.advance(IDLE_MS);
    expect(await ended).toEqual({ kind: "silent", isAcknowledged });
    expect(agent.isListening).toBe(false);
  });

  it("as broken after faults, but not before the terminator: the agent is at work until then", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    agent.raw("no chunk");
    expect(agent.isListening).toBe(true);
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "broken", why: expect.stringContaining("no chunk") });
  });

  it("as broken without an ack", async () => {
    const { ended } = call();
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "broken" });
  });

  it("as broken beyond the maximum, and keeps nothing more", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    for (let bytes = 0; bytes <= limits.payloadBytesMax; bytes += 65_536)
      agent.says("response", "x".repeat(65_536));
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "broken", why: expect.stringContaining("256 KiB") });
  });
});

describe("a prompt waits on", () => {
  it("with any message, also of a later version", async () => {
    const { ended } = call();
    for (let nth = 0; nth < 5; nth += 1) {
      await clock.advance(IDLE_MS - 1);
      agent.says("noise", nth);
    }
    agent.says("status", "ack");
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "answered" });
  });

  it("while a question is open, however long the decision takes", async () => {
    let answer: (text: string) => void = () => undefined;
    decide = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const { ended } = call();
    agent.says("status", "ack");
    agent.asks("q1");
    await clock.advance(10 * IDLE_MS);
    answer("yes");
    await clock.settle();
    expect(agent.published).toEqual([{ subject: "_INBOX.q1", text: "yes" }]);
    await clock.advance(IDLE_MS);
    expect(await ended).toEqual({ kind: "silent", isAcknowledged: true });
  });
});

describe("questions", () => {
  it("are answered once each, and only so many", async () => {
    const { ended } = call();
    agent.asks("q");
    agent.asks("q");
    for (let nth = 0; nth < 2 * limits.promptQueriesMax; nth += 1) agent.asks(`q${nth}`);
    await clock.settle();
    expect([queries.length, agent.published.length]).toEqual([
      limits.promptQueriesMax,
      limits.promptQueriesMax,
    ]);
    agent.says("status", "ack");
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "answered" });
  });

  it("are not answered after the end", async () => {
    let answer: (text: string) => void = () => undefined;
    decide = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const { ended } = call();
    agent.says("status", "ack");
    agent.asks("q1");
    agent.raw("");
    await ended;
    answer("yes");
    await clock.settle();
    expect(agent.published).toEqual([]);
  });

  it("to a subject that is no inbox break the protocol", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    agent.says("query", { id: "q", reply_subject: "waggle.v1.default.journal.1", prompt: "Now?" });
    agent.raw("");
    expect(await ended).toMatchObject({ kind: "broken" });
    expect([queries, agent.published]).toEqual([[], []]);
  });
});

describe("an aborted prompt", () => {
  it("waits for the end of the answer, because the agent goes on, and passes on nothing more", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    aborting.abort();
    agent.says("response", "late");
    await clock.settle();
    expect([agent.isListening, texts]).toEqual([true, []]);
    agent.raw("");
    expect(await ended).toEqual({ kind: "aborted" });
  });

  it("waits no longer than the idle limit, however busy the agent is", async () => {
    const { ended } = call();
    agent.says("status", "ack");
    aborting.abort();
    for (let nth = 0; nth < 6; nth += 1) {
      await clock.advance(IDLE_MS / 6);
      agent.says("response", "on and on");
    }
    expect(await ended).toEqual({ kind: "aborted" });
    expect(agent.isListening).toBe(false);
  });

  it("is not sent when the abort came first", async () => {
    aborting.abort();
    expect(await call().ended).toEqual({ kind: "aborted" });
    expect(agent.isListening).toBe(false);
  });
});

it("a request that cannot be sent is the caller's error, and leaves nothing behind", async () => {
  const wire = {
    ask: () => {
      throw new UnreachableError("the connection to the server is interrupted");
    },
    publish: () => undefined,
  };
  await expect(call(wire).ended).rejects.toThrow("interrupted");
  await clock.advance(10 * IDLE_MS);
});
