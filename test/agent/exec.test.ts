// Commands as handlers, with real processes: verdicts, limits, and no process outlives its attempt.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type ExecOptions, execHandler } from "../../src/agent/exec.ts";
import { execEnvironment } from "../../src/agent/exec-environment.ts";
import { InfrastructureError, InvalidInputError } from "../../src/agent/handler.ts";
import { limits } from "../../src/limits.ts";
import { processes } from "../support/processes.ts";
import { aContext, aLogger, aTask } from "./attempt-fixture.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "waggle-exec-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string, task: Parameters<typeof aTask>[0] = {}, more: Partial<ExecOptions> = {}) {
  return execHandler({ command, ...more })(aTask(task), aContext()) as Promise<unknown>;
}

describe("a command", () => {
  it("gets the payload on stdin and gives the result on stdout", async () => {
    expect(await run("wc -w", { payload: "one two three" })).toMatch(/^\s*3\n$/);
  });

  it("gets no unnamed secret of the agent's environment", async () => {
    const env = {
      PATH: process.env.PATH,
      NATS_CREDS: "s3cret",
      MODEL_KEY: "k3y",
      WAGGLE_SWARM: "w",
      WAGGLE_DASHBOARD_TOKEN: "s3cret",
      LANG: "C",
    };
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    try {
      const printed = String(await run("env"));
      expect(printed).not.toMatch(/s3cret|k3y|^NATS_/m);
      expect(printed).toMatch(/^WAGGLE_SWARM=w$/m);
      expect(printed).toMatch(/^PATH=/m);
      const named = execEnvironment(env, ["MODEL_KEY", "NATS_CREDS"]);
      expect(String(await run("env", {}, { env: named }))).toMatch(/s3cret[\s\S]*k3y|k3y[\s\S]*s3cret/);
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it("gets bytes where the payload is base64, and gives bytes where stdout is no UTF-8", async () => {
    const payload = Buffer.from([0, 0xff, 0x0a]).toString("base64");
    expect(await run("od -An -tx1", { payload, encoding: "base64" })).toBe(" 00 ff 0a\n");
    expect(await run("printf '\\377\\000'")).toEqual(Buffer.from([0xff, 0]));
    expect(await run("printf '\\303\\251'")).toBe("é");
  });

  it("emits output during the run of a streamed task, and gives the whole output at the end", async () => {
    const chunks: unknown[] = [];
    const context = aContext({ emit: (chunk) => void chunks.push(chunk) });
    const handler = execHandler({ command: "printf 'a\\303'; sleep 0.2; printf '\\251b'" });
    expect(await handler(aTask({ stream: true }), context)).toBe("aéb");
    expect(chunks).toEqual(["a", "éb"]);
    chunks.length = 0;
    await handler(aTask(), context);
    expect(chunks).toEqual([]);
  });

  it("gets the attempt's names in the environment, besides inherited variables", async () => {
    const command = 'echo "$WAGGLE_TASK_ID $WAGGLE_ATTEMPT $WAGGLE_KIND $WAGGLE_PROJECT $WAGGLE_USER $EXTRA"';
    const task = { task: "t-ü'$(id)", attempt: 3, kind: "k", project: "p", user: "ann@acme.org" };
    const env = { ...process.env, EXTRA: "more" };
    expect(await run(command, task, { env })).toBe("t-ü'$(id) 3 k p ann@acme.org more\n");
  });

  it("gets the task's attributes as JSON in its environment, and none without any", async () => {
    const attributes = { ticket: "OPS-17", note: "zoë '$(id)'" };
    const command = "printenv WAGGLE_ATTRIBUTES || echo none";
    expect(JSON.parse(String(await run(command, { attributes })))).toEqual(attributes);
    expect(await run(command)).toBe("none\n");
  });

  it("gets the trace of the task in the environment, and no variable without a trace", async () => {
    const trace = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`, tracestate: "vendor=1" };
    const command = "printenv TRACEPARENT TRACESTATE || echo none";
    expect(await run(command, trace)).toBe(`${trace.traceparent}\nvendor=1\n`);
    expect(await run(command)).toBe("none\n");
  });

  it("reports used tokens on descriptor 4 during the run; other lines there count nothing", async () => {
    const said: number[] = [];
    const reportTokens = (count: number) => void said.push(count);
    const command =
      "echo 1200 >&4; echo many >&4; echo -5 >&4; echo 1.5 >&4; printf '7\\n  30' >&$WAGGLE_TOKENS_FD; exit 1";
    const failing = execHandler({ command })(aTask(), aContext({ reportTokens }));
    await expect(failing).rejects.toThrow("exit 1");
    expect(said).toEqual([1_200, 7, 30]);
    await execHandler({ command: "head -c 100000 /dev/zero | tr '\\0' 9 >&4" })(
      aTask(),
      aContext({ reportTokens }),
    );
    expect(said).toHaveLength(3);
  });

  it.each([
    ["echo many >&4", ['"many"', "one whole number per line"]],
    ["echo -5 >&4; echo 1.5 >&4; echo 7 >&4", ['"-5"', "the first of 2 invalid lines"]],
    ["printf '1,200' >&4", ['"1,200"']],
    ["echo >&4", ['""']],
    ["head -c 100000 /dev/zero | tr '\\0' 9 >&4", [`"${"9".repeat(32)}" to`]],
  ])("is warned of, once, what is no number of tokens, and goes on: %s", async (command, words) => {
    const { warnings, logger } = aLogger();
    expect(await execHandler({ command: `${command}; echo done` })(aTask(), aContext({ logger }))).toBe(
      "done\n",
    );
    expect(warnings).toEqual([expect.stringMatching(/^not counted as tokens: /)]);
    for (const word of words) expect(warnings[0]).toContain(word);
  });

  it("is not warned of numbers, nor of silence", async () => {
    const { warnings, logger } = aLogger();
    for (const command of ["echo 5 >&4", "printf 5 >&4", "printf '5\\n 6 \\n' >&4", "true"])
      await execHandler({ command })(aTask(), aContext({ logger }));
    expect(warnings).toEqual([]);
  });

  it("need not read its input", async () => {
    expect(await run("echo done", { payload: "x".repeat(limits.payloadBytesMax) })).toBe("done\n");
  });

  it("finds nothing of ours among its descriptors and children", async () => {
    // No descriptor 3; `wait` has nothing to wait for, and so returns at once.
    expect(await run("wait; (: <&3) 2>/dev/null && echo open || echo closed")).toBe("closed\n");
  });

  it("may be as slow as it likes to read and write", async () => {
    const text = "line\n".repeat(40_000);
    expect(await run("cat", { payload: text })).toBe(text);
  });
});

describe("its exit says", () => {
  it.each([
    ["65: invalid input", "echo 'not a number' >&2; exit 65", InvalidInputError, /^not a number$/],
    ["65 without words", "exit 65", InvalidInputError, /exit 65/],
    ["75: not now", "echo 'quota' >&2; exit 75", InfrastructureError, /^quota$/],
    ["75 with a time", "printf 'quota\nretry-after: 3\n' >&2; exit 75", InfrastructureError, /^quota$/],
    [
      "75 with a time alone",
      "echo retry-after: 3 >&2; exit 75",
      InfrastructureError,
      /temporary failure \(exit 75\)$/,
    ],
    [
      "127: no such command",
      "no-such-command-at-all",
      InfrastructureError,
      /did not find the command.*no-such-command/s,
    ],
    ["126: not executable", "/etc/passwd", InfrastructureError, /cannot run it.*passwd/s],
    ["anything else: failed", "echo out; echo why >&2; exit 3", Error, /^exit 3: why$/],
    ["a signal: failed", "kill -SEGV $$", Error, /SIGSEGV/],
  ])("%s", async (_, command, errorClass, words) => {
    const error = await run(command).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(errorClass);
    expect((error as Error).message).toMatch(words);
    if (errorClass === Error) {
      expect(error).not.toBeInstanceOf(InvalidInputError);
      expect(error).not.toBeInstanceOf(InfrastructureError);
    }
  });

  it.each([
    ["seconds", "echo retry-after: 3 >&2", { forMs: 3_000 }],
    ["a fraction, on stdout", "echo out; echo Retry-After:0.5", { forMs: 500 }],
    ["more than a hold lasts", "echo retry-after: 99999999999 >&2", { forMs: limits.holdMsMax }],
    ["a date that is over", "echo 'retry-after: Fri, 20 Nov 2015 17:00:00 GMT' >&2", { forMs: 0 }],
    [
      "on stdout, with no time on stderr",
      "echo retry-after: soon >&2; echo retry-after: 2",
      { forMs: 2_000 },
    ],
    ...["soon", "-5", "+5", "Infinity", "0x10", "1e3", "1_000", "5 5", "5s", ".", "", "NaN"].map(
      (said) => [`no time: ${said}`, `echo 'retry-after: ${said}' >&2`, {}] as [string, string, object],
    ),
    ["not in the last line", "echo retry-after: 3 >&2; echo bye >&2", {}],
  ])("75 with a time: %s", async (_, command, hold) => {
    const error = await run(`${command}; exit 75`).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ hold });
    expect(Object.keys((error as InfrastructureError).hold)).toEqual(Object.keys(hold));
  });

  it("75 with a last line that names no time is warned of", async () => {
    const { warnings, logger } = aLogger();
    const handler = execHandler({ command: "echo retry-after: 1e3; exit 75" });
    const called = handler(aTask(), aContext({ logger })) as Promise<unknown>;
    await called.catch(() => undefined);
    expect(warnings).toEqual([expect.stringMatching(/^not taken as a time: .*"1e3"/)]);
  });

  it("the end of a long stderr, not its beginning", async () => {
    const error = await run("seq 1 20000 >&2; exit 1").catch((thrown: unknown) => thrown);
    expect((error as Error).message).toMatch(/20000$/);
    expect((error as Error).message.length).toBeLessThanOrEqual(limits.errorCharactersMax);
  });

  it("failed when it writes more than a result may have, however long it would go on", async () => {
    await expect(run("yes")).rejects.toThrow(`more than ${limits.payloadBytesMax} bytes`);
  });

  it("infrastructure when there is no shell, or nowhere to run it", async () => {
    await expect(run("true", {}, { env: { PATH: folder } })).rejects.toBeInstanceOf(InfrastructureError);
    await expect(run("true", {}, { cwd: join(folder, "none") })).rejects.toBeInstanceOf(InfrastructureError);
  });
});

describe("an attempt's processes", () => {
  it("are all reaped by their parents: no init is needed", async () => {
    const ready = join(folder, "parents");
    const go = join(folder, "go-on");
    const running = run(`sleep 5 & echo $$ > ${ready}; while [ ! -e ${go} ]; do sleep 0.05; done; kill $!`);
    const group = await groupIn(ready);
    // While the command runs, no process of the group is a child of init.
    const parents = processes().flatMap((row) => (row.group === group ? [row.parent] : []));
    writeFileSync(go, "");
    await running;
    expect(parents.length).toBeGreaterThan(2);
    expect(parents).not.toContain(1);
  });

  it("are told to end when it is aborted, all of them", async () => {
    const ready = join(folder, "aborted-ready");
    const said = join(folder, "aborted-said");
    const abort = new AbortController();
    const command = `
      sh -c 'trap "echo child >> ${said}; exit" TERM; : > ${ready}-child; while :; do sleep 0.05; done' &
      trap "wait; echo parent >> ${said}; exit 0" TERM
      until [ -e ${ready}-child ]; do sleep 0.01; done
      echo $$ > ${ready}; while :; do sleep 0.05; done`;
    const ended = execHandler({ command })(aTask(), aContext({ signal: abort.signal })) as Promise<unknown>;
    const group = await groupIn(ready);
    abort.abort(new Error("stopped by the test"));
    await expect(ended).rejects.toThrow("stopped by the test");
    expect(readFileSync(said, "utf8")).toBe("child\nparent\n");
    await expect.poll(() => groupExists(group)).toBe(false);
  });

  it("are killed when they do not listen", async () => {
    const ready = join(folder, "ignoring-ready");
    const abort = new AbortController();
    const command = `trap '' TERM; echo $$ > ${ready}; while :; do sleep 0.05; done`;
    const ended = execHandler({ command })(aTask(), aContext({ signal: abort.signal })) as Promise<unknown>;
    const group = await groupIn(ready);
    const abortedAt = performance.now();
    abort.abort(new Error("stopped by the test"));
    await expect(ended).rejects.toThrow("stopped by the test");
    const tookMs = performance.now() - abortedAt;
    expect(tookMs).toBeGreaterThan(limits.execKillGraceMs - 100);
    expect(tookMs).toBeLessThan(limits.execKillGraceMs + 2_000);
    await expect.poll(() => groupExists(group)).toBe(false);
  });

  it("do not start when it was aborted before", async () => {
    const file = join(folder, "never");
    const signal = AbortSignal.abort(new Error("too late"));
    const ended = execHandler({ command: `touch ${file}` })(
      aTask(),
      aContext({ signal }),
    ) as Promise<unknown>;
    await expect(ended).rejects.toThrow("too late");
    expect(existsSync(file)).toBe(false);
  });

  it("that the command leaves behind end with the command", async () => {
    const ready = join(folder, "left-ready");
    const go = join(folder, "left-go");
    const ended = run(`sleep 300 & echo $$ > ${ready}; while [ ! -e ${go} ]; do sleep 0.02; done; echo done`);
    const group = await groupIn(ready);
    writeFileSync(go, "");
    expect(await ended).toBe("done\n");
    await expect.poll(() => groupExists(group)).toBe(false);
  });

  it("of a different user, protected from our signals, cause a warning and nothing more", async () => {
    const { warnings, logger } = aLogger();
    vi.spyOn(process, "kill").mockImplementation(() => {
      throw Object.assign(new Error("kill EPERM"), { code: "EPERM" });
    });
    try {
      const ended = execHandler({ command: "echo done" })(aTask(), aContext({ logger }));
      expect(await ended).toBe("done\n");
    } finally {
      vi.restoreAllMocks();
    }
    expect(warnings).toEqual([expect.stringMatching(/run as a different user.*and they continue$/)]);
  });

  it("that left the group do not keep the attempt waiting for ever", async () => {
    const startedAt = performance.now();
    expect(await run("setsid sleep 6 & echo done")).toBe("done\n");
    expect(performance.now() - startedAt).toBeLessThan(limits.execKillGraceMs + 2_000);
  });

  it.runIf(process.platform === "linux")("that left the group end with the attempt", async () => {
    const daemon = join(folder, "daemon");
    const sleeper = `setsid sh -c "setsid sh -c 'echo \\$\\$ > ${daemon}; exec sleep 300' &" &`;
    const ended = run(`${sleeper} while [ ! -s ${daemon} ]; do sleep 0.02; done; echo done`);
    expect(await ended).toBe("done\n");
    const pid = await pidIn(daemon);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it.runIf(process.platform === "linux")("that left the group end with an aborted attempt", async () => {
    const daemon = join(folder, "daemon-of-aborted");
    const abort = new AbortController();
    const command = `trap '' TERM; setsid sh -c 'echo $$ > ${daemon}; exec sleep 300' & while :; do sleep 0.05; done`;
    const ended = execHandler({ command })(aTask(), aContext({ signal: abort.signal })) as Promise<unknown>;
    const pid = await pidIn(daemon);
    expect(isAlive(pid)).toBe(true);
    abort.abort(new Error("revoked"));
    await expect(ended).rejects.toThrow("revoked");
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it.runIf(process.platform === "linux")(
    "that left the group are gone after kill -9 of the agent",
    async () => {
      const daemon = join(folder, "daemon-of-killed");
      const command = `setsid sh -c 'echo $$ > ${daemon}; exec sleep 300' & sleep 300`;
      const entry = fileURLToPath(new URL("exec-agent.mjs", import.meta.url));
      const agent = spawn(process.execPath, ["--import", "tsx", entry, command], { stdio: "inherit" });
      const pid = await pidIn(daemon);
      expect(isAlive(pid)).toBe(true);
      agent.kill("SIGKILL");
      await once(agent, "exit");
      await expect.poll(() => isAlive(pid), { timeout: 5_000 }).toBe(false);
    },
  );

  it.each([
    ["that goes on", ""],
    ["that ignores being told", "trap '' TERM HUP INT;"],
  ])("are gone after kill -9 of the agent: a command %s", async (name, trap) => {
    const ready = join(folder, `killed-${name.length}`);
    const inner = `sh -c '${trap === "" ? "" : 'trap "" TERM;'} while :; do sleep 0.05; done' &`;
    const command = `${trap} ${inner} echo $$ > ${ready}; while :; do sleep 0.05; done`;
    const entry = fileURLToPath(new URL("exec-agent.mjs", import.meta.url));
    const agent = spawn(process.execPath, ["--import", "tsx", entry, command], { stdio: "inherit" });
    const group = await groupIn(ready);
    expect(groupExists(group)).toBe(true);
    agent.kill("SIGKILL");
    await once(agent, "exit");
    await expect.poll(() => groupExists(group), { timeout: 5_000 }).toBe(false);
  });
});

it.runIf(process.platform === "linux")(
  "a process that the watcher's search missed is gone after kill -9 of the agent, though the shell outlives the command",
  async () => {
    const ready = join(folder, "missed");
    const missed = `env -i PATH="$PATH" sh -c 'while :; do sleep 0.05; done' &`;
    const command = `${missed} echo $$ > ${ready}; while :; do sleep 0.05; done`;
    const entry = fileURLToPath(new URL("exec-guard.mjs", import.meta.url));
    const stdio = ["ignore", "ignore", "pipe"] as const;
    const agent = spawn(process.execPath, ["--import", "tsx", entry, command, "a-mark"], {
      stdio: [...stdio],
    });
    const group = await groupIn(ready);
    expect(groupExists(group)).toBe(true);
    agent.kill("SIGKILL");
    await once(agent, "exit");
    await expect.poll(() => groupExists(group), { timeout: 5_000 }).toBe(false);
  },
);

/** The number that a command writes into a file, as soon as the file exists. */
async function pidIn(file: string): Promise<number> {
  const read = () => (existsSync(file) ? Number(readFileSync(file, "utf8")) : 0);
  if (read() > 0) return read();
  const watcher = watch(folder);
  try {
    for (;;) {
      await Promise.race([once(watcher, "change"), new Promise((resolve) => setTimeout(resolve, 50))]);
      if (read() > 0) return read();
    }
  } finally {
    watcher.close();
  }
}

const isAlive = (pid: number) => processes().some((row) => row.pid === pid && row.state !== "Z");

/** True if a process of the group runs; zombies do not count. */
function groupExists(group: number): boolean {
  return processes().some((row) => row.group === group && row.state !== "Z");
}

/** The process group of a command that wrote its own number. */
async function groupIn(file: string): Promise<number> {
  const pid = await pidIn(file);
  return processes().find((row) => row.pid === pid)?.group ?? Number.NaN;
}
