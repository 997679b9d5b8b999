// Values of messages and events for property tests of their JSON.

import fc from "fast-check";

/** An arbitrary of each field, required or not. */
type Fields<Of> = { readonly [Key in keyof Required<Of>]: fc.Arbitrary<unknown> };

/** Odd characters, and lengths around the border between short and long texts. */
export const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 20 }) },
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.json({ maxDepth: 2 }),
  fc.string({ minLength: 250, maxLength: 260 }),
  fc.constantFrom("", '"', "\\", "\u0000", "\u001f", "\u007f", "é", "蜂", "🐝", "\ud83d", "\udc1d", "\u2028"),
);

export function record<Of>(
  fields: Fields<Of>,
  requiredKeys: readonly (keyof Of & string)[],
): fc.Arbitrary<Of> {
  return fc.record(fields as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: [...requiredKeys],
    noNullPrototype: true,
  }) as fc.Arbitrary<Of>;
}
