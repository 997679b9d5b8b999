// `waggledance/openai`: OpenAI's SDK, and clients of servers that speak its protocol. Each HTTP attempt of a call holds
// a slot, released before the back-off.
//
//   const client = new OpenAI({ fetch: swarmFetch(swarm) });

import type { Swarm } from "../client/swarm.ts";
import type { CallOptions } from "./call-options.ts";
import { callIn, sendHeld } from "./http-calls.ts";
import { ModelCalls } from "./lease.ts";

type Fetch = typeof globalThis.fetch;

export interface FetchOptions extends CallOptions {
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch;
}

/** Paths of requests that a model answers. */
const answered = /\/(chat\/completions|completions|responses|embeddings)$/;

/** A `fetch` for `new OpenAI({ fetch })`. Requests that no model answers pass without a slot.
 *  @throws InvalidValueError naming the option. Calls reject as `Swarm.acquire` does, and inside a handler with
 *    InfrastructureError after a 429, as the cause of the client's own error */
export function swarmFetch(swarm: Swarm, { fetch: given, ...options }: FetchOptions = {}): Fetch {
  const calls = new ModelCalls("swarmFetch", swarm, options);
  const fetch = given ?? globalThis.fetch;
  return async (input, init = {}) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    const call = answered.test(pathname) ? callIn(init.body) : undefined;
    if (call === undefined) return await fetch(input, init);
    const send = async (signal: AbortSignal) => await fetch(input, { ...init, signal });
    return await sendHeld(calls, { ...call, signal: init.signal }, send);
  };
}
