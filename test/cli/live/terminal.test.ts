// The live view of `waggle status --watch` in a real terminal: tmux draws it, types keys, changes the size, and shows
// what is left after the end.

import { spawnSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hasProgram } from "../../support/programs.ts";
import { launcher, Workplace } from "../../support/waggle-process.ts";

const suite = "live view in a terminal";
/** Of `sh`, for root or others. */
const PROMPT = /^[#$]\s*$/m;

let workplace: Workplace;
let terminal: Terminal | undefined;

/** A tmux server of its own, with one shell. */
class Terminal {
  readonly #socket = `waggle-${process.pid}-${Math.random().toString(36).slice(2)}`;

  constructor(folder: string, { columns, rows }: { readonly columns: number; readonly rows: number }) {
    const env = { PATH: process.env.PATH ?? "", HOME: folder, TERM: "screen", LANG: "C.UTF-8" };
    const size = ["-x", String(columns), "-y", String(rows)];
    const started = spawnSync(
      "tmux",
      ["-L", this.#socket, "-f", "/dev/null", "new-session", "-d", ...size, "-c", folder, "sh"],
      { env, encoding: "utf8" },
    );
    if (started.status !== 0) throw new Error(`tmux: ${started.stderr}`);
  }

  keys(...keys: readonly string[]): void {
    this.#tmux("send-keys", ...keys);
  }

  type(line: string): void {
    this.#tmux("send-keys", "-l", line);
    this.keys("Enter");
  }

  resize(columns: number, rows: number): void {
    this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  get lines(): string[] {
    return this.#tmux("capture-pane", "-p").split("\n");
  }

  get text(): string {
    return this.lines.join("\n");
  }

  /** `alternate_on`, `cursor_flag`, `wrap_flag`. */
  flag(name: string): string {
    return this.#tmux("display-message", "-p", `#{${name}}`).trim();
  }

  async shows(text: string | RegExp): Promise<void> {
    const look = () => (typeof text === "string" ? this.text.includes(text) : text.test(this.text));
    await expect.poll(look, { timeout: 40_000, message: `${text} in\n${this.text}` }).toBe(true);
  }

  close(): void {
    spawnSync("tmux", ["-L", this.#socket, "kill-server"]);
  }

  #tmux(...args: readonly string[]): string {
    const { stdout, stderr, status } = spawnSync("tmux", ["-L", this.#socket, ...args], { encoding: "utf8" });
    if (status !== 0) throw new Error(`tmux ${args[0]}: ${stderr}`);
    return stdout;
  }
}

describe.runIf(hasProgram("tmux", suite))(suite, () => {
  beforeAll(async () => {
    workplace = await Workplace.make();
    await workplace.start("up").says("leading");
    for (const id of ["a1", "a2", "b1"]) {
      const agent = workplace.start(
        "agent",
        "--id",
        id,
        "--kind",
        id.startsWith("a") ? "count" : "review",
        "--exec",
        "cat",
      );
      await agent.says("joined");
    }
    await workplace.runVerb("submit", "--kind", "nobody-serves-it", "--user", "ann");
  });
  afterEach(() => terminal?.close());
  afterAll(async () => {
    await workplace.clear();
  });

  async function opened(size = { columns: 60, rows: 24 }): Promise<Terminal> {
    terminal = new Terminal(workplace.folder, size);
    await terminal.shows(PROMPT);
    terminal.type("stty -a | tr ';' '\\n' | grep -E 'icanon|echo |isig' | tee before.txt | wc -l");
    terminal.type(`'${process.execPath}' '${launcher}' status --watch; echo ended with $?`);
    await terminal.shows("q quit");
    return terminal;
  }

  /** The terminal is as before the view: normal screen, cursor, wrapping, and the line discipline. */
  async function expectRestored(shown: Terminal, code: number): Promise<void> {
    await shown.shows(`ended with ${code}`);
    expect(["alternate_on", "cursor_flag", "wrap_flag"].map((flag) => shown.flag(flag))).toEqual([
      "0",
      "1",
      "1",
    ]);
    shown.type("stty -a | tr ';' '\\n' | grep -E 'icanon|echo |isig' | cmp - before.txt && echo as before");
    await shown.shows(/^as before$/m);
  }

  it("shows agents and waiting tasks at 60 columns, and quits with q", async () => {
    const shown = await opened();
    await shown.shows(/agents +3 agents online/);
    await shown.shows(/nobody-serves-it/);
    expect(shown.flag("alternate_on")).toBe("1");
    expect(shown.text).toMatch(/^agent +state +in flight/m);
    for (const id of ["a1", "a2", "b1"]) expect(shown.text).toMatch(new RegExp(`^${id} +ready +0/`, "m"));
    shown.keys("q");
    await expectRestored(shown, 0);
  });

  it("sorts, filters and changes the table by keys", async () => {
    const shown = await opened();
    shown.keys("s");
    await shown.shows("agent ▼");
    shown.keys("r");
    await shown.shows("agent ▲");
    expect(shown.lines.filter((line) => /^(a|b)\d /.test(line)).map((line) => line.slice(0, 2))).toEqual([
      "b1",
      "a2",
      "a1",
    ]);
    shown.keys("/");
    shown.keys("-l", "b1");
    await shown.shows("filter: b1");
    shown.keys("Enter");
    await shown.shows('rows 1–1 of 1, filter "b1" hides 2');
    shown.keys("Escape");
    await shown.shows("rows 1–3 of 3");
    shown.keys("2");
    await shown.shows(/^nobody-serves-it +any +1 .*none$/m);
    shown.keys("Tab");
    await shown.shows(/^default +ann +1 /m);
    shown.keys("?");
    await shown.shows("any key goes back");
    shown.keys("x");
    await shown.shows("q quit");
    shown.keys("q");
    await expectRestored(shown, 0);
  });

  it("fits each size, also while it changes", async () => {
    const shown = await opened({ columns: 100, rows: 30 });
    await shown.shows("kinds (success, typical latency)");
    for (const [columns, rows] of [
      [60, 20],
      [40, 10],
      [120, 40],
      [60, 24],
    ] as const) {
      shown.resize(columns, rows);
      // tmux moves the lines of the old size until the view has drawn the new one.
      const isDrawn = () =>
        /^swarm +default/.test(shown.lines[0] ?? "") && shown.lines[rows - 1]?.includes("q quit");
      await expect.poll(isDrawn, { timeout: 10_000 }).toBe(true);
      expect(shown.lines.filter((line) => line.length > columns)).toEqual([]);
      expect(shown.lines.filter((line) => line.includes("q quit"))).toHaveLength(1);
    }
    shown.keys("q");
    await expectRestored(shown, 0);
  });

  it("gives the terminal back at Ctrl-C", async () => {
    const shown = await opened();
    shown.keys("C-c");
    await expectRestored(shown, 130);
  });

  it("gives the terminal back when it is ended from outside", async () => {
    const shown = await opened();
    const pane = shown.flag("pane_pid");
    const children = spawnSync("ps", ["-o", "pid=", "--ppid", pane], { encoding: "utf8" }).stdout.trim();
    process.kill(Number(children.split(/\s+/)[0]), "SIGTERM");
    await expectRestored(shown, 130);
  });

  it("is plain text where the output is no terminal, and a page without keys where the input is none", async () => {
    terminal = new Terminal(workplace.folder, { columns: 60, rows: 24 });
    const command = `'${process.execPath}' '${launcher}' status --watch --interval 200ms`;
    terminal.type(`${command} | head -n 3 | cat -v; echo ended`);
    await terminal.shows(/^ended$/m);
    expect(terminal.text).toMatch(/^agents +3 agents online/m);
    expect(terminal.text).not.toContain("^[[");
    terminal.type(`${command} </dev/null`);
    await terminal.shows(/^queues/m);
    expect(terminal.flag("alternate_on")).toBe("0");
    terminal.keys("C-c");
    await terminal.shows(/interrupted\n[#$]/);
  });
});
