// The weight of a task by its model and prompt.

import { describe, expect, it } from "vitest";
import { tierThousandthsOf, weightOf, weightThousandthsOf } from "../../src/state/weight.ts";

describe("tier of a model", () => {
  it.each([
    ["haiku", 1_000],
    ["claude-3-5-haiku-20241022", 1_000],
    ["gpt-4o-mini", 1_000],
    ["gpt-4o-mini-2024-07-18", 1_000],
    ["gemini-flash", 1_000],
    ["gemini-2.5-flash", 1_000],
    ["gemini-pro", 2_000],
    ["gemini-1.5-pro-002", 2_000],
    ["gpt-4o", 2_500],
    ["gpt-4o-2024-11-20", 2_500],
    ["openai/GPT-4o", 2_500],
    ["claude-sonnet-4-5", 3_000],
    ["claude-3-opus-20240229", 5_000],
    ["us.anthropic.claude-3-opus-20240229-v1:0", 5_000],
    ["o1", 5_000],
    ["o1-preview", 5_000],
    ["o1-mini-2024-09-12", 2_000],
    ["o3-mini", 2_000],
    ["o4-mini", 2_000],
    ["o3", 3_000],
    ["o3-pro", 5_000],
    ["gpt-4.1", 2_500],
    ["gpt-4.1-mini-2025-04-14", 1_000],
    ["gpt-4.1-nano", 1_000],
    ["gpt-5", 2_500],
    ["gpt-5.1", 2_500],
    ["gpt-5-2025-08-07", 2_500],
    ["gpt-5-mini", 1_000],
    ["gpt-5-nano", 1_000],
    ["gpt-5-pro", 5_000],
    ["gpt-3.5-turbo", 1_000],
    ["gpt-4.5-preview", 5_000],
    ["gpt_4o_mini", 1_000],
    ["GPT 4o mini", 1_000],
    ["claude.3.5.sonnet", 3_000],
    ["anthropic.haiku", 1_000],
    ["ft:gpt-4o-mini:acme::opus", 1_000],
    ["openai/ft:gpt-4o:acme", 2_500],
  ])("%s: %d", (model, tier) => expect(tierThousandthsOf(model)).toBe(tier));

  it.each(["", "llama3:70b", "gemini", "gpt-4", "mini", "solo1", "haikus", "flash-gemini", "octopus"])(
    "'%s' is of no known tier: words count whole and in order",
    (model) => expect(tierThousandthsOf(model)).toBe(2_000),
  );
});

describe("weight in thousandths", () => {
  it.each([
    ["haiku", 0, 1_000],
    ["haiku", 4_000, 1_000],
    ["haiku", 4_001, 1_000],
    ["haiku", 4_004, 1_001],
    ["haiku", 40_000, 10_000],
    ["gpt-4o", 6_000, 3_750],
    ["opus", 100_000, 125_000],
    ["unheard-of", 8_000, 4_000],
  ])("%s with %d characters: %d", (model, characters, weight) => {
    expect(weightThousandthsOf(model, characters)).toBe(weight);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, undefined, Symbol("many"), Object.create(null)])(
    "refuses a prompt of %o characters",
    (characters) => {
      expect(() => weightThousandthsOf("haiku", characters as number)).toThrow(
        expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field: "promptCharacters" }),
      );
    },
  );

  it("has the unit of a submitted weight", () => {
    expect(weightOf("haiku", 0)).toBe(1);
    expect(weightOf("gpt-4o", 6_000)).toBe(3.75);
    expect(weightOf("haiku", 4_004)).toBe(1.001);
  });

  it("takes another table of tiers", () => {
    const tiers = { "my-model": 4, "my-model-mini": 1.5 };
    expect(weightOf("my-model", 0, tiers)).toBe(4);
    expect(weightOf("acme/my-model-2-mini", 8_000, tiers)).toBe(3);
    expect(weightOf("opus", 0, tiers)).toBe(2);
  });

  it.each([undefined, null, 4, Symbol("haiku"), Object.create(null)])("refuses %o for a model", (model) => {
    expect(() => weightOf(model as unknown as string, 1)).toThrow(
      expect.objectContaining({ code: "WAGGLE_INVALID_VALUE", field: "model" }),
    );
  });
});
