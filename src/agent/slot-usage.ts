// What a holder reports of its use of slots, summed up over its reports. The leader charges budgets and rates.

import { InvalidMessageError } from "../errors.ts";
import { limits } from "../limits.ts";
import { type SlotUsage, slotUsageSchema } from "../protocol/slot-schemas.ts";
import { flag, readerOf } from "./options.ts";

/** Tokens used under a slot, as providers of models report them. At least one count has a name here. Further numbers
 *  and objects are ignored, so the `usage` of the AI SDK is a report. */
export interface SlotReport {
  /** Whole number ≥ 0. Undefined: unknown. */
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** All tokens, where the provider counts more than input and output. Default: input plus output. */
  readonly totalTokens?: number | undefined;
  /** The work was cut off, so more may have been used. Default false. */
  readonly partial?: boolean;
}

const { tokens } = slotUsageSchema.shape;

const readReport = readerOf<SlotReport>({
  each: { inputTokens: tokens, outputTokens: tokens, totalTokens: tokens, partial: flag },
  otherwise: {
    tokens: "totalTokens",
    input_tokens: "inputTokens",
    output_tokens: "outputTokens",
    prompt_tokens: "inputTokens",
    completion_tokens: "outputTokens",
    total_tokens: "totalTokens",
  },
  ignoresFigures: true,
  example: "{ inputTokens: 812, outputTokens: 240 }",
});

const counts = ["inputTokens", "outputTokens", "totalTokens"];

/** Adds a report.
 *  @param sum the sum of the earlier reports
 *  @returns `sum` when the provider knows no count
 *  @throws InvalidMessageError naming the field */
export function addReport(sum: SlotUsage | undefined, given: unknown): SlotUsage | undefined {
  const { inputTokens, outputTokens, totalTokens, partial } = readReport("report", given);
  if (inputTokens === undefined && outputTokens === undefined && totalTokens === undefined) {
    if (counts.some((name) => name in Object(given))) return sum;
    throw new InvalidMessageError("report: inputTokens, outputTokens or totalTokens is missing", {
      field: "totalTokens",
    });
  }
  const input = total(sum?.inputTokens, inputTokens);
  const output = total(sum?.outputTokens, outputTokens);
  return {
    tokens: total(sum?.tokens, totalTokens ?? (inputTokens ?? 0) + (outputTokens ?? 0)) ?? 0,
    ...(input === undefined ? {} : { inputTokens: input }),
    ...(output === undefined ? {} : { outputTokens: output }),
    ...(partial === true || sum?.partial === true ? { partial: true } : {}),
  };
}

/** At most as much as counts per attempt. */
function total(before: number | undefined, more: number | undefined): number | undefined {
  if (before === undefined && more === undefined) return undefined;
  return Math.min(limits.tokensPerAttemptMax, (before ?? 0) + (more ?? 0));
}
