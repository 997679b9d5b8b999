// Text about the journal in the error of a verb without an answer.

import { expect, it } from "vitest";
import type { Check } from "../../src/cli/doctor/check.ts";
import { unreportedTrouble } from "../../src/cli/journal-trouble.ts";

const full = (stream: string): Check => ({
  name: "room",
  status: "fail",
  found: `${stream} is full`,
  advice: `give it more: \`nats stream edit ${stream} --max-bytes 2\`, which is 2 B`,
});
const fine: Check = { name: "room", status: "ok", found: "S has 1 B of 9 B" };

it("names the problem and the remedy", () => {
  expect(unreportedTrouble([fine, full("J")], "no answer came in time")).toBe(
    "J is full; give it more: `nats stream edit J --max-bytes 2`, which is 2 B",
  );
  expect(unreportedTrouble([fine], "no answer came in time")).toBeUndefined();
  expect(unreportedTrouble([{ name: "stream", status: "fail", found: "J is not there" }], "")).toBe(
    "J is not there",
  );
});

it("does not repeat what the leader advised, and says what else is wrong", () => {
  const message = "the journal is full; give it more room: `nats stream edit J --max-bytes 2`";
  expect(unreportedTrouble([full("J")], message)).toBeUndefined();
  expect(unreportedTrouble([full("J"), full("S")], message)).toMatch(/^S is full/);
});
