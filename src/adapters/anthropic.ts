// `waggledance/anthropic`: Anthropic's SDK. Each HTTP attempt of a message holds a slot, released before the back-off.
//
//   const client = new Anthropic({ middleware: [swarmMiddleware(swarm)] });

import type { Swarm } from "../client/swarm.ts";
import type { CallOptions } from "./call-options.ts";
import { callIn, sendHeld } from "./http-calls.ts";
import { ModelCalls } from "./model-calls.ts";

/** What is used of an `APIRequest`. */
interface HttpRequest {
  readonly url: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal | null;
}

/** Fits `Middleware`. */
export type SwarmMiddleware = <Request extends HttpRequest>(
  request: Request,
  next: (request: Request) => Promise<Response>,
  context: { readonly options?: unknown },
) => Promise<Response>;

/** A middleware for `new Anthropic({ middleware })`. Requests other than `POST /v1/messages` pass without a slot.
 *  @throws InvalidValueError naming the option. Calls reject as `Swarm.acquire` does, and inside a handler with
 *    InfrastructureError after a refusal */
export function swarmMiddleware(swarm: Swarm, options?: CallOptions): SwarmMiddleware {
  const calls = new ModelCalls("swarmMiddleware", swarm, options);
  return async (request, next, context) => {
    // Requests for credentials have no options.
    const isMessage = context.options !== undefined && new URL(request.url).pathname.endsWith("/v1/messages");
    const call = isMessage ? callIn(request.body) : undefined;
    if (call === undefined) return await next(request);
    return await sendHeld(calls, { ...call, signal: request.signal }, (signal) =>
      next({ ...request, signal }),
    );
  };
}
