// A server that speaks the wires of OpenAI (chat completions) and Anthropic (messages), and answers as the fake
// provider plans.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type FakeProvider, type Plan, RefusedError, usage } from "./fake-provider.ts";

export interface Wire {
  /** The events of a stream of words; a name where the wire names its events. */
  readonly events: (
    words: AsyncIterable<string>,
  ) => AsyncGenerator<{ readonly name?: string; readonly data: string }>;
  /** The answer as JSON. */
  readonly answer: (text: string) => object;
}

export interface WireServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** @param provider of the present test */
export async function startWireServer(wire: Wire, provider: () => FakeProvider): Promise<WireServer> {
  const server = createServer((request, response) => {
    // After the first event has left: a client tries again when no answer came.
    serve(request, response, wire, provider()).catch(() => setTimeout(() => response.destroy(), 50));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function serve(request: IncomingMessage, response: ServerResponse, wire: Wire, provider: FakeProvider) {
  let body = "";
  for await (const part of request.setEncoding("utf8")) body += part;
  let plan: Plan;
  try {
    plan = provider.begin();
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    response.writeHead(error.status, { "content-type": "application/json", ...error.headers });
    response.end(JSON.stringify({ error: { message: error.message } }));
    return;
  }
  if (JSON.parse(body).stream !== true) {
    const answer = JSON.stringify(wire.answer(await provider.answer(plan)));
    response.writeHead(200, { "content-type": "application/json" }).end(answer);
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for await (const { name, data } of wire.events(provider.stream(plan)))
    response.write(`${name === undefined ? "" : `event: ${name}\n`}data: ${data}\n\n`);
  response.end();
}

const message = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-5",
  stop_sequence: null,
};

export const anthropicWire: Wire = {
  answer: (text) => ({
    ...message,
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens },
  }),
  events: async function* (words) {
    const of = (type: string, rest: object) => ({ name: type, data: JSON.stringify({ type, ...rest }) });
    const begun = { input_tokens: usage.inputTokens, output_tokens: 1 };
    yield of("message_start", { message: { ...message, content: [], stop_reason: null, usage: begun } });
    yield of("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    for await (const text of words)
      yield of("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
    yield of("content_block_stop", { index: 0 });
    const delta = { stop_reason: "end_turn", stop_sequence: null };
    yield of("message_delta", { delta, usage: { output_tokens: usage.outputTokens } });
    yield of("message_stop", {});
  },
};

const completion = { id: "chatcmpl-1", created: 1, model: "gpt-4o" };
const counted = {
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
};

export const openAiWire: Wire = {
  answer: (content) => ({
    ...completion,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: counted,
  }),
  events: async function* (words) {
    const of = (rest: object) => ({
      data: JSON.stringify({ ...completion, object: "chat.completion.chunk", ...rest }),
    });
    for await (const content of words)
      yield of({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
    yield of({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
    yield of({ choices: [], usage: counted });
    yield { data: "[DONE]" };
  },
};
