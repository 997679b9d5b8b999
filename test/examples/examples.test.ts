// Each example as its reader runs it: in a separate process, in a folder where `waggle up` runs.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Workplace } from "../support/waggle-process.ts";

const folder = new URL("../../examples/", import.meta.url);

let workplace: Workplace;
let coordinator: ReturnType<Workplace["start"]>;
const started: Example[] = [];

beforeAll(async () => {
  workplace = await Workplace.make();
  coordinator = workplace.start("up");
  await coordinator.says("leading");
});
afterEach(async () => {
  await Promise.all(started.splice(0).map((example) => example.end("SIGKILL")));
});
afterAll(async () => {
  await workplace?.clear();
});

/** A running example and its output. */
class Example {
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  readonly #listeners = new Set<() => void>();
  printed = "";

  constructor(name: string, args: readonly string[]) {
    const loader = name.endsWith(".ts") ? ["--import", import.meta.resolve("tsx")] : [];
    const { NATS_URL: _url, NATS_CONTEXT: _context, ...env } = process.env;
    this.#child = spawn(process.execPath, [...loader, fileURLToPath(new URL(name, folder)), ...args], {
      cwd: workplace.folder,
      env: { ...env, HOME: workplace.folder },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.printed += text;
        for (const listener of this.#listeners) listener();
      });
    }
    this.#ended = once(this.#child, "close").then(([code]) => {
      for (const listener of this.#listeners) listener();
      return code as number | null;
    });
  }

  async prints(text: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        if (this.printed.includes(text)) resolve();
        else if (this.#child.exitCode !== null)
          reject(new Error(`it ended without printing ${text}:\n${this.printed}`));
      };
      this.#listeners.add(look);
      look();
    });
  }

  /** @returns the exit code */
  async finish(): Promise<number | null> {
    return await this.#ended;
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal);
    return await this.#ended;
  }
}

function run(name: string, ...args: readonly string[]): Example {
  const example = new Example(name, args);
  started.push(example);
  return example;
}

it("runs every example there is", () => {
  const programs = readdirSync(folder).filter((name) => /\.[jt]s$/.test(name));
  expect(programs.sort()).toEqual([
    "agent-function.ts",
    "agent-llm-like.ts",
    "audit-subscriber.js",
    "follow-events.ts",
    "plain-javascript.js",
    "sealed-payloads.ts",
    "shared-slots.ts",
    "submit-and-wait.ts",
    "typed-kind.ts",
    "watch-progress.ts",
  ]);
});

it("submit-and-wait gets its result from agent-function, which drains at Ctrl-C", async () => {
  const agent = run("agent-function.ts");
  await agent.prints("counts words");
  const submit = run("submit-and-wait.ts", "one two  three");
  expect(await submit.finish()).toBe(0);
  expect(submit.printed).toMatch(/accepted as \S+, in batch \d+/);
  expect(submit.printed).toMatch(/3 words, counted by \S+-count-/);
  expect(await agent.end("SIGINT")).toBe(0);
  const status = await workplace.runVerb("status", "--json");
  expect(status.stdout).not.toContain('"status":"ready"');
});

it("sealed-payloads gets its result, and neither payload nor result is readable in the journal", async () => {
  const sealed = run("sealed-payloads.ts");
  expect(await sealed.finish()).toBe(0);
  expect(sealed.printed).toMatch(/^4 words\nthe journal has [A-Za-z0-9+/]{40,}=*\n$/);
  const events = await workplace.runVerb("events", "--from", "start", "--json", "--contents");
  expect(events.stdout).toContain("secret-count");
  expect(events.stdout).not.toMatch(/nobody else reads this|4 words/);
});

it("watch-progress sees agent-llm-like at work", async () => {
  const agent = run("agent-llm-like.ts");
  await agent.prints("summarizes");
  const watch = run("watch-progress.ts", "a b c d e f g h i j k l");
  expect(await watch.finish()).toBe(0);
  expect(watch.printed).toMatch(/attempt 1 goes to/);
  expect(watch.printed).toMatch(/\d+ %/);
  expect(watch.printed).toContain("“a e i”, for 12 tokens");
  expect(await agent.end("SIGTERM")).toBe(0);
});

it("plain-javascript brings its own agent and closes every connection", async () => {
  const program = run("plain-javascript.js");
  expect(await program.finish()).toBe(0);
  expect(program.printed).toBe("BEES\nDANCE\nTO\nVOTE\n");
});

it("typed-kind brings its own agent, and its result is a value", async () => {
  const program = run("typed-kind.ts");
  expect(await program.finish()).toBe(0);
  expect(program.printed).toBe("2 words of four letters or more\n");
});

it("shared-slots runs two calls at once and gives everything back", async () => {
  const program = run("shared-slots.ts");
  expect(await program.finish()).toBe(0);
  expect(program.printed.match(/has a slot/g)).toHaveLength(4);
  expect(program.printed).toContain("wrapped: AND REST");
  // Two tasks have a slot before the first ends.
  expect(program.printed).toMatch(/^\w+: has a slot\n\w+: has a slot\n\w+: [A-Z]+\n/);
  const status = JSON.parse((await workplace.runVerb("status", "--json")).stdout);
  expect(status.resources).toMatchObject([{ resource: "gpt-4o", slots: 2, inUse: 0, waiting: 0, grants: 5 }]);
});

it("follow-events prints the past, and goes on", async () => {
  const past = run("follow-events.ts", "--to-present");
  expect(await past.finish()).toBe(0);
  expect(past.printed).toMatch(/ 1 TermStarted /);

  const following = run("follow-events.ts");
  await following.prints("TermStarted");
  await workplace.runVerb("submit", "--kind", "nobody-does-this", "--id", "seen-live", "--text", "x");
  await following.prints("seen-live");
});

/** Each printed or recorded event as text, in order of batches; events of one batch in any order. */
function ordered(lines: string): string[] {
  const records = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { idx: number; term: number; event: object });
  return records
    .filter(({ event }) => "type" in event && event.type !== "TermRenewed")
    .map(({ idx, term, event }) => `${String(idx).padStart(6)} ${term} ${JSON.stringify(event)}`)
    .sort();
}

it("audit-subscriber prints every event once: the past, live, and after a change of the leader", async () => {
  const past = run("audit-subscriber.js", "1", "--to-present");
  expect(await past.finish()).toBe(0);
  expect(past.printed).toContain('"type":"TermStarted"');

  const following = run("audit-subscriber.js", "1");
  await following.prints('"type":"TermStarted"');
  await workplace.runVerb("submit", "--kind", "audited", "--id", "live1", "--text", "in the journal alone");
  await following.prints('"id":"live1"');
  await coordinator.kill("SIGKILL");
  coordinator = workplace.start("up");
  await coordinator.says("leading");
  await workplace.runVerb("cancel", "live1");
  await following.prints('"type":"TaskCancelled"');
  const journal = await workplace.runVerb("events", "--from", "start", "--json", "--contents");
  const withoutContents = (text: string) => text.replaceAll(/,"(payload|result)":"(?:[^"\\\\]|\\\\.)*"/g, "");
  expect(ordered(withoutContents(following.printed))).toEqual(ordered(withoutContents(journal.stdout)));
  expect(following.printed).not.toContain("in the journal alone");
});
