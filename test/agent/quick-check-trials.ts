// The messages of the checks in src/agent/quick-checks.ts.

import { isAssignPush, isRevokePush, isUsualResultResponse } from "../../src/agent/quick-checks.ts";
import {
  type AgentPush,
  agentPushSchema,
  type ResultAnswer,
  resultResponseSchema,
} from "../../src/protocol/schemas.ts";
import type { Mutator } from "../support/mutator.ts";
import { strangeValues, type Trial } from "../support/quick-check-trial.ts";
import { aRefusal } from "../support/refusals.ts";

const someAttributes: readonly unknown[] = [
  ...[{}, { ticket: "OPS-17", note: "any text, é\n" }, { "": "", constructor: "x", 7: "x" }],
];

function anAssignment(mutator: Mutator): object {
  return {
    ...{ number: mutator.below(9), project: "p", task: `t${mutator.below(9)}`, attempt: 1, token: "1.1" },
    ...{ kind: "count", user: "u", payload: "x".repeat(mutator.below(4)), timeoutMs: 60_000, maxAttempts: 3 },
    ...mutator.some({ encoding: "base64", stallMs: 5_000, stream: true, revoked: true }),
    ...mutator.oneIn(3, () => ({ attributes: mutator.copyOfOne(someAttributes) })),
    ...mutator.some({ traceparent: "00-1-2-01", tracestate: "a=1", waitedMs: 1.5 }),
  };
}

function someAssignments(mutator: Mutator): object {
  return { incarnation: "life", assignments: mutator.several(() => anAssignment(mutator)) };
}

const anAgent = (mutator: Mutator) => ({ agent: `a${mutator.below(9)}` });

function anAssignPush(mutator: Mutator): object {
  const others = () => mutator.several(() => ({ ...anAgent(mutator), ...someAssignments(mutator) }));
  return {
    ...{ type: "assign", term: 3, ...someAssignments(mutator) },
    ...mutator.some(anAgent(mutator)),
    ...mutator.oneIn(3, () => ({ others: others() })),
  };
}

function aRevokePush(mutator: Mutator): object {
  const attempts = mutator.several(() => ({ project: "p", task: `t${mutator.below(9)}`, attempt: 1 }));
  return { type: "revoke", term: 3, incarnation: "life", attempts, reason: "ended" };
}

/** @param cases one of so many answers is a refusal */
function someAnswers(mutator: Mutator, cases: number): object {
  const accepted = () => ({ ok: true, status: mutator.oneOf(["ok", "stale", "gone"]) });
  return { answers: mutator.several(() => (mutator.below(cases) === 0 ? aRefusal(mutator) : accepted())) };
}

function aResultResponse(mutator: Mutator): object {
  const other = () => (mutator.below(3) === 0 ? aRefusal(mutator) : someAnswers(mutator, 2));
  return {
    ...{ term: 3, idx: 7, ...someAnswers(mutator, 6) },
    ...mutator.oneIn(2, () => ({ others: mutator.several(other) })),
  };
}

const pushSchema = (type: AgentPush["type"]) =>
  agentPushSchema.options.find((option) => option.shape.type.value === type) ?? agentPushSchema;

const strange = [
  ...strangeValues,
  "stale",
  "assign",
  "revoke",
  "drain",
  "rejoin",
  { status: "ok", ok: true },
];

export const agentTrials: readonly Trial[] = [
  {
    name: "an assignment",
    isRight: isAssignPush,
    schema: agentPushSchema,
    part: pushSchema("assign"),
    make: anAssignPush,
    strange,
    isLeft: ({ type }: AgentPush) => type !== "assign",
  },
  {
    name: "a revocation",
    isRight: isRevokePush,
    schema: agentPushSchema,
    part: pushSchema("revoke"),
    make: aRevokePush,
    strange,
    isLeft: ({ type }: AgentPush) => type !== "revoke",
  },
  {
    name: "an answer to results",
    isRight: isUsualResultResponse,
    schema: resultResponseSchema,
    make: aResultResponse,
    strange,
    isLeft: ({ answers, others }: { readonly answers: readonly ResultAnswer[]; readonly others?: unknown }) =>
      others !== undefined || answers.some(({ ok }) => !ok),
  },
];
