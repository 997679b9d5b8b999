// The default weight of a task: from the name of its model and the length of its prompt. Tiers are LOCO's ("Task
// Weight", within its ranges); later models have the tier of a model of their price. The formula is ours. Integer
// thousandths, so that sums of weights are exact and the same everywhere.

import { InvalidValueError } from "../errors.ts";
import { said } from "./argument.ts";

/** The weight of a model of the cheapest tier with a prompt of up to 1,000 tokens. */
export const thousandthsPerWeight = 1_000;

/** Price classes by the words of a model's name, thousandths. */
const tierThousandthsByName: ReadonlyMap<string, number> = new Map([
  ["haiku", 1_000],
  ["gpt-3.5", 1_000],
  ["gpt-4o-mini", 1_000],
  ["gpt-4.1-mini", 1_000],
  ["gpt-4.1-nano", 1_000],
  ["gpt-5-mini", 1_000],
  ["gpt-5-nano", 1_000],
  ["gemini-flash", 1_000],
  ["gemini-pro", 2_000],
  ["o1-mini", 2_000],
  ["o3-mini", 2_000],
  ["o4-mini", 2_000],
  ["gpt-4o", 2_500],
  ["gpt-4.1", 2_500],
  ["gpt-5", 2_500],
  ["sonnet", 3_000],
  ["o3", 3_000],
  ["opus", 5_000],
  ["o1", 5_000],
  ["o3-pro", 5_000],
  ["gpt-4.5", 5_000],
  ["gpt-5-pro", 5_000],
]);
const unknownTierThousandths = 2_000;

/** Mean number of characters per token, for common text in common tokenizers. */
const charactersPerToken = 4;
/** A shorter prompt costs as much: the price is mostly the answer's, not the prompt's. */
const tokensPerTier = 1_000;

/** Weights of models with a short prompt, ≥ 1, by words of the models' names: `{ "my-model": 4 }`. */
export type ModelTiers = Readonly<Record<string, number>>;

/**
 * The weight of a task or slot lease: `{ weight: weightOf("gpt-4o", prompt.length) }`.
 *
 * @param model as its vendor writes it: `claude-3-5-haiku-20241022`, `openai/gpt-4o`, `ft:gpt-4o-mini:acme`
 * @param promptCharacters ≥ 0
 * @param tiers instead of LOCO's
 * @returns a number ≥ 1 of at most three decimals
 * @throws InvalidValueError for a model that is no text, or a length that is no number ≥ 0
 */
export function weightOf(model: string, promptCharacters: number, tiers?: ModelTiers): number {
  return weightThousandthsOf(model, promptCharacters, tiers) / thousandthsPerWeight;
}

/**
 * `tier × max(prompt tokens / 1000, 1)`, prompt tokens ≈ characters / 4.
 *
 * @returns thousandths, a whole number ≥ 1,000
 * @throws as `weightOf`
 */
export function weightThousandthsOf(model: string, promptCharacters: number, tiers?: ModelTiers): number {
  if (typeof model !== "string") {
    const sentence = `a model must be text, as "gpt-4o", not ${said(model)}`;
    throw new InvalidValueError(sentence, { field: "model" });
  }
  if (!(Number.isFinite(promptCharacters) && promptCharacters >= 0)) {
    const sentence = `the length of a prompt must be a number of characters, not ${said(promptCharacters)}`;
    throw new InvalidValueError(sentence, { field: "promptCharacters" });
  }
  const promptTokens = promptTokensOf(promptCharacters);
  return Math.round(tierThousandthsOf(model, tiers) * Math.max(promptTokens / tokensPerTier, 1));
}

/** Tokens of a prompt, estimated; may have a fraction. */
export function promptTokensOf(promptCharacters: number): number {
  return promptCharacters / charactersPerToken;
}

/**
 * The tier whose words all stand in the model's name, in order: `gemini-2.5-flash` is a `gemini-flash`. The longest
 * matching name decides, so that `gpt-4o-mini` is no `gpt-4o`. Whole words only: "gemini" contains "mini".
 *
 * @returns thousandths; 2,000 for an unknown model
 */
export function tierThousandthsOf(model: string, tiers?: ModelTiers): number {
  const words = wordsOf(model);
  const byName = tiers === undefined ? tierThousandthsByName : thousandthsOf(tiers);
  let longest = "";
  for (const name of byName.keys()) {
    if (name.length > longest.length && standsIn(words, wordsOf(name))) longest = name;
  }
  return byName.get(longest) ?? unknownTierThousandths;
}

function thousandthsOf(tiers: ModelTiers): ReadonlyMap<string, number> {
  return new Map(
    Object.entries(tiers).map(([name, tier]) => [name, Math.round(tier * thousandthsPerWeight)]),
  );
}

/**
 * Words of the name, without the route before a slash and the tag after a colon, as some providers add. A fine-tuned
 * model's own name begins after `ft:`.
 */
function wordsOf(model: string): string[] {
  const name = (model.toLowerCase().split("/").at(-1) ?? "").replace(/^ft:/, "");
  return (name.split(":")[0] ?? "").split(/[-_. ]/);
}

function standsIn(words: readonly string[], wanted: readonly string[]): boolean {
  let found = 0;
  for (const word of words) if (word === wanted[found]) found += 1;
  return found === wanted.length;
}
