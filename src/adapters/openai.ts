// `waggledance/openai`: OpenAI's SDK, and clients of servers that speak its protocol. Each HTTP attempt of a call holds
// a slot, released before the back-off.
//
//   const client = new OpenAI({ fetch: swarmFetch(swarm) });

import { argument, callback } from "../agent/options.ts";
import type { Swarm } from "../client/swarm.ts";
import { InvalidValueError, WaggleError, type WaggleErrorCode } from "../errors.ts";
import { type CallOptions, withoutOwn } from "./call-options.ts";
import { callIn, sendHeld } from "./http-calls.ts";
import { ModelCalls } from "./model-calls.ts";

type Fetch = typeof globalThis.fetch;

export interface FetchOptions extends CallOptions {
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: Fetch;
}

/** Paths of requests that a model answers. */
const answered = /\/(chat\/completions|completions|responses|embeddings)$/;

/** Errors that may pass: the client tries such a request again. */
const passing: ReadonlySet<WaggleErrorCode> = new Set([
  "WAGGLE_BACKPRESSURE",
  "WAGGLE_NO_LEADER",
  "WAGGLE_OUTCOME_UNKNOWN",
  "WAGGLE_SLOT_LOST",
  "WAGGLE_UNREACHABLE",
]);

/** A `fetch` for `new OpenAI({ fetch })`. Requests that no model answers pass without a slot.
 *
 *  An error of `Swarm.acquire` that stays, such as an unknown resource, is the client's error of a bad request, with
 *  our `code` and message. Others are tried again, and are then the `cause` of the client's error; so is the
 *  InfrastructureError inside a handler after a refusal.
 *  @throws InvalidValueError naming the option */
export function swarmFetch(swarm: Swarm, options?: FetchOptions): Fetch {
  const { own, rest } = withoutOwn(options, "fetch");
  const calls = new ModelCalls("swarmFetch", swarm, rest);
  const fetch = argument(
    ["swarmFetch", "fetch"],
    own ?? globalThis.fetch,
    callback<Fetch>(),
    InvalidValueError,
  );
  return async (input, init = {}) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    const call = answered.test(pathname) ? callIn(init.body ?? (await textOf(input))) : undefined;
    if (call === undefined) return await fetch(input, init);
    const ownSignal = init.signal ?? (input instanceof Request ? input.signal : undefined);
    const send = async (signal: AbortSignal) => await fetch(input, { ...init, signal });
    try {
      return await sendHeld(calls, { ...call, signal: ownSignal }, send);
    } catch (error) {
      if (!(error instanceof WaggleError) || passing.has(error.code)) throw error;
      return badRequest(error);
    }
  };
}

/** The body of a request that stays readable. */
async function textOf(input: Parameters<Fetch>[0]): Promise<string | undefined> {
  return input instanceof Request ? await input.clone().text() : undefined;
}

/** The client takes an error of its `fetch` for a broken connection: it would try again, and hide the message. */
function badRequest({ code, message, field }: WaggleError): Response {
  const error = { type: "waggle", code, message, param: field };
  return Response.json({ error }, { status: 400, headers: { "x-should-retry": "false" } });
}
