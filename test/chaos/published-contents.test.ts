// Payloads and results of published events, from the records of clients and agents.

import { expect, it } from "vitest";
import type { Observation } from "../../src/sim/history/observation.ts";
import type { Event } from "../../src/state/event.ts";
import { withContents } from "./published-contents.ts";

const submitted = { type: "TaskSubmitted", task: { project: "p", id: "t1" } } as unknown as Event;

function payloadOf(...submits: readonly (readonly [payload: string, answer?: "accepted" | "conflict"])[]) {
  const observations = submits.map(
    ([payload, answer]) =>
      ({ kind: "submit", task: "p/t1", content: { payload }, answer }) as unknown as Observation,
  );
  const [event] =
    withContents(new Map([[1, { term: 1, at: 0, events: [submitted] }]]), observations)
      .get(1)
      ?.events.values() ?? [];
  return event?.type === "TaskSubmitted" ? event.task.payload : undefined;
}

it("takes the payload that was accepted, whatever was submitted under the id before or later", () => {
  expect(payloadOf(["lost"], ["right", "accepted"], ["another", "conflict"], ["another"])).toBe("right");
});

it("takes the first payload when no answer was heard", () => {
  expect(payloadOf(["right"], ["another"])).toBe("right");
});
