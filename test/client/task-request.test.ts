// The quick preparation of a usual task against the preparation of any task, over right and wrong values.

import { isDeepStrictEqual } from "node:util";
import { expect, it } from "vitest";
import { prepareTask, type TaskRequest } from "../../src/client/task-request.ts";
import { limits } from "../../src/limits.ts";
import { SeededRandom } from "../../src/sim/random.ts";

const TASKS = 20_000;
const random = new SeededRandom("task-request");

function oneOf<Value>(values: readonly Value[]): Value {
  return values[Math.floor(random.fraction() * values.length)] as Value;
}

const names = ["count", "ann", "naïve", "a b", "", "x".repeat(128), "x".repeat(129), "a\u200b", 7, null, {}];
const projects = ["default", "_", "a.b", "", "x".repeat(64), "x".repeat(65), 7, null];
const numbers = [
  ...[1, 5, 60_000, 0, -0, -1, 1.5, 1e300, Number.NaN, Number.POSITIVE_INFINITY, "1", null, {}],
  ...[limits.priorityMagnitudeMax, limits.priorityMagnitudeMax + 1, -limits.priorityMagnitudeMax],
  ...[limits.attemptTimeoutMsMax, limits.attemptTimeoutMsMax + 1, -limits.priorityMagnitudeMax - 1],
];
const payloads = [
  ...[
    "",
    "text",
    'quoted "\u2028" \\ text',
    "𝒳\ud800",
    "x".repeat(90_000),
    "x".repeat(300_000),
    0,
    null,
    true,
  ],
  ...[[1, "a"], { a: { b: 1 } }, Buffer.from("bytes"), new Uint8Array(), new Map(), 1n, () => 1, Symbol("s")],
];

function aRequest(): Record<string, unknown> {
  const request: Record<string, unknown> = {};
  if (random.fraction() < 0.95) request["kind"] = random.fraction() < 0.8 ? "count" : oneOf(names);
  if (random.fraction() < 0.9) request["payload"] = oneOf(payloads);
  if (random.fraction() < 0.3) request["id"] = random.fraction() < 0.5 ? "t1" : oneOf(names);
  if (random.fraction() < 0.3) request["user"] = random.fraction() < 0.5 ? "bob" : oneOf(names);
  if (random.fraction() < 0.2) request["project"] = random.fraction() < 0.5 ? "red" : oneOf(projects);
  if (random.fraction() < 0.2) request["role"] = random.fraction() < 0.5 ? "writer" : oneOf(names);
  if (random.fraction() < 0.2) request["priority"] = oneOf(numbers);
  if (random.fraction() < 0.2) request["timeoutMs"] = oneOf(numbers);
  if (random.fraction() < 0.05) request["weight"] = oneOf(numbers);
  if (random.fraction() < 0.05) request["kinds"] = ["count"];
  return request;
}

function prepared(request: Record<string, unknown>, user: string | undefined, isBound = false): unknown {
  const defaults = { user, clock: { now: () => 1 }, nextId: () => "next" };
  const scope = { project: "default", isBound };
  try {
    const { input, ...task } = prepareTask(request as unknown as TaskRequest, scope, defaults);
    const json = JSON.stringify(input);
    if (task.leastBytes > Buffer.byteLength(json)) expect.unreachable(json);
    return { ...task, json };
  } catch (error) {
    const { name, message, field } = error as Error & { readonly field?: string };
    return { name, message, field };
  }
}

it(`a task is the same with and without a field that has no value, in ${TASKS} tasks`, () => {
  for (let made = 0; made < TASKS; made += 1) {
    const request = aRequest();
    const user = oneOf([undefined, "ann"]);
    const isBound = random.fraction() < 0.2;
    const quick = prepared(request, user, isBound);
    const slow = prepared({ ...request, stallMs: undefined }, user, isBound); // a name beyond those of the quick way
    if (!isDeepStrictEqual(quick, slow)) expect(quick).toEqual(slow);
  }
});

it("names of a request's prototype count, as they do for any task", () => {
  const request = Object.create({ payload: "inherited" }, { kind: { value: "count", enumerable: true } });
  expect(prepared(request, undefined)).toMatchObject({
    json: '{"kind":"count","id":"next","payload":"inherited"}',
  });
});
