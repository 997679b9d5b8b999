// The heap against a full sort, while scores fall.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Candidate, Contender } from "../../src/scheduling/candidate.ts";
import { CandidateHeap } from "../../src/scheduling/candidate-heap.ts";
import type { AgentRow } from "../../src/state/state.ts";
import { SwarmFixture } from "./swarm-fixture.ts";

const operations = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("assign" as const), agent: fc.nat(19) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), agent: fc.nat(19) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant("look" as const),
        count: fc.integer({ min: 1, max: 5 }),
        unwanted: fc.uniqueArray(fc.nat(19), { maxLength: 6 }),
      }),
    },
  ),
  { maxLength: 80 },
);
const agents = fc.array(
  fc.record({ successRate: fc.constantFrom(0, 0.5, 0.5, 0.9), maxConcurrent: fc.constantFrom(1, 2, 4, 100) }),
  { minLength: 1, maxLength: 20 },
);

const nowhere = { renew: () => undefined, update: () => undefined, dismiss: () => undefined };

function aCandidate(agent: AgentRow, successRate = 1): Candidate {
  const candidate = new Candidate(new Contender(agent), nowhere, { agentRule: "score", lambda: 0 });
  candidate.standing = "feasible";
  candidate.assess({ successRate, speed: 1 });
  candidate.refresh();
  return candidate;
}

describe("the candidates' heap", () => {
  it("finds the best in order, with any candidates unwanted and after any changes", () => {
    fc.assert(
      fc.property(agents, operations, (some, all) => {
        const swarm = new SwarmFixture();
        const rows: AgentRow[] = some.map(({ maxConcurrent }, n) =>
          swarm.join(`a${n}`, { maxConcurrent, prefetch: 100 }),
        );
        const candidateOf = (n: number) => aCandidate(rows[n] as AgentRow, some[n]?.successRate);
        const candidates = rows.map((_, n) => candidateOf(n));
        const heap = new CandidateHeap([...candidates]);
        const left = new Set(candidates.keys());

        for (const operation of all) {
          if (operation.do === "look") {
            const unwanted = new Set(operation.unwanted.map((n) => rows[n]?.id));
            const expected = [...left]
              .map(candidateOf)
              .sort((a, b) => (a.isBefore(b) ? -1 : 1))
              .filter(({ agent }) => !unwanted.has(agent.id))
              .slice(0, operation.count);
            const found = heap.best(operation.count, ({ agent }) => !unwanted.has(agent.id));
            expect(found.map(({ terms }) => terms)).toEqual(expected.map(({ terms }) => terms));
            continue;
          }
          const { agent: n } = operation;
          if (!left.has(n)) continue;
          if (operation.do === "remove") {
            heap.remove(candidates[n] as Candidate);
            left.delete(n);
            expect(heap.size).toBe(left.size);
          } else {
            const task = `t${swarm.state.submissions}`;
            swarm.submit(task);
            swarm.assign(task, `a${n}`);
            (candidates[n] as Candidate).contender.version += 1;
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it("refuses to remove an unknown candidate", () => {
    const swarm = new SwarmFixture();
    const candidate = aCandidate(swarm.join("a"));
    expect(() => new CandidateHeap([]).remove(candidate)).toThrow(/of this heap/);
  });
});
