// The server of each part in the short form.

import { expect, it } from "vitest";
import { type Part, parts } from "./parts.ts";
import { shortRounds, shortServer } from "./short-form.ts";

const short = Object.keys(shortRounds).flatMap((name) => parts.find((part) => part.name === name) ?? []);

it("knows its parts", () => {
  expect(short.map(({ name }) => name)).toEqual(Object.keys(shortRounds));
});

it.each([[["2.9.10"]], [["2.9.10", "2.15.1"]], [["2.9.10", "2.10.27", "2.15.1"]]])(
  "strikes each server of %j",
  (servers) => {
    const struck = short.map((part) => shortServer(part, short, servers));
    expect(new Set(struck)).toEqual(new Set(servers));
  },
);

it("gives parts with one server turns, and those with three the newest", () => {
  const servers = ["2.9.10", "2.10.27", "2.15.1"];
  const serverOf = (part: Part) => `${part.name} ${shortServer(part, short, servers)}`;
  expect(short.map(serverOf)).toEqual([
    "leader-kills 2.9.10",
    "segment-changes 2.10.27",
    "leader-stops 2.15.1",
    "agent-kills 2.9.10",
    "stream-leader 2.15.1",
    "network 2.10.27",
  ]);
});
