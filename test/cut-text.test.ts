// Text is cut between characters: property by property, and where users meet it.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { wordsOf } from "../src/agent/words.ts";
import { renderTable } from "../src/cli/table.ts";
import { headOf, tailOf } from "../src/cut-text.ts";
import { limits } from "../src/limits.ts";
import { check } from "../src/protocol/codec.ts";
import { submitRequestSchema } from "../src/protocol/schemas.ts";

const wellFormed = fc.string({ unit: fc.constantFrom("a", "é", "🐝", "\u{1d4b3}", "한") });
const lone = /\p{Surrogate}/u;

describe("text", () => {
  it("is never cut inside a character, and keeps all that fits", () => {
    fc.assert(
      fc.property(wellFormed, fc.nat(40), (text, lengthMax) => {
        const head = headOf(text, lengthMax);
        const tail = tailOf(text, lengthMax);
        for (const part of [head, tail]) {
          expect(part).not.toMatch(lone);
          expect(part.length).toBeLessThanOrEqual(lengthMax);
          expect(part.length).toBeGreaterThanOrEqual(Math.min(text.length, lengthMax - 1));
        }
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      }),
    );
  });

  it("of an error ends before the character that does not fit", () => {
    const words = wordsOf(new Error(`${"x".repeat(limits.errorCharactersMax - 1)}🐝`));
    expect(words).toBe("x".repeat(limits.errorCharactersMax - 1));
  });

  it("in a refusal is cut between characters", () => {
    const kind = `${"x".repeat(39)}🐝`;
    const refused = check({ tasks: kind }, submitRequestSchema);
    expect(refused).toMatchObject({ ok: false, message: expect.stringContaining(`'${"x".repeat(39)}'`) });
  });

  it("in a table is cut between characters, whatever the width", () => {
    for (let columns = 6; columns < 30; columns += 1) {
      const table = renderTable(
        { columns, colors: { dim: (text: string) => text } as never },
        [{ head: "kind" }, { head: "tasks" }],
        [["🐝🐝🐝🐝🐝🐝🐝", 3]],
      );
      expect(table).not.toMatch(lone);
    }
  });
});
