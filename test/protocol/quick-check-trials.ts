// The messages of the checks in src/protocol/quick-checks.ts.

import { isPlainDonePush, isPlainSubmitResponse } from "../../src/protocol/quick-checks.ts";
import {
  type DonePush,
  donePushSchema,
  endedTaskStateSchema,
  type SubmitAnswer,
  submitResponseSchema,
} from "../../src/protocol/schemas.ts";
import type { Mutator } from "../support/mutator.ts";
import { strangeValues, type Trial } from "../support/quick-check-trial.ts";
import { aRefusal } from "../support/refusals.ts";

function aDonePush(mutator: Mutator): DonePush {
  const { term, idx } = aPoint(mutator);
  return { term, idx, ended: mutator.several(() => anOutcome(mutator)) as DonePush["ended"] };
}

function anOutcome(mutator: Mutator): object {
  return {
    ...{ project: "default", task: `t${mutator.below(9)}`, attempts: mutator.below(4) },
    state: mutator.oneOf(endedTaskStateSchema.options),
    ...mutator.some({ round: 2, agent: "a1", result: "done", encoding: "base64", tokens: 7, latencyMs: 1.5 }),
    ...mutator.some({ resultDigest: { sha256: "0f", bytes: 4 }, gone: true }),
    ...mutator.some({ failureClass: "invalid", reason: "attempts", error: "no" }),
  };
}

function anAnswer(mutator: Mutator): object {
  if (mutator.below(8) === 0) return aRefusal(mutator);
  const duplicate = mutator.below(2) === 0;
  return {
    ...{ ok: true, task: `t${mutator.below(9)}` },
    ...mutator.some({ duplicate }),
    ...mutator.oneIn(6, () => ({ warnings: mutator.several(() => aWarning(mutator)) })),
  };
}

function aWarning(mutator: Mutator): object {
  return {
    code: mutator.oneOf(["no-agent-serves-kind", "no-agent-has-labels"]),
    nearMisses: mutator.several(() => "count"),
    ...mutator.some({ needs: "gpu=a100" }),
  };
}

const aPoint = (mutator: Mutator) => ({ term: mutator.below(9), idx: mutator.below(99) });

const strange = [...strangeValues, "completed", "dead-lettered", "cancelled"];

export const protocolTrials: readonly Trial[] = [
  {
    name: "an answer to submissions",
    isRight: isPlainSubmitResponse,
    schema: submitResponseSchema,
    make: (mutator) => ({ ...aPoint(mutator), answers: mutator.several(() => anAnswer(mutator)) }),
    strange,
    isLeft: ({ answers }: { readonly answers: readonly SubmitAnswer[] }) =>
      answers.some((answer) => !answer.ok || answer.warnings !== undefined),
  },
  {
    name: "a notification of outcomes",
    isRight: isPlainDonePush,
    schema: donePushSchema,
    make: aDonePush,
    strange,
  },
];
