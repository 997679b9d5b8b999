// Tokens and idle times of slot leases, decision by decision: reserved, waited for, settled, charged late.

import { describe, expect, it } from "vitest";
import { incarnation, projectId, slotHandle, taskId, term } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { Wake } from "../../src/scheduling/wake.ts";
import { acquire, lapse, release, SlotTurns, touch } from "../support/slots.ts";
import { join, submit } from "../support/turns.ts";

const acme = projectId("acme");
const kindsOf = (replies: readonly { readonly kind: string }[]) => replies.map(({ kind }) => kind);

/** Two agents, resources with slots to spare, and a budget of 1,000 tokens in 60 s. */
function budgeted(mode: "wait" | "reject" | "alert" | "downgrade" = "wait"): SlotTurns {
  const turns = SlotTurns.of({ gpu: 9, tpu: 9 }, "a1", "a2");
  turns.turn({
    type: "SetProject",
    project: acme,
    patch: { budget: { tokens: 1_000, windowMs: 60_000, mode } },
  });
  return turns;
}
const ledgerOf = ({ state }: SlotTurns) => {
  const { ledger } = state.projectById.get(acme) ?? {};
  return { reserved: ledger?.reserved, spent: ledger?.spent?.held, swarm: state.ledger.reserved };
};
const used = (handle: string, tokens: number) => ({ ...release(handle), usage: { tokens } });

describe("tokens of slots", () => {
  it("are reserved from the grant on, of the project and of the swarm", () => {
    const turns = budgeted();
    turns.turn(acquire("a1-x", "gpu", { tokens: 700, project: acme }), acquire("a1-y", "gpu", { tokens: 5 }));
    expect(ledgerOf(turns)).toEqual({ reserved: 700, spent: 0, swarm: 705 });
    turns.turn(used("a1-x", 40), release("a1-y"));
    expect(ledgerOf(turns)).toEqual({ reserved: 0, spent: 40, swarm: 0 });
    expect(turns.state.ledger.usage.held).toBe(45);
  });

  it("wait beside free slots, and are granted in the turn that makes room", () => {
    const turns = budgeted();
    const terms = { tokens: 600, project: acme };
    turns.turn(acquire("a1-x", "gpu", terms), acquire("a2-x", "tpu", terms));
    expect(turns.waiters("tpu")).toEqual(["a2-x"]);
    turns.turn(used("a1-x", 400));
    expect(turns.holders("tpu")).toEqual(["a2-x"]);
    expect(ledgerOf(turns)).toMatchObject({ reserved: 600, spent: 400 });
  });

  it("wait for the end of a task, which is no event about slots", () => {
    const turns = budgeted();
    turns.turn(join("worker"), submit({ id: taskId("t1"), project: acme, tokens: 900 }));
    turns.turn(acquire("a1-x", "gpu", { tokens: 200, project: acme }));
    expect(turns.waiters("gpu")).toEqual(["a1-x"]);
    turns.turn(turns.report("t1", { kind: "completed", result: "", tokens: 10 }));
    expect(turns.holders("gpu")).toEqual(["a1-x"]);
  });

  it("wait for the window to move on: the shell is woken, and a turn without commands grants", () => {
    const turns = budgeted();
    turns.turn(acquire("a1-x", "gpu", { tokens: 900, project: acme }));
    turns.turn(release("a1-x"), acquire("a2-x", "gpu", { tokens: 200, project: acme }));
    const at = new Wake(turns.state).nextAt(turns.at) ?? 0;
    expect(at).toBeGreaterThan(turns.at);
    turns.pass(at - turns.at);
    turns.turn();
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
  });

  it("in small requests pass large requests, until a large request is past the starvation limit", () => {
    const turns = budgeted();
    turns.turn({ type: "SetPolicy", patch: { starvationLimit: 1 } });
    const small = { tokens: 200, project: acme };
    turns.turn(acquire("a1-1", "gpu", { tokens: 900, project: acme }));
    turns.turn(acquire("a2-big", "gpu", { tokens: 800, project: acme }));
    turns.turn(used("a1-1", 300));
    turns.turn(acquire("a1-2", "gpu", small));
    expect(turns.holders("gpu")).toEqual(["a1-2"]);
    turns.turn(used("a1-2", 1));
    for (const handle of ["a1-6", "a1-7"]) turns.turn(acquire(handle, "gpu"), release(handle));
    turns.turn(acquire("a1-3", "gpu", small)); // the waiter is older than the limit now
    expect(turns.waiters("gpu")).toEqual(["a2-big", "a1-3"]);
    turns.turn(acquire("a1-4", "gpu"), acquire("a1-5", "gpu", { tokens: 50, project: projectId("other") }));
    expect(turns.holders("gpu")).toEqual(["a1-4", "a1-5"]);
    turns.pass(61_500);
    turns.turn();
    expect(turns.holders("gpu")).toEqual(["a1-4", "a1-5", "a2-big", "a1-3"]);
  });

  it.each(["alert", "downgrade"] as const)("exceed a budget in mode %s, which records the excess", (mode) => {
    const turns = budgeted(mode);
    expect(kindsOf(turns.turn(acquire("a1-x", "gpu", { tokens: 1_200, project: acme })))).toEqual([
      "slot-granted",
    ]);
    expect(turns.all("BudgetExceeded")).toMatchObject([{ project: "acme", reserved: 1_200 }]);
  });

  it("above what a hard budget ever holds are refused at once", () => {
    const turns = budgeted("reject");
    turns.turn(acquire("a1-x", "gpu", { tokens: 900, project: acme }));
    expect(
      turns.turn(
        acquire("a1-y", "gpu", { tokens: 1_001, project: acme }),
        acquire("a1-z", "gpu", { tokens: 101, project: acme }),
      ),
    ).toMatchObject([
      { kind: "over-budget", reason: "project-budget", tokensMax: 1_000 },
      { kind: "budget-exceeded", reserved: 900, tokens: 101, isHeld: true },
    ]);
    expect(turns.state.slotLeases).toBe(1);
  });

  it("count in the rates of the agent's type and of types named as the resources", () => {
    const turns = budgeted();
    turns.turn(
      join("a3", { kinds: [], agentType: "claude" }),
      { type: "SetRate", agentType: "claude", patch: { window: "per_minute", tokensMax: 100 } },
      { type: "SetRate", agentType: "tpu", patch: { window: "per_minute", tokensMax: 300 } },
    );
    turns.turn(acquire("a3-x", "gpu", { tokens: 100 }), acquire("a3-y", "tpu", { tokens: 1 }));
    expect(turns.waiters("tpu")).toEqual(["a3-y"]);
    expect([...turns.state.reservedByType]).toEqual([
      ["gpu", 100],
      ["claude", 100],
    ]);
    turns.turn({ type: "SetRate", agentType: "claude", patch: { window: "per_minute", tokensMax: 500 } });
    expect(turns.holders("tpu")).toEqual(["a3-y"]);
    turns.turn(acquire("a1-x", "tpu", { tokens: 299 }), acquire("a1-y", "tpu", { tokens: 1 }));
    expect(turns.waiters("tpu")).toEqual(["a1-y"]);
    expect(kindsOf(turns.turn(acquire("a1-z", "tpu")))).toEqual(["slot-granted"]); // without tokens: no rate
  });

  it("wait until they fit the rate, and are refused above the rate", () => {
    const turns = SlotTurns.of({ gpu: 5 }, "a1");
    turns.turn({ type: "SetRate", agentType: "gpu", patch: { window: "per_minute", tokensMax: 1_000 } });
    turns.turn(acquire("a1-x", "gpu", { tokens: 900 }), acquire("a1-y", "gpu", { tokens: 900 }));
    turns.turn(acquire("a1-z", "gpu", { tokens: 100 }));
    expect([turns.holders("gpu"), turns.waiters("gpu")]).toEqual([["a1-x", "a1-z"], ["a1-y"]]);
    expect(turns.turn(acquire("a1-w", "gpu", { tokens: 1_001 }))).toMatchObject([
      { kind: "over-rate", agentType: "gpu", window: "per_minute", tokens: 1_001, tokensMax: 1_000 },
    ]);
    turns.turn(used("a1-x", 800), release("a1-z"));
    expect(turns.holders("gpu")).toEqual([]);
    for (const usedAt = turns.at; turns.holders("gpu").length === 0; turns.turn()) {
      turns.pass((new Wake(turns.state).nextAt(turns.at) ?? 0) - turns.at);
      expect(turns.at).toBeLessThan(usedAt + 63_000);
    }
    expect(turns.holders("gpu")).toEqual(["a1-y"]);
  });

  it("past the starvation limit keep the rate from requests that need less", () => {
    const turns = SlotTurns.of({ gpu: 9 }, "a1", "a2");
    turns.turn({ type: "SetPolicy", patch: { starvationLimit: 1 } });
    turns.turn({ type: "SetRate", agentType: "gpu", patch: { window: "per_minute", tokensMax: 1_000 } });
    turns.turn(acquire("a1-x", "gpu", { tokens: 900 }), acquire("a2-big", "gpu", { tokens: 800 }));
    for (const handle of ["a1-5", "a1-6", "a1-7"]) turns.turn(acquire(handle, "gpu"), release(handle));
    turns.turn(acquire("a1-small", "gpu", { tokens: 1 }));
    expect(turns.waiters("gpu")).toEqual(["a2-big", "a1-small"]);
    // Above a lowered rate the request would never be granted, and keeps nothing.
    turns.turn({ type: "SetRate", agentType: "gpu", patch: { window: "per_minute", tokensMax: 950 } });
    turns.turn(used("a1-x", 0));
    expect(turns.holders("gpu")).toEqual(["a2-big", "a1-small"]);
    turns.turn(acquire("a2-large", "gpu", { tokens: 900 }));
    turns.turn({ type: "SetRate", agentType: "gpu", patch: { window: "per_minute", tokensMax: 850 } });
    for (const handle of ["a1-8", "a1-9", "a1-10"]) turns.turn(acquire(handle, "gpu"), release(handle));
    turns.turn(acquire("a1-last", "gpu", { tokens: 1 }));
    expect(turns.waiters("gpu")).toEqual(["a2-large"]);
  });

  it("keep their project's row, which no newcomer evicts", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1");
    turns.turn(acquire("a1-x", "gpu", { tokens: 1, project: projectId("short") }));
    expect(turns.state.idleProjects.has(projectId("short"))).toBe(false);
    turns.turn(release("a1-x"));
    expect(turns.state.idleProjects.has(projectId("short"))).toBe(true);
  });

  it("are refused for a project that is not declared", () => {
    const turns = budgeted();
    turns.turn({ type: "SetPolicy", patch: { projects: "declared" } });
    expect(kindsOf(turns.turn(acquire("a1-x", "gpu", { project: projectId("acne") })))).toEqual([
      "unknown-project",
    ]);
  });

  it("a handle stands for its terms", () => {
    const turns = budgeted();
    const terms = { tokens: 5, project: acme, label: "report", as: "analyst", idleTimeoutMs: 1_000 };
    turns.turn(acquire("a1-x", "gpu", terms));
    expect(
      kindsOf(
        turns.turn(
          acquire("a1-x", "gpu", terms),
          ...[{ tokens: 6 }, { label: "other" }, { as: "critic" }, { idleTimeoutMs: 2_000 }].map((other) =>
            acquire("a1-x", "gpu", { ...terms, ...other }),
          ),
        ),
      ),
    ).toEqual(["slot-granted", ...Array(4).fill("handle-in-use")]);
  });
});

describe("the report of a slot lease that ended without a report", () => {
  const terms = { tokens: 300, project: acme };

  it("of a lost agent charges once: nothing at first, then what was used", () => {
    const turns = budgeted();
    turns.turn(acquire("a1-x", "gpu", terms));
    turns.turn(lapse("a1"));
    expect(ledgerOf(turns)).toEqual({ reserved: 0, spent: 0, swarm: 0 });
    const late = { ...used("a1-x", 120), incarnation: incarnation("a1-2") };
    expect(kindsOf(turns.turn(late, late))).toEqual(["slot-ended", "slot-ended"]);
    expect(turns.all("SlotCharged")).toMatchObject([{ handle: "a1-x", project: "acme", tokens: 120 }]);
    expect(ledgerOf(turns).spent).toBe(120);
  });

  it("of a lease that the heartbeat no longer lists is as that of a lost agent", () => {
    const turns = budgeted();
    turns.turn(acquire("a1-x", "gpu", terms));
    turns.pass(limits.slotUnlistedMs);
    turns.turn({
      type: "ReconcileAgent",
      ...{ agent: lapse("a1").agent, incarnation: lapse("a1").incarnation, held: [] },
      seen: 0 as never,
    });
    expect(turns.all("SlotReleased")).toMatchObject([{ reason: "lost" }]);
    turns.turn(release("a1-x"));
    expect(ledgerOf(turns).spent).toBe(300); // no report: the estimate
  });

  it("of an idle slot charges use beyond the estimate", () => {
    const turns = budgeted();
    turns.turn(acquire("a1-x", "gpu", { ...terms, idleTimeoutMs: 1_000 }));
    turns.pass(1_000);
    turns.turn();
    expect(turns.all("SlotReleased")).toMatchObject([{ reason: "idle", tokens: 300, project: "acme" }]);
    turns.turn(used("a1-x", 100));
    expect(ledgerOf(turns).spent).toBe(300);
    turns.turn(used("a1-x", 350));
    expect(ledgerOf(turns).spent).toBe(350);
    turns.turn(used("a1-x", 900));
    expect(ledgerOf(turns).spent).toBe(350);
  });

  it("of a release charges nothing more", () => {
    const turns = budgeted();
    turns.turn(acquire("a1-x", "gpu", terms));
    expect(kindsOf(turns.turn(used("a1-x", 20), used("a1-x", 30)))).toEqual(["slot-released", "slot-ended"]);
    expect(ledgerOf(turns).spent).toBe(20);
  });
});

describe("an idle time", () => {
  it("counts from the grant, not from the request", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2");
    turns.turn(acquire("a1-x", "gpu"), acquire("a2-x", "gpu", { idleTimeoutMs: 1_000 }));
    turns.pass(5_000);
    expect(kindsOf(turns.turn(touch("a2-x")))).toEqual(["slot-awaited"]);
    turns.turn(release("a1-x"));
    turns.pass(999);
    turns.turn();
    expect(turns.holders("gpu")).toEqual(["a2-x"]);
    turns.pass(1);
    turns.turn();
    expect(turns.holders("gpu")).toEqual([]);
    expect(turns.effects.at(-1)).toMatchObject({ kind: "slots-revoked", handles: ["a2-x"], reason: "idle" });
  });

  it("starts anew with a touch, and a touch too soon is not journaled", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1");
    turns.turn(acquire("a1-x", "gpu", { idleTimeoutMs: 8_000 }));
    turns.pass(8_000 * limits.slotTouchShare);
    expect(kindsOf(turns.turn(touch("a1-x")))).toEqual(["slot-granted"]);
    expect(turns.all("SlotTouched")).toEqual([]);
    turns.pass(1);
    turns.turn(touch("a1-x"));
    expect(turns.all("SlotTouched")).toHaveLength(1);
    turns.pass(7_999);
    turns.turn();
    expect(turns.holders("gpu")).toEqual(["a1-x"]);
  });

  it("starts anew with a term: touches could reach no leader", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1");
    turns.turn(acquire("a1-x", "gpu", { idleTimeoutMs: 1_000 }));
    turns.pass(20_000);
    turns.turn({ type: "StartTerm", term: term(2), leader: "c2", opened: "o2", timeoutMs: 3_000 });
    expect(turns.holders("gpu")).toEqual(["a1-x"]);
    turns.pass(1_000);
    turns.turn();
    expect(turns.holders("gpu")).toEqual([]);
  });

  it("touches of an ended, an unknown and another session's lease are answered, and change nothing", () => {
    const turns = SlotTurns.of({ gpu: 1 }, "a1");
    turns.turn(acquire("a1-x", "gpu", { idleTimeoutMs: 1_000 }), acquire("a1-y", "gpu"));
    const other = { ...touch("a1-x"), incarnation: incarnation("other") };
    expect(
      kindsOf(turns.turn(other, touch("a1-never"), release("a1-x"), touch("a1-x"), touch("a1-y"))),
    ).toEqual(["session-over", "unknown-handle", "slot-released", "slot-ended", "slot-granted"]);
    expect(turns.all("SlotTouched")).toEqual([]);
    expect(turns.state.timers.size).toBe(0);
  });
});

it("a queue of its own counts apart in L, and the receipt names it", () => {
  const turns = SlotTurns.of({ gpu: 1 }, "a1", "a2");
  turns.turn({ type: "SetPolicy", patch: { alpha: 1 } });
  turns.turn(acquire("a2-held", "gpu"));
  turns.turn(
    ...["a1-1", "a1-2", "a1-3"].map((handle) => acquire(handle, "gpu", { as: "chatty", holder: handle })),
    acquire("a1-4", "gpu", { as: "calm", holder: "calm", weightThousandths: 3_500 }),
    acquire("a2-5", "gpu", { holder: "next" }),
  );
  turns.turn(release("a2-held"));
  expect(turns.all("SlotGranted").at(-1)).toMatchObject({
    handle: slotHandle("a1-4"),
    as: "calm",
    receipt: { by: "load", load: 1, runnerUp: { agent: "a1", as: "chatty", load: 0.8571 } },
  });
});

describe("open resources", () => {
  it("are made by a request before any other request gets the tokens that have left the window meanwhile", () => {
    const turns = budgeted();
    turns.turn({ type: "SetPolicy", patch: { resources: "open" } });
    turns.turn(acquire("a1-x", "gpu", { tokens: 900, project: acme }));
    turns.turn(release("a1-x"), acquire("a2-x", "gpu", { tokens: 200, project: acme }));
    turns.pass(61_000);
    expect(kindsOf(turns.turn(acquire("a1-y", "fresh", { tokens: 900, project: acme })))).toEqual([
      "slot-granted",
    ]);
    expect(turns.holders("fresh")).toEqual(["a1-y"]);
    expect(turns.waiters("gpu")).toEqual(["a2-x"]);
  });

  it("are made by the first request, with the default of slots, and are bounded", () => {
    const turns = SlotTurns.of({}, "a1");
    expect(kindsOf(turns.turn(acquire("a1-x", "o3")))).toEqual(["unknown-resource"]);
    turns.turn({ type: "SetPolicy", patch: { resources: "open", slotsDefault: 2 } });
    expect(kindsOf(turns.turn(acquire("a1-y", ["o3", "o3", "o3"])))).toEqual(["above-capacity"]);
    expect(turns.state.resourceByName.size).toBe(0);
    turns.turn(acquire("a1-z", ["o3", "o4"]));
    expect(
      [...turns.state.resourceByName.values()].map(({ resource, inUse, settings }) => [
        resource,
        inUse,
        settings.slots,
      ]),
    ).toEqual([
      ["o3", 1, 2],
      ["o4", 1, 2],
    ]);
    for (let n = turns.state.resourceByName.size; n < limits.resourcesMax; n += 1)
      turns.setResource(`r${n}`, { slots: 1 });
    expect(kindsOf(turns.turn(acquire("a1-last", "o5"), acquire("a1-known", "r9", { holder: "h" })))).toEqual(
      ["table-full", "slot-granted"],
    );
  });
});
