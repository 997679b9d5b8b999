// Random histories of slots: acquire, touch, release, abort, time-out, idle time, death, lost messages and operators'
// changes. Some requests reserve tokens of a project or of the swarm.

import fc from "fast-check";
import type { Command } from "../../src/core/command.ts";
import {
  agentId,
  assignmentNumber,
  incarnation,
  projectId,
  type ResourceName,
  resourceName,
  slotHandle,
  userId,
} from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { defaultPolicy } from "../../src/state/policy.ts";
import { slotLeasesOf } from "../../src/state/slot-rows.ts";
import { defaultProjectSettings } from "../../src/state/state.ts";
import { SlotTurns } from "./slots.ts";
import { join } from "./turns.ts";

const wishes = [
  "acquire",
  "acquire",
  "acquire",
  "acquire",
  "again",
  "touch",
  "touch",
  "release",
  "release",
  "release",
  "release",
  "release",
  "lapse",
  "join",
  "join",
  "heartbeat",
  "mark",
  "resize",
  "remove",
  "policy",
] as const;

const wish = fc.record({
  what: fc.constantFrom(...wishes),
  agent: fc.nat(3),
  pick: fc.nat(63),
  detail: fc.nat(255),
});
export type SlotWish = typeof wish extends fc.Arbitrary<infer Of> ? Of : never;
export const slotHistory = fc.array(
  fc.record({ wishes: fc.array(wish, { maxLength: 5, size: "max" }), passMs: fc.nat(120) }),
  { minLength: 1, maxLength: 25, size: "max" },
);

const sets = [["a"], ["a"], ["a"], ["b"], ["a", "b"], ["c", "a"], ["a", "a"], ["nowhere"]];

/** Tokens, project, queue and idle time of a request, in half of the requests. */
function purposeOf(pick: number, detail: number) {
  if (detail % 2 === 0) return {};
  return {
    ...(pick % 4 === 0 ? {} : { tokens: 40 * (1 + (detail % 10)) }),
    ...(pick % 3 === 0 ? {} : { project: projectId(pick % 3 === 1 ? "p" : "q"), user: userId("ann") }),
    ...(pick % 5 === 0 ? { as: `queue-${detail % 3}`, label: "report" } : {}),
    ...(pick % 2 === 0 ? { idleTimeoutMs: 20 + detail } : {}),
  };
}

/** With and without a time, of one resource or of all. */
function refusalOf(resources: readonly ResourceName[], detail: number) {
  const [resource] = resources;
  return {
    ...(detail % 8 === 0 ? { forMs: detail } : {}),
    ...(detail % 5 === 0 && resource !== undefined ? { resource } : {}),
    ...(detail % 3 === 0 ? { reason: "429" } : {}),
  };
}

export class SlotModel {
  readonly turns = new SlotTurns();
  readonly #asked: Extract<Command, { type: "AcquireSlots" }>[] = [];
  #sessions = 0;

  constructor() {
    this.turns.turn(...["a0", "a1", "a2"].map((id) => join(id, { kinds: [] })));
    for (const [resource, slots] of [
      ["a", 2],
      ["b", 1],
      ["c", 1],
    ] as const)
      this.turns.setResource(resource, { slots, maxWaiters: 6 });
    this.turns.configure({
      type: "PolicyChanged",
      policy: { ...defaultPolicy, starvationLimit: 1, autoTune: true },
    });
    this.turns.configure({
      type: "ProjectConfigured",
      project: projectId("p"),
      settings: {
        ...defaultProjectSettings,
        budget: { tokens: 400, windowMs: 1_000, mode: "wait" },
      },
    });
    this.turns.configure({
      type: "RateConfigured",
      agentType: "b",
      settings: { window: "per_minute", tokensMax: 1_500, sliding: true },
    });
  }

  run({ wishes: asked, passMs }: { readonly wishes: readonly SlotWish[]; readonly passMs: number }): void {
    // A heartbeat ends requests of some age alone.
    const isOld = asked.some(({ what, detail }) => what === "heartbeat" && detail % 2 === 0);
    this.turns.pass(isOld ? limits.slotUnlistedMs : passMs);
    const commands: Command[] = [];
    const joined = new Set<string>();
    for (const each of asked) {
      const command = this.#commandOf(each);
      if (command === undefined) continue;
      // A fenced session does not join again, so an agent joins at most once per turn.
      if (command.type === "JoinAgent" && joined.has(command.agent)) continue;
      if (command.type === "JoinAgent") joined.add(command.agent);
      commands.push(command);
    }
    this.turns.turn(...commands);
  }

  #commandOf({ what, agent: number, pick, detail }: SlotWish): Command | undefined {
    const { turns } = this;
    const agent = agentId(`a${number}`);
    const session = turns.state.agentById.get(agent)?.incarnation ?? incarnation("none");
    const of = { agent, incarnation: detail % 37 === 0 ? incarnation("other") : session };
    switch (what) {
      case "acquire": {
        const command = {
          type: "AcquireSlots",
          ...of,
          handle: slotHandle(`h${this.#asked.length}`),
          resources: (sets[pick % sets.length] ?? []).map(resourceName),
          weightThousandths: 1_000 + detail,
          ...(detail % 3 === 0 ? { holder: `line-${detail % 2}` } : {}),
          ...(detail % 4 === 0 ? { timeoutMs: detail } : {}),
          ...purposeOf(pick, detail),
        } as const;
        this.#asked.push(command);
        return command;
      }
      case "again":
        return this.#asked[pick % Math.max(1, this.#asked.length)];
      case "release": {
        const asked = this.#asked.at(-1 - (pick % 8));
        return asked === undefined
          ? undefined
          : {
              type: "ReleaseSlots",
              agent: asked.agent,
              incarnation: asked.incarnation,
              handle: asked.handle,
              ...(detail % 3 === 0 ? { usage: { tokens: detail * 2 } } : {}),
              ...(detail % 4 === 0 ? { refusal: refusalOf(asked.resources, detail) } : {}),
              ...(detail % 6 === 1 ? { unanswered: true } : {}),
            };
      }
      case "touch": {
        const { agent: of, incarnation: session, handle } = this.#asked.at(-1 - (pick % 8)) ?? {};
        if (of === undefined || session === undefined || handle === undefined) return undefined;
        return { type: "TouchSlots", agent: of, incarnation: session, handle };
      }
      case "lapse":
        return { type: detail % 2 === 0 ? "LapseAgent" : "LeaveAgent", ...of };
      case "join":
        this.#sessions += 1;
        return join(agent, { kinds: [], incarnation: incarnation(`${agent}-${this.#sessions}`) });
      case "heartbeat":
        return {
          type: "ReconcileAgent",
          ...of,
          held: [],
          seen: assignmentNumber(0),
          slots: this.#listed(agent, detail),
        };
      case "mark":
        return { type: "MarkUnresponsive", ...of };
      case "resize": {
        const patch = { slots: 1 + (detail % 4), maxWaiters: 1 + (pick % 8) };
        return { type: "SetResource", resource: resourceName("a"), patch };
      }
      case "remove": {
        const resource = resourceName(detail % 2 === 0 ? "b" : "c");
        const isThere = turns.state.resourceByName.has(resource);
        return isThere
          ? { type: "RemoveResource", resource }
          : { type: "SetResource", resource, patch: { slots: 1, maxWaiters: 6 } };
      }
      case "policy": {
        const rules = detail % 2 === 0 ? "waggle" : "loco";
        const policy = {
          ...defaultPolicy,
          rules,
          starvationLimit: pick % 4,
          autoTune: detail % 3 > 0,
          resources: pick % 7 === 0 ? "open" : "declared",
          ...(detail % 5 === 0
            ? { budget: { tokens: 100 + detail, windowMs: 1_000, mode: "wait" as const } }
            : {}),
        } as const;
        turns.configure({ type: "PolicyChanged", policy });
        return undefined;
      }
    }
  }

  /** The agent's held and waiting handles, with some missing, wrong or added. */
  #listed(agent: ReturnType<typeof agentId>, detail: number) {
    const listed = slotLeasesOf(this.turns.state, agent).filter((_, at) => (detail >> at) & 1);
    const isSwapped = detail % 5 === 0;
    const handles = (state: "held" | "waiting") =>
      listed.filter((slot) => (slot.state === state) !== isSwapped).map(({ handle }) => handle);
    return { held: handles("held"), waiting: [...handles("waiting"), slotHandle("never")] };
  }
}
