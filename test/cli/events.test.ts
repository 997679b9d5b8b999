// `waggle events`: its filters, alone and together, contents on request, and wrong flags.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Workplace } from "../support/waggle-process.ts";
import { aShell, runIn } from "./shell.ts";

let workplace: Workplace;

beforeAll(async () => {
  workplace = await Workplace.make();
  await workplace.start("up").says("leading");
  await waggle("submit", "--kind", "audited", "--id", "t1", "--project", "acme", "--text", "a secret");
  await waggle("submit", "--kind", "other", "--id", "t2", "--project", "acme");
  await waggle("cancel", "t1");
});
afterAll(() => workplace.clear());

const waggle = (...argv: readonly string[]) => runIn(aShell({ cwd: workplace.folder }), ...argv);

async function eventsOf(...flags: readonly string[]) {
  const { code, stdout } = await waggle("events", "--json", ...flags);
  expect(code).toBe(0);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { event: { type: string; task?: unknown } }).event);
}

const typesOf = async (...flags: readonly string[]) => (await eventsOf(...flags)).map(({ type }) => type);

describe("filters", () => {
  it("by kind give the events of the kind's tasks, also events without a kind", async () => {
    expect(await typesOf("--kind", "audited")).toEqual(["TaskSubmitted", "TaskCancelled"]);
    expect(await typesOf("--kind", "other")).toEqual(["TaskSubmitted"]);
  });

  it("must all hold", async () => {
    const acme = ["--kind", "audited", "--project", "acme"];
    expect(await typesOf(...acme, "--type", "TaskCancelled")).toEqual(["TaskCancelled"]);
    expect(await typesOf(...acme, "--task", "t2")).toEqual([]);
    expect((await waggle("events", ...acme, "--agent", "a1")).stderr).toContain(
      "no event of agent a1, of kind audited, of project acme",
    );
  });

  it("leave payloads out unless they are asked for", async () => {
    const [bare] = await eventsOf("--task", "t1");
    expect(bare?.task).not.toHaveProperty("payload");
    const [whole] = await eventsOf("--task", "t1", "--contents");
    expect(whole?.task).toMatchObject({ payload: "a secret" });
  });
});

it.each([
  [["--from", "100000"], "batch 100,000 does not exist yet: the journal ends at batch"],
  [["--from", "100000", "--follow"], "does not exist yet"],
  [["--from", "0"], "--from: must be a batch index from 1"],
  [["--from", "yesterday"], "--from: must be start, a batch index, or a time"],
  [["--type", "TaskAsigned"], "did you mean TaskAssigned?"],
  [["--kind", "two words"], "printable characters without spaces"],
  [["--task", "two words"], "printable characters without spaces"],
  [["--agent", "a.b"], "must be 1–64 characters"],
  [["--project", "a.b"], "must be 1–64 characters"],
  [["--tail", "0"], "must be a whole number from 1"],
])("%s is refused with the reason", async (flags, sentence) => {
  expect(await waggle("events", ...flags)).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining(sentence),
  });
});

it("every command of the guide that ends by itself runs", async () => {
  const guide = readFileSync(new URL("../../docs/audit.md", import.meta.url), "utf8");
  const lines = guide.split("\n").filter((line) => line.startsWith("waggle events"));
  expect(lines.length).toBeGreaterThanOrEqual(4);
  for (const line of lines) {
    const [, ...words] = line.replace(/#.*/, "").trim().split(/\s+/);
    // The journal of this test is shorter than that of the guide, and following ends with Ctrl-C alone.
    const argv = words.filter((word) => word !== "--follow").map((word) => (word === "120" ? "2" : word));
    expect(await waggle(...argv), line).toMatchObject({ code: 0 });
  }
});
