// Budgets conserve tokens under any order of assignments, reports, refusals, losses, late reports, cancellations and
// settings. Reserved tokens are those of open attempts. Spent tokens are those charged in the window, and no more. No
// assignment exceeds a budget in a hard mode (promise P7). The fixture checks every invariant after every event; this
// file keeps separate books.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ReportedOutcome } from "../../src/core/command.ts";
import { agentId, incarnation, kind, projectId, taskId } from "../../src/ids.ts";
import { limits } from "../../src/limits.ts";
import { nextOpeningAt } from "../../src/scheduling/gates.ts";
import type { Event, EventOf } from "../../src/state/event.ts";
import { totalAt } from "../../src/state/rolling-window.ts";
import type { BudgetMode } from "../../src/state/settings.ts";
import { LedgerSwarm } from "./ledger-fixture.ts";

type Step =
  | { readonly do: "submit"; readonly task: number; readonly tokens: number | undefined }
  | { readonly do: "assign"; readonly task: number; readonly agent: number }
  | { readonly do: "report"; readonly assignment: number; readonly outcome: ReportedOutcome }
  | { readonly do: "lose" | "rejoin"; readonly agent: number }
  | { readonly do: "cancel"; readonly task: number }
  | { readonly do: "pass"; readonly ms: number }
  | {
      readonly do: "budget";
      readonly project: number;
      readonly tokens: number;
      readonly mode: BudgetMode;
      readonly windowMs: number;
    }
  | { readonly do: "no-budget"; readonly project: number }
  | { readonly do: "global"; readonly tokens: number | undefined }
  | { readonly do: "rate"; readonly tokensMax: number; readonly sliding: boolean };

const task = fc.nat(11);
const agent = fc.nat(2);
const project = fc.nat(1);
const tokens = fc.nat(400);
const reported = fc.option(fc.nat(600), { nil: undefined });
const outcome: fc.Arbitrary<ReportedOutcome> = fc
  .tuple(fc.constantFrom("completed", "failed", "infrastructure", "invalid", "revoked"), reported)
  .map(([outcomeKind, used]) => {
    const spent = used === undefined ? {} : { tokens: used };
    if (outcomeKind === "completed") return { kind: outcomeKind, result: "", ...spent };
    return outcomeKind === "revoked"
      ? { kind: outcomeKind, ...spent }
      : { kind: outcomeKind, error: "", ...spent };
  });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("submit"), task, tokens: fc.option(tokens, { nil: undefined }) }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("assign"), task, agent }) },
  { weight: 7, arbitrary: fc.record({ do: fc.constant("report"), assignment: fc.nat(30), outcome }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("lose", "rejoin"), agent }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel"), task }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("pass"), ms: fc.oneof(fc.nat(3_000), fc.nat(90_000)) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("budget"),
      project,
      tokens: fc.nat(1_500),
      mode: fc.constantFrom("wait", "reject", "alert", "downgrade", "downgrade"),
      windowMs: fc.constantFrom(1_000, 60_000, 3_600_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("no-budget"), project }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("global"), tokens: fc.option(fc.nat(2_000), { nil: undefined }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("rate"), tokensMax: fc.nat(800), sliding: fc.boolean() }),
  },
) as fc.Arbitrary<Step>;

/** The charges of the events, with their instants: not a window, a list. */
class Books {
  readonly charges: { readonly at: number; readonly project: string; readonly tokens: number }[] = [];
  readonly #late = new Set<string>();
  readonly #openByName = new Map<string, EventOf<"TaskAssigned">>();

  take(event: Event, at: number): void {
    switch (event.type) {
      case "TaskAssigned":
        this.#openByName.set(nameOf(event), event);
        return;
      case "TaskCompleted":
        return this.#close(event, at, event.tokens);
      case "TaskFailed":
        return this.#close(event, at, event.tokens);
      case "AttemptFailed":
      case "TaskDeadLettered": {
        if (event.revoked === true) return;
        const { class: verdict } = event.failure;
        const isReturned = verdict === "lost" || verdict === "infrastructure";
        const tokens = verdict === "lost" ? 0 : event.tokens;
        return this.#close(event, at, isReturned ? (tokens ?? 0) : tokens);
      }
      case "AttemptReleased":
        return this.#close(event, at, event.reason === "agent-gone" ? 0 : event.tokens);
      case "TokensCharged":
        if (this.#late.has(nameOf(event))) throw new Error(`${nameOf(event)} is charged twice`);
        this.#late.add(nameOf(event));
        this.charges.push({ at, project: event.project, tokens: event.tokens });
        return;
      default:
    }
  }

  reserved(project?: string): number {
    const open = [...this.#openByName.values()].filter(
      (each) => project === undefined || each.project === project,
    );
    return open.reduce((sum, { tokensReserved = 0 }) => sum + tokensReserved, 0);
  }

  spentSince(from: number, project?: string): number {
    const charged = this.charges.filter(
      (each) => each.at > from && (project === undefined || each.project === project),
    );
    return charged.reduce((sum, charge) => sum + charge.tokens, 0);
  }

  #close(
    event: { readonly task: string; readonly attempt: number },
    at: number,
    tokens: number | undefined,
  ): void {
    const open = this.#openByName.get(nameOf(event));
    if (open === undefined) throw new Error(`${nameOf(event)} was not open`);
    this.#openByName.delete(nameOf(event));
    this.charges.push({ at, project: open.project, tokens: tokens ?? open.tokensReserved ?? 0 });
  }
}

function nameOf({ task: id, attempt }: { readonly task: string; readonly attempt: number }): string {
  return `${id}#${attempt}`;
}

/** Tasks belong to the projects in turn; their kind may be made cheaper. */
class History {
  readonly swarm = new LedgerSwarm();
  readonly books = new Books();
  readonly projectById = new Map<string, string>();
  #booked = 0;
  #submitted = 0;
  #sessions = 1;

  constructor() {
    for (const id of ["a0", "a1", "a2"]) this.swarm.join(id, { agentType: "claude", maxConcurrent: 3 });
    this.swarm.setKind("k", { cheaper: kind("cheap") });
  }

  run(steps: readonly Step[]): void {
    for (const each of steps) {
      this.#do(each);
      this.#book();
      this.#compare();
    }
  }

  /** Ends all open attempts by the loss of their agents. */
  killAll(): void {
    for (const id of [0, 1, 2]) this.#do({ do: "lose", agent: id });
    this.#book();
  }

  #do(wanted: Step): void {
    const { swarm } = this;
    switch (wanted.do) {
      case "submit":
        return this.#submit(wanted);
      case "assign":
        swarm.assign(this.#queued(wanted.task), `a${wanted.agent}`);
        return;
      case "report": {
        const all = swarm.all("TaskAssigned");
        const one = all[all.length - 1 - (wanted.assignment % Math.max(1, all.length))];
        if (one !== undefined) swarm.report(one, wanted.outcome);
        return;
      }
      case "lose":
      case "rejoin": {
        const id = `a${wanted.agent}`;
        const row = swarm.state.agentById.get(agentId(id));
        if (row?.online === true)
          swarm.ask({ type: "LapseAgent", agent: row.id, incarnation: row.incarnation });
        this.#sessions += 1;
        if (wanted.do === "rejoin")
          swarm.join(id, {
            agentType: "claude",
            maxConcurrent: 3,
            incarnation: incarnation(`${id}-${this.#sessions}`),
          });
        return;
      }
      case "cancel": {
        const id = this.#taskOf(wanted.task);
        const owner = this.projectById.get(id);
        if (owner !== undefined)
          swarm.ask({ type: "CancelTask", project: projectId(owner), task: taskId(id), round: 1 });
        return;
      }
      case "pass":
        return swarm.pass(wanted.ms);
      case "budget": {
        const { tokens: budget, mode, windowMs } = wanted;
        return swarm.setBudget({ tokens: budget, mode, windowMs }, `p${wanted.project}`);
      }
      case "no-budget":
        return swarm.setProject({}, `p${wanted.project}`);
      case "global": {
        const { budget: _, ...others } = swarm.state.policy;
        const budget =
          wanted.tokens === undefined
            ? {}
            : { budget: { tokens: wanted.tokens, windowMs: 60_000, mode: "wait" as const } };
        return swarm.record({ type: "PolicyChanged", policy: { ...others, ...budget } });
      }
      case "rate":
        return swarm.setRate("claude", { tokensMax: wanted.tokensMax, sliding: wanted.sliding });
    }
  }

  #submit({ task: at, tokens: estimate }: Extract<Step, { do: "submit" }>): void {
    this.#submitted += 1;
    const id = `t${this.#submitted}`;
    this.projectById.set(id, `p${at % 2}`);
    this.swarm.submit(id, {
      project: projectId(`p${at % 2}`),
      maxAttempts: 2,
      timeoutMs: 20_000,
      ...(estimate === undefined ? {} : { tokens: estimate }),
    });
  }

  #queued(number: number): string {
    const queued = [...this.swarm.state.taskById.values()].filter(({ state }) => state === "queued");
    return queued[number % Math.max(1, queued.length)]?.spec.id ?? "none";
  }

  /** One of the newest tasks. */
  #taskOf(number: number): string {
    return `t${Math.max(1, this.#submitted - number)}`;
  }

  /** A reaction has the instant of its cause, and so has a timer's event: `at` is the fixture's own. */
  #book(): void {
    const { events, at } = this.swarm;
    for (const event of events.slice(this.#booked)) this.books.take(event, at);
    this.#booked = events.length;
  }

  #compare(): void {
    const { swarm, books } = this;
    const { state, at } = swarm;
    expect(state.ledger.reserved).toBe(books.reserved());
    for (const { project: name, ledger, settings } of state.projectById.values()) {
      expect(ledger.reserved).toBe(books.reserved(name));
      if (ledger.spent === undefined || settings?.budget === undefined) continue;
      const spent = totalAt(ledger.spent, at);
      expect(spent).toBeLessThanOrEqual(books.spentSince(Number.NEGATIVE_INFINITY, name));
    }
    // The window of shares was never changed, so all use is known.
    const usage = totalAt(state.ledger.usage, at);
    const { guaranteeMs } = state.policy;
    const stepMs = guaranteeMs / limits.windowBuckets;
    expect(usage).toBeGreaterThanOrEqual(books.spentSince(at - guaranteeMs));
    expect(usage).toBeLessThanOrEqual(books.spentSince(at - guaranteeMs - stepMs));
    const opening = nextOpeningAt(state, at);
    if (opening !== undefined) expect(opening).toBeGreaterThan(at);
  }
}

describe("budgets", () => {
  it("conserve under any interleaving, and end with nothing reserved when all agents are lost", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(fc.array(step, { minLength: 10, maxLength: 60, size: "max" }), (steps) => {
        const history = new History();
        history.run(steps);
        history.killAll();
        const { state, events } = history.swarm;
        expect(state.ledger.reserved).toBe(0);
        expect(state.openAttempts).toBe(0);
        for (const row of state.projectById.values())
          expect([row.ledger.reserved, row.openAttempts]).toEqual([0, 0]);
        for (const event of events) {
          seen.add(event.type);
          if (event.type === "TaskAssigned" && event.runsAs !== undefined) seen.add("downgraded");
        }
      }),
      { numRuns: 300 },
    );
    // The histories covered enough.
    const wanted = [
      "TaskAssigned",
      "TaskCompleted",
      "AttemptFailed",
      "TaskFailed",
      "TaskDeadLettered",
      "AttemptReleased",
    ];
    for (const type of [...wanted, "TokensCharged", "BudgetExceeded", "downgraded"])
      expect(seen).toContain(type);
  });

  it("are never exceeded by reservations and honest reports", () => {
    const honest = fc.array(
      fc.record({
        tokens: fc.integer({ min: 1, max: 300 }),
        share: fc.double({ min: 0, max: 1, noNaN: true }),
        pass: fc.nat(4_000),
      }),
      {
        maxLength: 80,
        size: "max",
      },
    );
    fc.assert(
      fc.property(honest, (attempts) => {
        const swarm = new LedgerSwarm();
        swarm.join("a1", { maxConcurrent: 4 });
        swarm.setBudget({ tokens: 1_000, windowMs: 60_000 });
        const spent: { at: number; tokens: number }[] = [];
        for (const [index, { tokens: estimate, share, pass }] of attempts.entries()) {
          swarm.submit(`t${index}`, { tokens: estimate });
          if (swarm.assign(`t${index}`, "a1") === "assigned" && share < 0.9) {
            const used = Math.floor(estimate * share);
            swarm.report(swarm.last("TaskAssigned"), { kind: "completed", result: "", tokens: used });
            spent.push({ at: swarm.at, tokens: used });
          }
          swarm.pass(pass);
          // Any span as long as the window: spans that end with a charge are enough.
          const from = swarm.at - 60_000;
          const inWindow = spent.filter(({ at }) => at > from).reduce((sum, each) => sum + each.tokens, 0);
          expect(inWindow + swarm.project().ledger.reserved).toBeLessThanOrEqual(1_000);
        }
      }),
      { numRuns: 150 },
    );
  });
});
