// The part of a heartbeat that is written by hand.

import fc from "fast-check";
import { expect, it } from "vitest";
import { IncarnationState } from "../../src/agent/incarnation-state.ts";
import type { ResultOutbox } from "../../src/agent/result-outbox.ts";
import { incarnation } from "../../src/ids.ts";
import type { Assignment } from "../../src/protocol/schemas.ts";

const sendsNothing = {} as ResultOutbox;
const names = fc.uniqueArray(fc.record({ project: fc.string(), task: fc.string() }), {
  selector: ({ task }) => task,
  maxLength: 8,
});

it("a heartbeat is JSON of the held attempts, whatever their names hold", () => {
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 4 }), (named, capacity) => {
      const state = new IncarnationState(incarnation("session"), () => sendsNothing, 0);
      const assignments = named.map((name, at): Assignment => {
        const rest = { token: "1.1", kind: "k", user: "u", payload: "", timeoutMs: 1, maxAttempts: 3 };
        return { number: at + 1, attempt: at + 1, ...name, ...rest };
      });
      state.ledger.receive(assignments, 0);
      const head = state.heartbeatHead(capacity, { status: "busy", successRate: 0.5 });
      expect(JSON.parse(state.heartbeat(head, state.ledger.held(), capacity))).toEqual({
        incarnation: "session",
        status: "busy",
        successRate: 0.5,
        maxConcurrent: capacity,
        inFlight: named.length,
        seen: named.length,
        held: named.map((name, at) => ({
          ...name,
          attempt: at + 1,
          ...(at < capacity ? {} : { waiting: true }),
        })),
      });
    }),
  );
});
