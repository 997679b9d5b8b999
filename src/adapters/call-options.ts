// The options of every adapter: which slot a model's call holds, for what, and how long the call may wait.

import * as z from "zod";
import { argument, having, judged, readerOf } from "../agent/options.ts";
import { type AcquireOptions, acquireRules } from "../agent/slots.ts";
import type { Swarm } from "../client/swarm.ts";
import { InvalidValueError } from "../errors.ts";
import type { ModelTiers } from "../state/weight.ts";

export interface CallOptions
  extends Pick<
    AcquireOptions,
    "tokens" | "project" | "user" | "label" | "as" | "timeoutMs" | "idleTimeoutMs"
  > {
  /** The resource whose slot a call holds, or a function that returns it. Default: the model's id. */
  readonly resource?: string | ((model: string) => string);
  /** Weights of models with a short prompt, instead of LOCO's tiers: `{ "my-model": 4 }`. */
  readonly tiers?: ModelTiers;
}

const { each } = acquireRules;

const resource = judged<NonNullable<CallOptions["resource"]>>((input) =>
  typeof input === "function" || (typeof input === "string" && input !== "")
    ? undefined
    : 'must be the name of a resource, or a function such as (model) => "gpt"',
);

const readOptions = readerOf<CallOptions>(
  {
    each: {
      tokens: each.tokens,
      project: each.project,
      user: each.user,
      label: each.label,
      as: each.as,
      timeoutMs: each.timeoutMs,
      idleTimeoutMs: each.idleTimeoutMs,
      resource,
      tiers: z.record(z.string(), z.number().min(1)),
    },
    otherwise: { resources: "resource", weight: "tiers", timeout: "timeoutMs", agent: "as" },
    example: '{ resource: "gpt-4o" }',
  },
  InvalidValueError,
);

/** @throws InvalidValueError naming the option */
export function readCallOptions(adapter: string, options: unknown): CallOptions {
  return readOptions(adapter, options);
}

/** An adapter's own option, apart from those of every adapter. What is no object is left as it is, to be refused. */
export function withoutOwn<Options extends object, Name extends keyof Options>(
  options: Options | undefined,
  name: Name,
): { readonly own: Options[Name] | undefined; readonly rest: Omit<Options, Name> | undefined } {
  if (typeof options !== "object" || options === null) return { own: undefined, rest: options };
  const { [name]: own, ...rest } = options;
  return { own, rest };
}

const swarm = having<Swarm>("a swarm, as `await connect()` returns it", "acquire", "currentAttempt");

/** @throws InvalidValueError unless it is a swarm */
export function readSwarm(adapter: string, given: unknown): Swarm {
  return argument([adapter, "swarm"], given, swarm, InvalidValueError);
}
