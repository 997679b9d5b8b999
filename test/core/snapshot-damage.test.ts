// Damaged lines of a snapshot give the written state or none, and the error names the line. Lines with other values and
// new seals are refused, or are the exact snapshot of the resulting state: nothing is left out, mended or made up.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeState } from "../../src/core/snapshot/decode.ts";
import { encodeState } from "../../src/core/snapshot/encode.ts";
import { type RowName, sealedLine } from "../../src/core/snapshot/line.ts";
import { snapshotVersion } from "../../src/core/snapshot/swarm.ts";
import { JournalDamagedError } from "../../src/errors.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { pokeRareValues, richSwarm } from "../support/rich-swarm.ts";

const swarm = richSwarm();
pokeRareValues(swarm);
const whole: readonly string[] = [...encodeState(swarm.state)];
const right = fingerprint(swarm.state);
/** Runs per class of damage: twenty times as many found nothing more. */
const numRuns = 1_000;

/** The error, or undefined where the lines are accepted. @throws any unexpected error */
function refusalOf(lines: readonly string[], accepted: (state: ReturnType<typeof decodeState>) => void) {
  try {
    accepted(decodeState(lines));
    return undefined;
  } catch (error) {
    if (!(error instanceof JournalDamagedError)) throw error;
    expect(error.message).toMatch(/^snapshot line \d+: /);
    return error;
  }
}

/** Decodes to the same state, or not at all. */
function expectSameOrNone(lines: readonly string[]): void {
  refusalOf(lines, (state) => expect(fingerprint(state)).toBe(right));
}

function without(at: number): string[] {
  return whole.toSpliced(at, 1);
}

describe("lines that were damaged", () => {
  it("are refused, each line", () => {
    for (const at of whole.keys())
      expect(
        refusalOf(without(at), () => undefined),
        whole[at],
      ).toBeDefined();
    expect(() => decodeState([])).toThrow("snapshot line 0: is the last one there is");
    expect(() => decodeState(whole.slice(0, 3))).toThrow("snapshot line 3: is the last one there is");
  });

  it("are refused where a line stands twice or follows the end", () => {
    for (const [at, line] of whole.entries()) {
      expect(() => decodeState(whole.toSpliced(at, 0, line))).toThrow(`snapshot line ${at + 2}: `);
      expect(() => decodeState([...whole, line])).toThrow(
        `snapshot line ${whole.length + 1}: follows the last one`,
      );
    }
  });

  it("are refused where two lines are swapped", () => {
    const place = fc.nat(whole.length - 1);
    fc.assert(
      fc.property(place, place, (a, b) => {
        const swapped = whole.with(a, whole[b] ?? "").with(b, whole[a] ?? "");
        if (a === b) expectSameOrNone(swapped);
        else expect(() => decodeState(swapped)).toThrow(`snapshot line ${Math.min(a, b) + 1}: `);
      }),
    );
  });

  it("are refused where any byte differs", () => {
    const bytes = Buffer.from(whole.join("\n"));
    let refused = 0;
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, difference) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] ?? 0) ^ difference;
        const lines = changed.toString().split("\n");
        if (refusalOf(lines, (state) => expect(fingerprint(state)).toBe(right)) !== undefined) refused += 1;
      }),
      { numRuns },
    );
    expect(refused).toBe(numRuns);
  });
});

type Change =
  | { readonly how: "set"; readonly value: unknown }
  | { readonly how: "remove" | "add" | "drop-line" | "double-line" | "swap-lines" };

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      how: fc.constant("set" as const),
      value: fc.oneof(
        fc.integer({ min: -2, max: 12 }),
        fc.double(),
        fc.constantFrom("p", "k", "a1", "a2", "", "queued", "held", true, false, null, [], {}),
        fc.jsonValue(),
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      how: fc.constantFrom("remove", "add", "drop-line", "double-line", "swap-lines"),
    }),
  },
);

type Json = Record<string, unknown>;

/** A row's fields with one value changed, at any depth. */
function changed(fields: Json, pick: number, how: Change): Json {
  const copy = structuredClone(fields);
  const places = [...placesIn(copy)];
  const place = places[pick % Math.max(1, places.length)] ?? { owner: copy, name: "x" };
  if (how.how === "set") place.owner[place.name] = how.value;
  else if (how.how === "add") place.owner[`${place.name}x`] = 1;
  else delete place.owner[place.name];
  return copy;
}

function* placesIn(owner: Json): Generator<{ readonly owner: Json; readonly name: string }> {
  for (const [name, value] of Object.entries(owner)) {
    yield { owner, name };
    if (typeof value === "object" && value !== null) yield* placesIn(value as Json);
  }
}

function rowsOf(lines: readonly string[]): [RowName, Json][] {
  return lines.map((line) => JSON.parse(line).slice(1, 3));
}

function changedRows(at: number, pick: number, how: Change): [RowName, Json][] {
  const rows = rowsOf(whole);
  const [name, fields] = rows[at] as [RowName, Json];
  if (how.how === "drop-line") return rows.toSpliced(at, 1);
  if (how.how === "double-line") return rows.toSpliced(at, 0, [name, fields]);
  if (how.how !== "swap-lines") return rows.with(at, [name, changed(fields, pick, how)]);
  const other = (at + 1 + (pick % 3)) % rows.length;
  return rows.with(at, rows[other] as [RowName, Json]).with(other, [name, fields]);
}

function sealed(rows: readonly (readonly [RowName, Json])[]): string[] {
  return rows.map((row, at) => sealedLine(at + 1, row));
}

/** Refused, or the exact snapshot of the resulting state. */
function fateOf(lines: readonly string[]): "refused" | "accepted" {
  const error = refusalOf(lines, (state) => {
    const again = [...encodeState(state)];
    if (again.join() !== lines.join()) expect(rowsOf(again)).toEqual(rowsOf(lines));
  });
  return error === undefined ? "accepted" : "refused";
}

describe("changed lines with valid seals", () => {
  it("are refused, or are the snapshot of the resulting state", () => {
    const counts = { refused: 0, accepted: 0 };
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.nat(200), change, (at, pick, how) => {
        counts[fateOf(sealed(changedRows(at, pick, how)))] += 1;
      }),
      { numRuns },
    );
    expect(counts.refused).toBeGreaterThan(numRuns / 3);
    expect(counts.accepted).toBeGreaterThan(0);
  });

  it("are refused, or are the snapshot of the resulting state, with a list or an object emptied anywhere", () => {
    const counts = { refused: 0, accepted: 0 };
    for (const [at, [, fields]] of rowsOf(whole).entries())
      for (const [pick, { owner, name }] of [...placesIn(fields)].entries()) {
        if (typeof owner[name] !== "object" || owner[name] === null) continue;
        const value = Array.isArray(owner[name]) ? [] : {};
        counts[fateOf(sealed(changedRows(at, pick, { how: "set", value })))] += 1;
      }
    expect(counts.refused).toBeGreaterThan(0);
    expect(counts.accepted).toBeGreaterThan(0);
  });

  it("are refused where holds of two scopes are swapped", () => {
    const rows = rowsOf(whole);
    const at = rows.findIndex(([name, { on }], of) => name === "hold" && rows[of + 1]?.[1]["on"] !== on);
    const [first, second] = [rows[at], rows[at + 1]] as [[RowName, Json], [RowName, Json]];
    expect([first[0], second[0]]).toEqual(["hold", "hold"]);
    expect(() => decodeState(sealed(rows.with(at, second).with(at + 1, first)))).toThrow(
      "a hold on agent follows one on type",
    );
  });

  it("name a field with an empty list in place of an absent one", () => {
    const rows = rowsOf(whole);
    const at = rows.findIndex(([, fields]) => fields["clears"] !== undefined);
    const [name, fields] = rows[at] as [RowName, Json];
    const lines = sealed(rows.with(at, [name, { ...fields, clears: [] }]));
    expect(() => decodeState(lines)).toThrow("attempt.clears is [], not one name at least, or absent");
  });

  it("are refused where their version differs, and the error says so", () => {
    const [name, header] = rowsOf(whole)[0] as [RowName, Json];
    for (const version of [snapshotVersion - 1, snapshotVersion + 1]) {
      const other = sealed([[name, { ...header, version }], ...rowsOf(whole).slice(1)]);
      const sentence = `is of version ${version}, which another waggle wrote; this one reads version ${snapshotVersion}`;
      expect(() => decodeState(other)).toThrow(sentence);
    }
  });

  it("are refused where they hold unknown fields", () => {
    const rows = rowsOf(whole);
    const at = rows.findIndex(([name]) => name === "task");
    const [name, fields] = rows[at] as [RowName, Json];
    const unknown = sealed(rows.with(at, [name, { ...fields, mood: "good" }]));
    expect(() => decodeState(unknown)).toThrow(`snapshot line ${at + 1}: task has fields that this version`);
    const row = sealed(rows.with(at, ["mood" as RowName, {}]));
    expect(() => decodeState(row)).toThrow(
      `snapshot line ${at + 1}: is a row that this version does not know`,
    );
  });

  it("name the invalid field", () => {
    const rows = rowsOf(whole);
    const at = rows.findIndex(([name]) => name === "task");
    const [name, fields] = rows[at] as [RowName, Json];
    const spec = { ...(fields["spec"] as Json), weight: "heavy" };
    const lines = sealed(rows.with(at, [name, { ...fields, spec }]));
    const error = refusalOf(lines, () => undefined);
    expect(error?.field).toBe("task.spec.weight");
    expect(error?.message).toContain('task.spec.weight is "heavy", not a number');
  });
});
