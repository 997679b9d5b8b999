// Random histories of slots: acquire, release, abort, time-out, death, lost messages and operators' changes, in any
// order. After every turn the invariants hold (Turns checks them): slots are conserved, held once, by the living,
// and none is idle that somebody could use. And the batches replayed give the very same state.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Command } from "../../src/core/command.ts";
import { acquisitionsOf } from "../../src/core/slot-rows.ts";
import { agentId, assignmentNumber, incarnation, resourceName, slotHandle } from "../../src/ids.ts";
import { defaultPolicy } from "../../src/scheduling/policy.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { SlotTurns } from "../support/slots.ts";
import { join } from "../support/turns.ts";

const wishes = [
  "acquire",
  "acquire",
  "acquire",
  "acquire",
  "again",
  "release",
  "release",
  "release",
  "release",
  "release",
  "lapse",
  "join",
  "join",
  "beat",
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
type Wish = typeof wish extends fc.Arbitrary<infer Of> ? Of : never;
const history = fc.array(
  fc.record({ wishes: fc.array(wish, { maxLength: 5, size: "max" }), passMs: fc.nat(60) }),
  { minLength: 1, maxLength: 25, size: "max" },
);

const sets = [["a"], ["a"], ["a"], ["b"], ["a", "b"], ["c", "a"], ["a", "a"], ["nowhere"]];

class Model {
  readonly turns = new SlotTurns();
  readonly #asked: Extract<Command, { type: "AcquireSlots" }>[] = [];
  #lives = 0;

  constructor() {
    this.turns.turn(...["a0", "a1", "a2"].map((id) => join(id, { kinds: [] })));
    for (const [resource, slots] of [
      ["a", 2],
      ["b", 1],
      ["c", 1],
    ] as const)
      this.turns.setResource(resource, { slots, maxWaiters: 6 });
    this.turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, ceiling: 1, autoTune: true } });
  }

  run({ wishes: asked, passMs }: { readonly wishes: readonly Wish[]; readonly passMs: number }): void {
    this.turns.pass(passMs);
    const commands: Command[] = [];
    const joined = new Set<string>();
    for (const each of asked) {
      const command = this.#commandOf(each);
      if (command === undefined) continue;
      // A life that was fenced does not join again, so there is one join of an agent in a turn.
      if (command.type === "JoinAgent" && joined.has(command.agent)) continue;
      if (command.type === "JoinAgent") joined.add(command.agent);
      commands.push(command);
    }
    this.turns.turn(...commands);
  }

  #commandOf({ what, agent: number, pick, detail }: Wish): Command | undefined {
    const { turns } = this;
    const agent = agentId(`a${number}`);
    const life = turns.state.agentById.get(agent)?.incarnation ?? incarnation("none");
    const of = { agent, incarnation: detail % 37 === 0 ? incarnation("other") : life };
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
            };
      }
      case "lapse":
        return { type: detail % 2 === 0 ? "LapseAgent" : "LeaveAgent", ...of };
      case "join":
        this.#lives += 1;
        return join(agent, { kinds: [], incarnation: incarnation(`${agent}-${this.#lives}`) });
      case "beat":
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
          ceiling: pick % 4,
          autoTune: detail % 3 > 0,
        } as const;
        turns.configure({ type: "PolicyChanged", policy });
        return undefined;
      }
    }
  }

  /** What it holds and waits for, less some, some of it wrongly, and something else. */
  #listed(agent: ReturnType<typeof agentId>, detail: number) {
    const listed = acquisitionsOf(this.turns.state, agent).filter((_, at) => (detail >> at) & 1);
    const isSwapped = detail % 5 === 0;
    const handles = (state: "held" | "waiting") =>
      listed.filter((slot) => (slot.state === state) !== isSwapped).map(({ handle }) => handle);
    return { held: handles("held"), waiting: [...handles("waiting"), slotHandle("never")] };
  }
}

it("slots are conserved under any interleaving, and every history replays to the same state", () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(history, (wanted) => {
      const model = new Model();
      for (const each of wanted) model.run(each);
      const { turns } = model;
      // Whoever is left lets everything go: nothing is in use, and nothing waits.
      for (const agent of turns.state.agentById.values())
        if (agent.online) turns.turn({ type: "LapseAgent", agent: agent.id, incarnation: agent.incarnation });
      for (const row of turns.state.resourceByName.values())
        expect([row.inUse, row.holdings.size, row.waiting.size]).toEqual([0, 0, 0]);
      expect(fingerprint(turns.replayed().state)).toBe(fingerprint(turns.state));
      for (const event of turns.events) {
        const what = "reason" in event ? `${event.type} ${event.reason}` : event.type;
        seen.set(what, (seen.get(what) ?? 0) + 1);
        if (event.type === "SlotGranted") seen.set(event.receipt.by, (seen.get(event.receipt.by) ?? 0) + 1);
      }
    }),
    { numRuns: 2_000 },
  );
  // The histories were worth it.
  for (const what of [
    ...["free", "load", "ceiling"],
    "ResourceRemoved",
    ...["released", "lost", "agent-gone"].map((reason) => `SlotReleased ${reason}`),
    ...["aborted", "timed-out", "lost", "agent-gone", "above-capacity"].map(
      (reason) => `SlotWaitEnded ${reason}`,
    ),
  ])
    expect(seen.get(what) ?? 0, what).toBeGreaterThan(10);
});
