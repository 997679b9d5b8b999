// Tokens of a call, read from the shapes in which providers report them.

/** Whole numbers ≥ 0. A missing number is unknown. */
export interface TokenUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
}

/** The later numbers replace the earlier ones: providers report the sum so far. */
export function laterUsage(before: TokenUsage, now: TokenUsage): TokenUsage {
  return { ...before, ...now };
}

/** Both summed: each message of LangChain reports what came with it. */
export function summedUsage(before: TokenUsage, now: TokenUsage): TokenUsage {
  return usageOf(sum(before.inputTokens, now.inputTokens), sum(before.outputTokens, now.outputTokens));
}

function sum(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined ? other : one + (other ?? 0);
}

/** Leaves out what is no count. */
export function usageOf(input: unknown, output: unknown): TokenUsage {
  return {
    ...(isCount(input) ? { inputTokens: input } : {}),
    ...(isCount(output) ? { outputTokens: output } : {}),
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** As answers and events of OpenAI's and Anthropic's APIs report them. Anthropic counts what it reads from its cache,
 *  and writes to its cache, beside `input_tokens`. */
export function wireUsage(answer: unknown): TokenUsage | undefined {
  const at = record(answer);
  const usage = record(at["usage"] ?? record(at["message"])["usage"] ?? record(at["response"])["usage"]);
  const input = usage["input_tokens"] ?? usage["prompt_tokens"];
  const cached = [usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]].filter(isCount);
  const all = isCount(input) ? cached.reduce((more, each) => more + each, input) : input;
  const found = usageOf(all, usage["output_tokens"] ?? usage["completion_tokens"]);
  return Object.keys(found).length === 0 ? undefined : found;
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
