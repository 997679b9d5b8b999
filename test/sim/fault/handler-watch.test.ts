// Handlers allowed in a session and beside each other on a task, and handlers reported as findings.

import { beforeEach, expect, it } from "vitest";
import { agentId } from "../../../src/ids.ts";
import { limits } from "../../../src/limits.ts";
import { Habitat } from "../../../src/sim/fault/habitat.ts";
import { HandlerWatch } from "../../../src/sim/fault/handler-watch.ts";
import { newMachine, type Session } from "../../../src/sim/fault/session.ts";
import { SeededRandom } from "../../../src/sim/random.ts";

const limitMs = 18_000;
const task = "t1";
const closedBy = { agent: agentId("a1"), decidedMs: 0 };

let habitat: Habitat;
let watch: HandlerWatch;
let running: AbortController;

beforeEach(async () => {
  habitat = new Habitat(new SeededRandom("handler-watch"));
  watch = new HandlerWatch(habitat);
  running = new AbortController();
  await until(limits.leaseTtlMs);
  begin(1);
});

/** Virtual ms. */
const until = (ms: number) => habitat.engine.run(ms, () => false);

const aSession = (agent: string) => habitat.newSession(agent, newMachine());

const checks = () => habitat.findings.map(({ check }) => check);

/** Starts a handler. Returns a function to call at its end. */
function startIn(
  session: Session,
  start: { task: string; attempt?: number },
  { capacity }: { capacity: number },
) {
  const { attempt = 1 } = start;
  const signal = attempt === 1 ? running.signal : new AbortController().signal;
  return watch.started(
    { task: start.task, attempt, session, signal, isSuperseded: () => false, limitMs },
    capacity,
  );
}

function begin(attempt: number): void {
  startIn(aSession(`a${attempt}`), { task, attempt }, { capacity: 1 });
}

/** A second attempt begins so many ms after the first. */
async function beginAgain(ms: number): Promise<readonly string[]> {
  await until(limits.leaseTtlMs + ms);
  begin(2);
  return checks();
}

it("an attempt that begins twice in a session is found", () => {
  const session = aSession("a3");
  startIn(session, { task: "t3" }, { capacity: 2 })();
  expect(checks()).toEqual([]);
  startIn(session, { task: "t3" }, { capacity: 2 });
  expect(checks()).toEqual(["attempts-start-once"]);
});

it("a handler beyond its agent's capacity is found; an ended handler frees its capacity", () => {
  const session = aSession("a3");
  const ended = startIn(session, { task: "t3" }, { capacity: 2 });
  startIn(session, { task: "t4" }, { capacity: 2 });
  ended();
  startIn(session, { task: "t5" }, { capacity: 2 });
  expect(checks()).toEqual([]);
  startIn(session, { task: "t6" }, { capacity: 2 });
  expect(checks()).toEqual(["handlers-fit-places"]);
});

it("a session is taken up if aborted handlers occupy its whole capacity", () => {
  const session = aSession("a3");
  expect(watch.isTakenUp(session, 1)).toBe(false);
  const ended = startIn(session, { task: "t3" }, { capacity: 2 });
  startIn(session, { task: "t4", attempt: 2 }, { capacity: 2 });
  running.abort(); // of first attempts
  expect([watch.isTakenUp(session, 1), watch.isTakenUp(session, 2)]).toEqual([true, false]);
  ended();
  expect(watch.isTakenUp(session, 1)).toBe(false);
});

it("an attempt beside an unaborted earlier attempt is found, however long the earlier attempt has run", async () => {
  expect(await beginAgain(2 * limitMs)).toEqual(["one-handler-a-task"]);
});

it("an aborted attempt may still run", async () => {
  running.abort();
  expect(await beginAgain(10)).toEqual([]);
});

it("an attempt closed at its time-out may still run, however late it began", async () => {
  watch.limitReached({ task, attempt: 1, by: "timed-out", timeoutMs: limitMs, ...closedBy });
  expect(await beginAgain(limitMs - 3_000)).toEqual([]);
});

it.each([
  [1.02 * limitMs + 990, []],
  [1.02 * limitMs + 1_010, ["one-handler-a-task"]],
])("…until the agent's clock ends the handler, however slow: %d ms after the begin", async (ms, found) => {
  watch.limitReached({ task, attempt: 1, by: "timed-out", timeoutMs: limitMs, ...closedBy });
  expect(await beginAgain(ms)).toEqual(found);
});

it("an attempt closed for silence may still run, unless the silence was too short", async () => {
  watch.limitReached({ task, attempt: 1, by: "stalled", timeoutMs: limitMs, ...closedBy });
  expect(await beginAgain(limitMs)).toEqual([]);
  watch.limitReached({ task, attempt: 2, by: "stalled", timeoutMs: limitMs, ...closedBy });
  begin(3);
  expect(habitat.findings).toHaveLength(1);
});
