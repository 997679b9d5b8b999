// The messages of the checks in src/requests/quick-checks.ts.

import type { z } from "zod";
import { limits } from "../../src/limits.ts";
import {
  awaitRequestSchema,
  type Heartbeat,
  heartbeatSchema,
  progressSchema,
  type ResultReport,
  resultRequestSchema,
  resultSchema,
  submitRequestSchema,
  taskIdSchema,
  taskInputSchema,
} from "../../src/protocol/schemas.ts";
import {
  isPlainHeartbeat,
  isProgress,
  isRightAwaitRequest,
  isRightResultRequest,
  isRightSubmitRequest,
} from "../../src/requests/quick-checks.ts";
import type { Mutator } from "../support/mutator.ts";
import { strangeValues, type Trial } from "../support/quick-check-trial.ts";

const strange: readonly unknown[] = [
  ...strangeValues,
  ...[{ kind: "k" }, JSON.parse('{"__proto__":1}')],
  ...[limits.taskWeightMax, limits.priorityMagnitudeMax, limits.tokensPerAttemptMax, limits.maxAttemptsMax],
  ...[limits.attemptTimeoutMsMax, limits.stallMsMin, limits.stallMsMax, limits.maxConcurrentMax, 8.64e15],
  ...[limits.taskWeightMax + 1, limits.priorityMagnitudeMax + 1, limits.tokensPerAttemptMax + 1, 8.64e15 + 2],
  ...[-limits.priorityMagnitudeMax, -limits.priorityMagnitudeMax - 1, limits.maxAttemptsMax + 1],
  ...[
    limits.attemptTimeoutMsMax + 1,
    limits.stallMsMin - 1,
    limits.stallMsMax + 1,
    limits.maxConcurrentMax + 1,
  ],
  ...[
    "",
    "x",
    "a b",
    "\t",
    "~",
    "\u007f",
    "\u0080",
    "\u00a0",
    "\u2028",
    "\ufeff",
    "\ud800",
    "é",
    "蜂",
    "🐝",
    "a.b",
  ],
  ...["x".repeat(64), "x".repeat(65), "x".repeat(128), "x".repeat(129), "🐝".repeat(128), "🐝".repeat(129)],
  ...[
    "base64",
    "completed",
    "revoked",
    "ready",
    "AAAA",
    "AA==",
    "A",
    "A\nAA",
    "_INBOX.ann.x7",
    "_INBOX.*",
    "_INBOX",
  ],
  ...[
    `00-${"0".repeat(32)}-${"1".repeat(16)}-00`,
    `ff-${"1".repeat(32)}-${"1".repeat(16)}-00`,
    `00-${"A".repeat(32)}-${"1".repeat(16)}-00`,
    `01-${"a".repeat(32)}-${"1".repeat(16)}-00`,
    ...[" ".repeat(512), "~".repeat(513)],
  ],
  ...[`_INBOX.${"x".repeat(limits.inboxCharactersMax)}`, "x".repeat(limits.errorCharactersMax + 1)],
];

const traceparent = `00-${"4b".repeat(16)}-${"00f067aa".repeat(2)}-01`;
const aTrace = { traceparent, tracestate: "vendor=1" };

const someNeeds: readonly unknown[] = [
  { gpu: "a100", region: ["eu", "us"] },
  ...[{}, { gpu: [] }, { gpu: [""] }, { gpu: "x".repeat(129) }, { "two words": "x" }, { gpu: ["a", 1] }],
  { gpu: Array.from({ length: limits.needValuesMax + 1 }, (_, at) => `${at}`) },
  Object.fromEntries(Array.from({ length: limits.needsMax + 1 }, (_, at) => [`l${at}`, "x"])),
  Object.fromEntries(Array.from({ length: limits.needsMax }, (_, at) => [`l${at}`, "é".repeat(64)])),
];
const someAttributes: readonly unknown[] = [
  { ticket: "OPS-17", note: "any text, é\n" },
  ...[{}, { a: "" }, { a: 1 }, { "two words": "x" }, JSON.parse('{"__proto__":"x"}')],
  { a: "x".repeat(limits.attributesBytesMax - 8) },
  { a: "x".repeat(limits.attributesBytesMax - 7) },
  { a: "é".repeat(limits.attributesBytesMax / 2 - 4) },
];

function aTask(mutator: Mutator): object {
  return {
    kind: "count",
    ...mutator.some({ id: `t${mutator.below(9)}`, user: "ann", role: "r", weight: 1.5, priority: -3 }),
    ...mutator.some({
      tokens: 9,
      deadline: 5,
      notBefore: 4,
      maxAttempts: 3,
      timeoutMs: 60_000,
      stallMs: 5_000,
    }),
    ...mutator.oneIn(3, () => ({ needs: mutator.copyOfOne(someNeeds) })),
    ...mutator.oneIn(3, () => ({ attributes: mutator.copyOfOne(someAttributes) })),
    ...mutator.some({ affinity: "session-42", stream: true, ...aTrace }),
    ...mutator.some({ payload: mutator.oneOf(["", "AAAA", "{}"]), encoding: "base64" }),
  };
}

const anAttempt = (mutator: Mutator) => ({ project: "p", task: `t${mutator.below(9)}`, attempt: 1 });

function aResult(mutator: Mutator): object {
  const result = mutator.oneOf(["", "AAAA", "done"]);
  return {
    ...{ ...anAttempt(mutator), token: "1.1" },
    outcome: mutator.oneOf(["completed", "failed", "infrastructure", "invalid", "revoked"]),
    ...mutator.some({ result, encoding: "base64", error: "no", tokens: 7, ...aTrace }),
    ...mutator.oneIn(6, () => ({ outcome: "infrastructure", hold: aHold(mutator) })),
  };
}

function aHold(mutator: Mutator): object {
  return {
    ...mutator.some({ scope: mutator.oneOf(["agent", "type", { resource: "gpt" }]) }),
    ...mutator.oneOf([{}, { forMs: 500 }, { until: 5 }]),
  };
}

/** At least one item. */
const items = <Item>(mutator: Mutator, make: (mutator: Mutator) => Item) => [
  make(mutator),
  ...mutator.several(() => make(mutator)),
];

const someResults = (mutator: Mutator) => ({ incarnation: "life", results: items(mutator, aResult) });

function aHeartbeat(mutator: Mutator): object {
  return {
    ...{ incarnation: "life", status: mutator.oneOf(["ready", "busy", "offline"]), inFlight: 2, seen: 7 },
    held: mutator.several(() => ({ ...anAttempt(mutator), ...mutator.some({ waiting: true }) })),
    ...mutator.some({ saturated: false, successRate: 0.5, latencyMs: 1.5, draining: true, maxConcurrent: 4 }),
    ...mutator.oneIn(6, () => mutator.some({ slots: someSlots(mutator), asksTermStarts: true })),
  };
}

function someSlots(mutator: Mutator): object {
  return { held: mutator.several(() => "h1"), waiting: mutator.several(() => "h2") };
}

/** The message of one agent, with messages of others in a third of all cases. */
function bundled(mutator: Mutator, message: (mutator: Mutator) => object): object {
  const anAgent = () => ({ agent: `a${mutator.below(9)}` });
  const others = () => mutator.several(() => ({ ...anAgent(), ...message(mutator) }));
  return {
    ...{ ...message(mutator), ...mutator.some({ v: 1, ...anAgent() }) },
    ...mutator.oneIn(3, () => ({ others: others() })),
  };
}

/** The schema of a request checks items separately. Here it has their schema. */
const listOf = <Item extends z.ZodType>(item: Item) => item.array().min(1).max(limits.itemsPerMessageMax);
const results = { results: listOf(resultSchema) };
const otherResultsSchema = resultRequestSchema.shape.others.unwrap();

interface ResultMessage {
  readonly results: readonly ResultReport[];
  readonly others?: readonly { readonly results: readonly ResultReport[] }[];
}

export const requestTrials: readonly Trial[] = [
  {
    name: "a submission",
    isRight: isRightSubmitRequest,
    schema: submitRequestSchema.extend({ tasks: listOf(taskInputSchema) }),
    make: (mutator) => ({
      tasks: items(mutator, aTask),
      ...mutator.some({ v: 1, notify: "_INBOX.a", failFast: true }),
    }),
    strange,
  },
  {
    name: "results",
    isRight: isRightResultRequest,
    schema: resultRequestSchema.extend({
      ...results,
      others: otherResultsSchema.element.extend(results).array().max(limits.agentsPerMessageMax).optional(),
    }),
    make: (mutator) => bundled(mutator, someResults),
    strange,
    isLeft: (message: ResultMessage) =>
      [message, ...(message.others ?? [])].some((each) =>
        each.results.some(({ hold }) => hold !== undefined),
      ),
  },
  {
    name: "a question for outcomes",
    isRight: isRightAwaitRequest,
    schema: awaitRequestSchema.extend({ tasks: listOf(taskIdSchema) }),
    make: (mutator) => ({
      tasks: items(mutator, () => `t${mutator.below(9)}`),
      ...{ notify: "_INBOX.a", ...mutator.some({ v: 1 }) },
    }),
    strange,
  },
  {
    name: "a heartbeat",
    isRight: isPlainHeartbeat,
    schema: heartbeatSchema,
    make: (mutator) => bundled(mutator, aHeartbeat),
    strange,
    isLeft: (message: Heartbeat & { readonly others?: readonly Heartbeat[] }) =>
      [message, ...(message.others ?? [])].some(
        ({ slots, asksTermStarts }) => slots !== undefined || asksTermStarts !== undefined,
      ),
  },
  {
    name: "progress",
    isRight: isProgress,
    schema: progressSchema,
    make: (mutator) => ({
      ...{ incarnation: "life", ...anAttempt(mutator) },
      ...mutator.some({ v: 1, fraction: 0.5, message: "half" }),
    }),
    strange,
  },
];
