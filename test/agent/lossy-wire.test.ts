// The session on a connection that randomly loses, repeats and reorders assignments and loses answers. The
// leader repeats assignments that were not seen. Every attempt is started once, reported with one content, and
// answered.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Assignment } from "../../src/protocol/schemas.ts";
import { SessionFixture, settled } from "./session-fixture.ts";

/** The fate of a message: lost, or delivered a number of times. */
const fate = fc.constantFrom("lost" as const, "once" as const, "once" as const, "twice" as const);
const sabotage = fc.record({
  tasks: fc.integer({ min: 1, max: 12 }),
  /** For assignment messages, in turn. */
  fates: fc.array(fate, { maxLength: 40 }),
  /** How a group of assignments is cut into messages and reordered. */
  shuffles: fc.array(fc.nat(), { minLength: 4, maxLength: 20 }),
  /** Whether answers to results and heartbeats arrive, in turn. */
  answered: fc.array(fc.boolean(), { maxLength: 30 }),
  /** Number of the heartbeat after which a rival leads. */
  newLeaderAfter: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
});

it("loses nothing and starts nothing twice", async () => {
  await fc.assert(
    fc.asyncProperty(sabotage, async ({ tasks, fates, shuffles, answered, newLeaderAfter }) => {
      const fixture = await SessionFixture.joined({ profile: { maxConcurrent: 16 } });
      const { leader, clock, session } = fixture;
      const assignments = Array.from({ length: tasks }, () => leader.assignment());
      const settledTasks = new Set<string>();
      let messages = 0;
      let answers = 0;
      const isAnswered = () => answered[answers++] ?? true;

      leader.script.heartbeat = () => (isAnswered() ? undefined : "silence");
      leader.script.result = ({ results }) => {
        for (const { task } of results) settledTasks.add(task);
        return isAnswered() ? undefined : "silence";
      };
      const send = (missing: readonly Assignment[]) => {
        for (const group of cut(missing, shuffles)) {
          const what = fates[messages++] ?? "once";
          if (what !== "lost") leader.assign(...group);
          if (what === "twice") leader.assign(...group);
        }
      };

      send(assignments);
      for (let second = 0; second < 60 && settledTasks.size < tasks; second += 1) {
        await clock.advance(1_000);
        const { seen } = leader.last("heartbeat");
        if (second === newLeaderAfter) leader.appear(2);
        send(assignments.filter(({ number }) => number > seen));
        await settled();
        const ended = new Set<string>(leader.reports().map(({ task }) => task));
        const running = fixture.started.filter(({ task }) => !ended.has(task));
        const ends = running.map(({ key, task }) => ({
          key,
          outcome: "completed" as const,
          result: `of ${task}`,
        }));
        session.send({ type: "ended", ends });
        await settled();
      }
      await clock.advance(20_000);

      const started = fixture.started.map(({ task }) => task);
      expect(started.sort()).toEqual(assignments.map(({ task }) => task).sort());
      expect(leader.last("heartbeat")).toMatchObject({ seen: tasks, held: [], status: "ready" });
      for (const report of leader.reports()) {
        expect(report).toMatchObject({ outcome: "completed", result: `of ${report.task}` });
      }
      session.send({ type: "stop" });
      await clock.advance(10_000);
    }),
    { numRuns: 60 },
  );
});

/** Cuts a list into messages in the order given by `shuffles`. */
function cut(list: readonly Assignment[], shuffles: readonly number[]): Assignment[][] {
  const order = list
    .map((assignment, at) => ({ assignment, rank: shuffles[at % shuffles.length] ?? 0 }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ assignment }) => assignment);
  const size = 1 + ((shuffles[0] ?? 0) % 4);
  return Array.from({ length: Math.ceil(order.length / size) }, (_, at) =>
    order.slice(at * size, (at + 1) * size),
  );
}
