// Values of flags.

import { InvalidArgumentError } from "commander";
import { describe, expect, it } from "vitest";
import {
  attributeMap,
  labelMap,
  nameList,
  needMap,
  numberBetween,
  parseDuration,
  parseFrom,
  parseTime,
  wholeNumber,
} from "../../src/cli/values.ts";

const now = Date.parse("2026-11-20T12:00:00Z");

describe("durations", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5s", 1_500],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["1h30m", 5_400_000],
    ["0s", 0],
  ])("%s", (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each(["30", "", "s", "5 m", "-5m", "5min", "1e3s", "5m!"])("%j is none", (text) =>
    expect(() => parseDuration(text)).toThrow(InvalidArgumentError),
  );
});

describe("times", () => {
  it.each([
    ["+5m", now + 300_000],
    ["-1h", now - 3_600_000],
    ["2026-11-20T18:00:00Z", Date.parse("2026-11-20T18:00:00Z")],
    ["2026-11-20T18:00:00.5+02:00", Date.parse("2026-11-20T16:00:00.500Z")],
    ["2026-11-20", Date.parse("2026-11-20")],
    ["2028-02-29", Date.parse("2028-02-29")],
  ])("%s", (text, at) => expect(parseTime(text, now).getTime()).toBe(at));

  it.each(["14:30", "00:00", "7:05", "23:59:59", "12:00", "12:00:00"])("the next %s on the clock", (text) => {
    const noon = new Date(2026, 10, 20, 12).getTime();
    const at = parseTime(text, noon);
    expect(at.toTimeString().slice(0, 8)).toBe(`${text.padStart(5, "0")}:00`.slice(0, 8));
    expect(at.getTime()).toBeGreaterThan(noon);
    expect(at.getTime() - noon).toBeLessThanOrEqual(24 * 3_600_000);
  });

  it.each([
    "24:00",
    "12:60",
    "1:5",
    "14:30Z",
    "tomorrow",
    "2026-13-01",
    "2026-11-20T25:00:00Z",
    "2027-02-30T10:00:00Z",
    "2027-02-29",
    "2026-04-31",
    "2026-01-00",
    "2026-11-20T24:00:00Z",
    "2026-12-31T23:59:60Z",
    "2026-11-20T10:60:00Z",
    "1700000000000",
    "+5",
    "",
  ])("%j is none", (text) => expect(() => parseTime(text, now)).toThrow(InvalidArgumentError));
});

describe("places in the journal", () => {
  it.each([
    ["start", "start"],
    ["1", 1],
    ["120", 120],
    ["2026-11-20T18:00:00Z", new Date("2026-11-20T18:00:00Z")],
  ])("%s", (text, place) => expect(parseFrom(text)).toEqual(place));

  it.each(["0", "-1", "1.5", "end", "2027-02-30", "99999999999999999999"])("%j is none", (text) =>
    expect(() => parseFrom(text)).toThrow(InvalidArgumentError),
  );
});

it("numbers keep to their bounds", () => {
  expect(wholeNumber(-5, 5)("-5")).toBe(-5);
  expect(numberBetween(1, 2)("1.5")).toBe(1.5);
  for (const text of ["6", "1.5", "", "1e0", "0x1", "NaN"]) expect(() => wholeNumber(-5, 5)(text)).toThrow();
  for (const text of ["0.9", "", " ", "NaN", "Infinity"]) expect(() => numberBetween(1, 2)(text)).toThrow();
});

it("lists may be repeated, written with commas, or both", () => {
  expect(nameList("a, b", nameList("c", undefined))).toEqual(["c", "a", "b"]);
  expect(() => nameList("a,,b", undefined)).toThrow(InvalidArgumentError);
});

it("needs take several values, with commas or by repeating the label", () => {
  expect(needMap("region=eu, us", needMap("gpu=a100", needMap("region=ap", undefined)))).toEqual({
    region: ["ap", "eu", "us"],
    gpu: ["a100"],
  });
  for (const text of ["gpu", "=a100", "two words=x", `gpu=${"x".repeat(129)}`])
    expect(() => needMap(text, undefined)).toThrow(InvalidArgumentError);
  for (const text of ["gpu=", "gpu=a100,"])
    expect(() => needMap(text, undefined)).toThrow("must not have an empty value; name one, like gpu=a100");
});

it("attributes split at the first =, and their size is left to the task", () => {
  expect(attributeMap("b=x=y", attributeMap("a=", undefined))).toEqual({ a: "", b: "x=y" });
  expect(attributeMap(`a=${"x".repeat(5_000)}`, undefined)["a"]).toHaveLength(5_000);
  expect(() => attributeMap("a=2", { a: "1" })).toThrow(
    "the attribute a is given twice: an attribute has one value",
  );
  for (const text of ["ticket", "=x", "two words=x", "__proto__=x"])
    expect(() => attributeMap(text, undefined)).toThrow(InvalidArgumentError);
});

it("labels split at the first =", () => {
  expect(labelMap("b=x=y", labelMap("a=", undefined))).toEqual({ a: "", b: "x=y" });
  expect(() => labelMap("=x", undefined)).toThrow(InvalidArgumentError);
});
