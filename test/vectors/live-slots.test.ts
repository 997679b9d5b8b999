// The live slots against LOCO's contention vectors: the transcripts, played as commands of agents, are granted as the
// transcripts say. In them every task is submitted right before its slot is acquired, as in production.

import { describe, expect, it } from "vitest";
import { agentId, slotHandle } from "../../src/ids.ts";
import { defaultPolicy } from "../../src/state/policy.ts";
import type { ContentionOp, ContentionVector } from "../support/contention-vector.ts";
import { acquire, release, SlotTurns } from "../support/slots.ts";
import { readVectors } from "../support/vectors.ts";

/** The transcript with the live slots' results in place of the expected results. */
function played(
  { capacity, alpha, agents, ops }: ContentionVector,
  rules: "waggle" | "loco",
): ContentionOp[] {
  const turns = SlotTurns.of({ r: capacity }, ...agents);
  turns.configure({ type: "PolicyChanged", policy: { ...defaultPolicy, rules, alpha } });
  let weight = 1;
  return ops.map((op, at) => {
    if (op.op === "submit") {
      weight = op.weight;
      return op;
    }
    if (op.op === "acquire") {
      const [reply] = turns.turn(acquire(`${op.agent}-${at}`, "r", { weightThousandths: weight * 1_000 }));
      return { ...op, granted: reply?.kind === "slot-granted" };
    }
    const held = turns.holders("r").find((handle) => handle.startsWith(`${op.agent}-`));
    const grants = turns.all("SlotGranted").length;
    turns.turn(release(held ?? `${op.agent}-none`));
    const granted = turns.all("SlotGranted")[grants];
    return { ...op, tick: turns.resource("r").tick, granted: granted?.agent ?? null };
  });
}

describe.each(["waggle", "loco"] as const)("live slots under the rules %s", (rules) => {
  const vectors = readVectors<ContentionVector>("contention.jsonl");

  it("have vectors to check, with a slot lease right after each submission", () => {
    expect(vectors.some(({ ops }) => ops.some((op) => op.op === "release" && op.granted !== null))).toBe(
      true,
    );
    for (const { ops } of vectors)
      for (const [at, op] of ops.entries())
        if (op.op === "submit") expect(ops[at + 1]).toMatchObject({ op: "acquire", agent: op.agent });
  });

  it.each(vectors.map((vector, at) => [at, vector] as const))("transcript %i", (_, vector) => {
    expect(played(vector, rules)).toEqual(vector.ops);
  });
});

it("an agent's waiters are granted in order of asking", () => {
  const turns = SlotTurns.of({ r: 1 }, "a1", "a2");
  turns.turn(acquire("a1-0", "r"), acquire("a2-1", "r"), acquire("a2-2", "r", { weightThousandths: 9_000 }));
  turns.turn(release("a1-0"));
  expect(turns.last("SlotGranted")).toMatchObject({ agent: agentId("a2"), handle: slotHandle("a2-1") });
});
