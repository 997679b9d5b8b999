// Words for stories about slots: resources, slot leases and releases on the core run turn by turn.

import type { CommandOf } from "../../src/core/command.ts";
import { agentId, incarnation, resourceName, slotHandle } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import type { ResourceSettings } from "../../src/state/settings.ts";
import type { ResourceRow } from "../../src/state/state.ts";
import { join, Turns } from "./turns.ts";

/** Handles are named after their agents: `a1-x` is asked for by `a1`. */
export function acquire(
  handle: string,
  resources: string | readonly string[],
  overrides: Partial<CommandOf<"AcquireSlots">> = {},
): CommandOf<"AcquireSlots"> {
  return {
    type: "AcquireSlots",
    ...sessionOf(handle),
    handle: slotHandle(handle),
    resources: [resources].flat().map(resourceName),
    weightThousandths: 1_000,
    ...overrides,
  };
}

export function release(
  handle: string,
  refusal?: CommandOf<"ReleaseSlots">["refusal"],
): CommandOf<"ReleaseSlots"> {
  return {
    type: "ReleaseSlots",
    ...sessionOf(handle),
    handle: slotHandle(handle),
    ...(refusal === undefined ? {} : { refusal }),
  };
}

export function touch(handle: string): CommandOf<"TouchSlots"> {
  return { type: "TouchSlots", ...sessionOf(handle), handle: slotHandle(handle) };
}

export function lapse(agent: string): CommandOf<"LapseAgent"> {
  return { type: "LapseAgent", agent: agentId(agent), incarnation: incarnation(`${agent}-1`) };
}

function sessionOf(handle: string) {
  const [agent = ""] = handle.split("-");
  return { agent: agentId(agent), incarnation: incarnation(`${agent}-1`) };
}

export class SlotTurns extends Turns {
  /** @param slots by resource @param agents that join, without kinds */
  static of(slots: Readonly<Record<string, number>>, ...agents: readonly string[]): SlotTurns {
    const turns = new SlotTurns();
    for (const [resource, count] of Object.entries(slots)) turns.setResource(resource, { slots: count });
    if (agents.length > 0) turns.turn(...agents.map((id) => join(id, { kinds: [] })));
    return turns;
  }

  setResource(resource: string, settings: Partial<ResourceSettings>): void {
    const known = this.state.resourceByName.get(resourceName(resource))?.settings;
    this.configure({
      type: "ResourceConfigured",
      resource: resourceName(resource),
      settings: { slots: 1, maxWaiters: limits.waitersPerResourceMax, ...known, ...settings },
    });
  }

  resource(name: string): ResourceRow {
    const row = this.state.resourceByName.get(resourceName(name));
    if (row === undefined) throw new Error(`no resource ${name}`);
    return row;
  }

  /** Handles that hold a slot of the resource, in order of granting. */
  holders(resource: string): string[] {
    return [...this.resource(resource).holdings.values()].map(({ handle }) => handle);
  }

  /** Handles that wait for the resource, in order of asking. */
  waiters(resource: string): string[] {
    return [...this.resource(resource).waiting.values()].map(({ handle }) => handle);
  }
}
