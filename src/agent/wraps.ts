// `wrap`: work that runs while slots are held. The work must acquire further slots in name order after the resources of
// the `wrap`, at any depth and over any connection to the swarm. Otherwise the work could wait for itself.

import { AsyncLocalStorage } from "node:async_hooks";
import { WaggleError } from "../errors.ts";
import type { SwarmId } from "../ids.ts";
import { argument, callback, oneOrSeveral, readerOf } from "./options.ts";
import { releaseAfterError } from "./slot-refusal.ts";
import { type AcquireOptions, acquireRules, type Slot } from "./slots.ts";
import { infrastructureErrorIn } from "./wrapped-error.ts";

export interface WrapOptions extends AcquireOptions {
  /** A resource, or several, held while the function runs. */
  readonly resource: string | readonly string[];
}

/** An enclosing call of `wrap`. */
interface Around {
  /** By name: two connections cannot prove that they reach the same swarm on the same servers. */
  readonly swarm: SwarmId;
  readonly resources: readonly string[];
  readonly outer: Around | undefined;
  /** False when the `wrap` has ended; calls may outlive it. */
  isRunning: boolean;
}

/** The innermost enclosing call. One for the whole process, because a holder may use several connections. */
const enclosing = new AsyncLocalStorage<Around | undefined>();

/** Runs work while slots are held. An InfrastructureError whose `scope` is a held resource puts the resource on hold.
 *  Any other error says nothing about the resources: the slots are released as `unanswered`.
 *  @throws as `acquire`, and the error of the work */
export async function wrapWork<Result>(
  swarm: SwarmId,
  acquire: (resources: string | readonly string[], options: AcquireOptions) => Promise<Slot>,
  given: (slot: Slot) => Result | Promise<Result>,
  wrapped: WrapOptions,
): Promise<Result> {
  const work = argument(["wrap", "work"], given, callback<typeof given>());
  const { resource, ...options } = readWrapOptions("wrap", wrapped);
  await using slot = await acquire(resource, options);
  const around: Around = {
    swarm,
    resources: slot.resources,
    outer: options.holder === undefined ? enclosing.getStore() : undefined,
    isRunning: true,
  };
  try {
    return await enclosing.run(around, work, slot);
  } catch (error) {
    const refused = infrastructureErrorIn(error);
    void slot.release(releaseAfterError(refused?.hold ?? {}, refused?.message ?? "", slot.resources));
    throw error;
  } finally {
    around.isRunning = false;
  }
}

/** For the leader, nested wraps are two holders: the leader cannot know that the outer waits for the inner. Branches of
 *  one wrap may wait for each other. @throws WaggleError `WAGGLE_ACQUIRE_ORDER` */
export function checkWrapOrder(swarm: SwarmId, wanted: readonly string[]): void {
  for (let around = enclosing.getStore(); around !== undefined; around = around.outer) {
    if (!around.isRunning || around.swarm !== swarm) continue;
    const last = around.resources.at(-1);
    const early = last === undefined ? undefined : wanted.find((resource) => resource <= last);
    if (early === undefined) continue;
    const sentence =
      `${early} cannot be acquired inside a wrap that holds ${last}: the two could block each other. ` +
      "Acquire both at once, or in name order, or name a separate `holder`";
    throw new WaggleError("WAGGLE_ACQUIRE_ORDER", sentence, { field: "resources" });
  }
}

const readWrapOptions = readerOf<WrapOptions>({
  each: { ...acquireRules.each, resource: oneOrSeveral },
  required: ["resource"],
  otherwise: { ...acquireRules.otherwise, resources: "resource" },
  example: '{ resource: "gpt-4o" }',
});
