// Needs: one form for equal needs, met by labels, and near misses where no agent meets them.

import { describe, expect, it } from "vitest";
import {
  isSameNeeds,
  labelFlags,
  meetsNeeds,
  needsOf,
  needsText,
  needsWords,
  unmetNeeds,
} from "../../src/state/needs.ts";

const needs = needsOf({ region: ["us", "eu", "us"], gpu: "a100" }) ?? {};

describe("needs", () => {
  it("have one form: names and values in order, each once, a single value as a list", () => {
    expect(JSON.stringify(needs)).toBe('{"gpu":["a100"],"region":["eu","us"]}');
    expect(needsOf({})).toBeUndefined();
    expect(needsOf(undefined)).toBeUndefined();
    expect(isSameNeeds(needs, needsOf({ gpu: ["a100"], region: ["eu", "us"] }))).toBe(true);
    expect(isSameNeeds(needs, needsOf({ gpu: "a100" }))).toBe(false);
    expect(isSameNeeds(needs, undefined)).toBe(false);
  });

  it("are met by a label of an accepted value for each name", () => {
    expect(meetsNeeds({ gpu: "a100", region: "us", more: "x" }, needs)).toBe(true);
    expect(meetsNeeds({ gpu: "a100", region: "ap" }, needs)).toBe(false);
    expect(meetsNeeds({ gpu: "a100" }, needs)).toBe(false);
    expect(meetsNeeds({}, undefined)).toBe(true);
    expect(meetsNeeds({}, { constructor: ["x"] })).toBe(false);
  });

  it("have a text that only equal needs share, whatever their values hold", () => {
    expect(needsText(needs)).toBe("gpu=a100 region=eu,us");
    expect(needsWords(needs)).toBe("gpu=a100, and region=eu or region=us");
    const texts = [
      { a: "b,c" },
      { a: ["b", "c"] },
      { a: "b c=d" },
      { a: "b", c: "d" },
      { a: '"b"' },
      { a: "" },
    ];
    expect(new Set(texts.map((each) => needsText(needsOf(each) ?? {}))).size).toBe(texts.length);
  });

  it("give the flags of an agent with the needed labels", () => {
    expect(labelFlags(needs)).toBe("--label gpu=a100 --label region=eu");
    expect(labelFlags({ note: ["two words"] })).toBe("--label 'note=two words'");
  });
});

describe("near misses", () => {
  it("name what the closest agents lack, and similar values of the label", () => {
    const agents = [{ gpu: "a1000", region: "eu" }, { gpu: "l4", region: "eu" }, { region: "ap" }];
    expect(unmetNeeds(needs, agents)).toMatchObject({ unmet: { gpu: ["a100"] }, nearMisses: ["gpu=a1000"] });
  });

  it("name other values where none is similar, and labels with a similar name", () => {
    expect(unmetNeeds({ gpu: ["tpu-v5"] }, [{ gpu: "a100" }, { gpu: "h100" }]).nearMisses).toEqual([
      "gpu=a100",
      "gpu=h100",
    ]);
    expect(unmetNeeds({ gpu: ["a100"] }, [{ gpus: "a100" }]).nearMisses).toEqual(["gpus=a100"]);
    expect(unmetNeeds({ gpu: ["a100"] }, [{ zone: "eu" }, {}])).toEqual({
      unmet: { gpu: ["a100"] },
      isUnmetByAll: true,
      nearMisses: [],
    });
  });

  it("that each some agent meets are unmet together, and no near miss is a wanted value", () => {
    const agents = [
      { gpu: "a10", region: "eu" },
      { gpu: "a100", region: "asia" },
    ];
    expect(unmetNeeds({ gpu: ["a100"], region: ["eu"] }, agents)).toEqual({
      unmet: { gpu: ["a100"] },
      isUnmetByAll: false,
      nearMisses: ["gpu=a10"],
    });
  });
});
